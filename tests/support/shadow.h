/* shadow.h - an interpreter that knows what every buffer holds, and computes nothing.
 *
 * It walks the programs of all ranks in step, as `run` does. For each piece of each buffer it
 * keeps the term (term.h) that was written there last. The test fails if an instruction reads
 * memory that was not written, that another buffer has overwritten, or that a collective in
 * flight owns. It fails as well if a gradient, parameter or moment differs from the definition
 * (shadow_truth.c), which does not know buffers. Planned lifetimes are never read: one that is
 * too short is found by its effect on the numbers.
 *
 * With hybrid sharding groups are cut over the ranks of a shard group, in which REDUCE and
 * GATHER work; the definition still sums over all ranks.
 *
 * Of a shared model the ranks are a ZeRO group. The other ranks of their TP groups do the
 * same: a JOIN turns what a rank gave into what all gave, and takes its buffers from JOIN
 * to JOIN_WAIT; KEEP leaves a piece, and COLLECT makes it whole. (What TP ranks may
 * overwrite in their window follows from the order of JOINs: laws_check_joins(),
 * laws_check_kept().)
 *
 * A rank may execute the stream of optimizer states ahead of its walk, as far as `after` allows
 * (engine/run_offload.c). The test says which ranks do.
 *
 *     shadow.c          programs from begin to end
 *     shadow_ops.h      what each instruction does: shadow_{units,kept,exchange,update,file}.c
 *     shadow_memory.c   who holds what: the rank's arena, its part of the window, the node's
 *     shadow_truth.c    the results that are expected */
#pragma once

#include "sharding/offload.h"
#include "support/schedule_job.h"
#include "support/term.h"

/* ---- what has to come out: shadow_truth.c ---- */

/* Terms of the whole model by group and piece: [g * pieces + piece]. */
typedef struct {
    const zero_schedule *s;    /* rank 0's */
    term *param;               /* as units read them */
    term *master;              /* in fp32; the same for fp32 */
    term *momentum, *variance; /* after an update */
    term *grad;                /* of the last step that was computed */
    int64_t n;                 /* n_groups * pieces */

    /* The update that this program makes, if it makes one: with this gradient, to these. */
    term *due, *new_param, *new_master, *new_momentum, *new_variance;
    bool reads_new; /* `lazy`: units read parameters after the update */
} shadow_truth;

void truth_open(shadow_truth *truth, const zero_schedule *s);
void truth_close(shadow_truth *truth);
/* The tokens of microbatch `index` of step `step`. */
term truth_tokens(int64_t step, int64_t index);
/* grad[] = the gradient of a step at the present parameters. */
void truth_compute(shadow_truth *truth, int64_t step);
/* due[] = grad[]; new_...[] = the optimizer step with it. */
void truth_prepare(shadow_truth *truth);
/* Every piece has been updated. */
void truth_commit(shadow_truth *truth);
/* The parameters that units read in this program. */
const term *truth_read(const shadow_truth *truth);

/* ---- who holds what: shadow_memory.c ---- */

typedef enum {
    SHADOW_FREE,
    SHADOW_READING, /* a collective reads it: it must not change */
    SHADOW_WRITING, /* a collective writes it: nothing else may touch it */
} shadow_lock;

typedef struct {
    term value; /* 0: nothing */
    shadow_lock lock;
    unsigned seen; /* the ranks, as bits, to which the value has been made known */
} shadow_cell;

/* The memory of one rank, and of its node if it is the first rank there. */
typedef struct {
    shadow_cell *cells; /* [n_buffers][pieces], of plain data the first */
    int *held;          /* [n_buffers]: cells with a value */
    int *group;         /* [n_buffers]; -1: plain data */
    int *live;          /* buffers with held > 0 */
    int n_live;
} shadow_memory;

typedef struct {
    bool is_under_way;
    zero_instruction begun[JOB_RANKS];
    term *value; /* [n_ranks]: what the piece of each rank will be */
} shadow_exchange;

/* A buffer in a rank's file. */
typedef struct {
    term value; /* 0: nothing was written there */
    shadow_lock lock;
} shadow_block;

/* The block in a slot of memory. */
typedef struct {
    int file; /* ZERO_NO_BUFFER: free */
    bool is_here;
    term states, params;
} shadow_slot;

