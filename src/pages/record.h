/* record.h - a run, read from its metrics: the one thing that all forms of `zero report` show.
 *
 * Strict: a line that is not what train/metrics.h describes is an error with the path, the line, what
 * was expected and what was found. Keys that are not known here are ignored, because newer versions
 * add keys; a key that is known must be right. What a run has not written is absent, and a report
 * says so: `ended`, `cut`, `has_*`, and counts that are 0. */
#pragma once

#include "sharding/schedule.h"
#include "train/metrics_read.h"

#define ZERO_RECORD_PEERS 64        /* ranks of a matrix, at most */
#define ZERO_RECORD_RANKS (1 << 20) /* of a run that is read */

typedef struct {
    int64_t step;
    double loss, lr, grad_norm, loss_scale; /* NAN: null */
    double seconds, exposed;                /* exposed NAN: unknown */
    double tokens, tokens_per_second, elapsed;
    bool skipped, has_val_loss;
    double val_loss;
} zero_record_step;

typedef struct {
    char name[32]; /* "gradients" */
    int64_t planned, measured;
} zero_record_class;

/* Bytes that were moved from and to a scratch file. */
typedef struct {
    char name[32]; /* "optimizer states" */
    int64_t planned_read, read, planned_written, written;
} zero_record_moved;

typedef struct {
    char name[16]; /* "reduce", "gather", "join", ..., "control" */
    int64_t planned_sent, planned_received, planned_messages;
    /* The programs' share of it, which the plan knows. */
    int64_t sent, received, messages;
    int64_t sent_inside, sent_across; /* by nodes; their sum is `all_sent` */
    int64_t all_sent;                 /* with control messages outside the programs */
    double seconds, exposed;          /* in flight, and of these waited for; NAN: unknown */
} zero_record_traffic;

typedef struct {
    char op[24], unit[48]; /* unit: a kind, "block"; empty: all of the op */
    int64_t count;
    double seconds, exchange, least, most; /* of rank 0; of all ranks; NAN: unknown */
} zero_record_profile;

/* An instruction of rank 0's training step, as the first line has it ("schedule"). */
typedef struct {
    int number; /* from 1, as --show-schedule has it; of a long program some are left out */
    char name[64]; /* "BACKWARD block 3, microbatch 0" */
    char op[24];
    int64_t bytes;              /* -1: none */
    int64_t live[ZERO_CLASSES]; /* bytes alive while it runs */
    int64_t live_bytes;         /* their sum */
} zero_record_instruction;

/* Seconds of the ranks in the training steps, by what they were spent on. The first is the sum of
 * the next five, rank by rank. */
typedef enum {
    ZERO_SPENT_STEP,
    ZERO_SPENT_COMPUTE, /* arithmetic of units, gradients, norms and updates, without polls */
    ZERO_SPENT_EXCHANGE,  /* polls within it, and beginning collectives */
    ZERO_SPENT_EXPOSED,   /* waits for collectives on data */
    ZERO_SPENT_WAITED,    /* agreements of all ranks */
    ZERO_SPENT_TRANSFERS, /* waits for a scratch file or a device */
    ZERO_SPENT_IN_FLIGHT, /* collectives on data, from begin to end; these overlap each other */
    ZERO_SPENT_AWAITED, /* of this, doing nothing but wait */
    ZERO_SPENT
} zero_record_spent;

const char *zero_record_spent_name(zero_record_spent spent); /* "in_flight" */

typedef struct {
    double least, mean, most;
    double *ranks; /* [n_rank_seconds]; owned */
} zero_record_seconds;

typedef struct {
    zero_metrics_file file;  /* owned */
    const char *path;        /* borrowed; shown through one escaper */
    zero_record_step *steps; /* [n_steps], owned, as all arrays */
    int64_t n_steps;
    bool ended;         /* the final line is there */
    bool cut;           /* half a line at the end: the run was killed while it wrote */
    int64_t lost_lines; /* that a full disk or a slow reader cost */
    int64_t resumed_step, id; /* id: of the run, or of its last part; 0: an older file */
    bool has_run;             /* the first line is there; else what it says is zero */
    int ranks, nodes, stage, tp;
    int64_t parameters; /* of the model */
    bool fake_nodes;
    char dtype[8], digest[33], model[64], started[32], collectives[16];
    zero_record_class *classes;
    int n_classes;
    int64_t planned_peak, measured_peak; /* 0 unless ended */
    zero_record_class *host; /* with a device, which the classes are of; else n_host is 0 */
    int n_host;
    int64_t planned_host_peak, host_peak;
    zero_record_moved *moved; /* with --offload to a file; else n_moved is 0 */
    int n_moved;
    zero_record_traffic *traffic;
    int n_traffic;
    zero_record_profile *profile;
    int n_profile;
    bool has_rank_seconds; /* older files have none, nor has a run that has not ended */
    zero_record_seconds rank_seconds[ZERO_SPENT];
    int n_rank_seconds;               /* ranks that are listed; 0: too many */
    zero_record_instruction *program; /* n_program = 0: an older file has none */
    int n_program, program_length;    /* listed here, and all */
    int peak_at; /* index of the peak's instruction; -1 without a program */
    /* Bytes from rank to rank, [n_peers][n_peers] by row = sender; n_peers 0: none (more than
     * ZERO_RECORD_PEERS ranks, older files). `peer` is NULL unless the run has ended. */
    int n_peers;
    int64_t *planned_peer, *peer;
    int *node_of; /* [n_peers] */
} zero_record;

void zero_record_destroy(zero_record *record); /* accepts all zeros */