typedef struct {
    shadow_block *blocks; /* [n_buffers] */
    shadow_slot slots[ZERO_OFFLOAD_MAX_DEPTH];
    int n_in_flight; /* transfers */
} shadow_file;

typedef struct {
    zero_instruction begun; /* the JOIN or COLLECT in flight, if its join is not -1 */
    term value;             /* its result */
} shadow_joining;

typedef struct {
    const schedule_job *job;
    unsigned hurried; /* ranks, as bits, that execute the stream ahead of their walk */
    zero_program_kind program;
    int at[JOB_RANKS];    /* the instruction that each rank executes */
    int walk[JOB_RANKS];  /* where its walk is */
    int ahead[JOB_RANKS]; /* its stream's instructions before this one were executed */
    int rank;             /* the one that executes */
    int64_t step;         /* steps so far */
    bool is_due;          /* this program makes an update */
    bool is_pending; /* `lazy`: the next program with updates makes that of the last step */
    shadow_memory memory[JOB_RANKS];
    shadow_file file[JOB_RANKS];
    shadow_exchange *reduce, *gather, *all_reduce; /* [n_groups] */
    shadow_joining joining[JOB_RANKS], collecting[JOB_RANKS];
    shadow_truth truth;

    int64_t *index; /* [n_ranks][M]: the microbatches that were loaded */
    bool *has_loss; /* [n_ranks][M] */
    int *reduces, *gathers, *all_reduces, *norms; /* [n_groups] in this program */
    int64_t *updated; /* [n_ranks][n_groups][pieces]: elements of a piece; by each rank */
    int losses, overflows;
} shadow;

const zero_schedule *shadow_plan(const shadow *w);   /* of w->rank */
const zero_instruction *shadow_now(const shadow *w); /* of w->rank */
int shadow_groups(const shadow *w);
int shadow_pieces(const shadow *w); /* of a group: the ranks that shard together */
int shadow_own(const shadow *w);    /* the piece of w->rank */
int shadow_first(const shadow *w);  /* the first rank that shards with w->rank */

#define shadow_expect(w, ok) shadow_expect_at((w), (ok), #ok, __FILE__, __LINE__)
void shadow_expect_at(const shadow *w, bool ok, const char *text, const char *file,
                      int line);

void shadow_memory_open(shadow *w);
void shadow_memory_close(shadow *w);
/* Forgets all but the buffers that live for the whole run: a program begins. */
void shadow_memory_forget(shadow *w);

/* Plain data: `bytes` from the start of the buffer; 0 bytes are nothing. */
void shadow_write(shadow *w, int buffer, size_t bytes, term value);
term shadow_read(shadow *w, int buffer, size_t bytes);

zero_range shadow_piece(const shadow *w, int g, int p); /* padding included */
bool shadow_is_empty(const shadow *w, int g, int p);
/* Piece p of group g, which is not empty. */
void shadow_write_piece(shadow *w, int g, int buffer, int p, term value);
term shadow_read_piece(shadow *w, int g, int buffer, int p);

/* A collective takes a piece and gives it back. Locking for writing loses the old value. */
void shadow_lock_piece(shadow *w, int g, int buffer, int p, shadow_lock lock);
void shadow_unlock_piece(shadow *w, int g, int buffer, int p);
void shadow_lock_staging(shadow *w, int buffer, size_t bytes);
void shadow_unlock_staging(shadow *w, int buffer);
/* A transfer reads plain data; returns its value. */
term shadow_lock_plain(shadow *w, int buffer);
void shadow_unlock_plain(shadow *w, int buffer);
/* The result of a gather: all ranks of the node may read it. */
void shadow_publish_piece(shadow *w, int g, int buffer, int p, term value);
/* RELEASE: in a buffer of the whole run only this rank's piece stays known. */
void shadow_release(shadow *w, int g, int buffer);

/* ---- programs: shadow.c ---- */

/* Every rank has initialized what it owns. */
void shadow_open(shadow *w, const schedule_job *job);
void shadow_walk(shadow *w, zero_program_kind program);
void shadow_close(shadow *w);

/* Elements of piece p of group g that w->rank has updated. */
int64_t *shadow_updated_of(const shadow *w, int g, int p);

/* A life: the prologue, steps with evaluations between them, the epilogue. Ranks in `hurried`
 * execute the stream ahead. */
void shadow_live(const schedule_job *job, unsigned hurried);
