#include "comm/works.h"

#include "base/clock.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/heap.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "comm/wire.h"

#define PROGRAMS 64                  /* kept per group, unless more are in flight */
#define BLOCKS   16                  /* of staging, kept for the next collective */
#define AT_ONCE  ((int64_t)64 << 10) /* bytes: see zero_all_reduce_begin() */

/* A step list, and when it was begun last. */
typedef struct program {
    zero_collective op;
    size_t staging;
    int64_t used;
    struct program *next;
} program;

typedef struct {
    void *memory;
    size_t bytes;
} block;

struct zero_works {
    program *programs; /* owned */
    int n_programs;
    block blocks[BLOCKS]; /* owned; not in use */
    const char **given;   /* owned; [size]: room for zero_heap_find() */
};

/* ---- staging ---- */

static zero_status take_block(struct zero_works *w, size_t bytes, void **memory)
{
    block *best = NULL;
    *memory = NULL;
    if (bytes == 0) return ZERO_OK;
    for (block *b = w->blocks; b < w->blocks + BLOCKS; b++)
        if (b->bytes >= bytes && b->bytes / 4 <= bytes && (!best || b->bytes < best->bytes))
            best = b;
    if (best) {
        *memory = best->memory;
        *best = (block){0};
        return ZERO_OK;
    }
    *memory = aligned_alloc(64, zero_round_up_size(bytes, 64));
    return zero_allocated(*memory, "no memory for %zu bytes of staging", bytes);
}

/* Keeps the larger ones. */
static void give_block(struct zero_works *w, void *memory, size_t bytes)
{
    block *least = w->blocks;
    for (block *b = w->blocks; b < w->blocks + BLOCKS; b++)
        if (b->bytes < least->bytes) least = b;
    if (bytes <= least->bytes) {
        free(memory);
        return;
    }
    free(least->memory);
    *least = (block){memory, bytes};
}

/* ---- step lists ---- */

static bool is_same(const zero_collective_spec *a, const zero_collective_spec *b)
{
    return a->kind == b->kind && a->type == b->type && a->reduction == b->reduction &&
           a->count == b->count && a->tail == b->tail && a->root == b->root &&
           a->algorithm == b->algorithm;
}

static void drop(struct zero_works *w, program **at)
{
    program *p = *at;
    *at = p->next;
    free(p->op.staging);
    zero_collective_destroy(&p->op);
    free(p);
    w->n_programs--;
}

/* Takes the staging of those that have ended. The place of the one that was begun longest
 * ago, or NULL. */
static program **tidy(struct zero_works *w)
{
    program **oldest = NULL;
    for (program **at = &w->programs; *at; at = &(*at)->next) {
        program *p = *at;
        if (p->op.is_active) continue;
        void *staging = p->op.staging;
        if (staging) give_block(w, staging, p->staging);
        p->op.staging = NULL;
        if (!oldest || p->used < (*oldest)->used) oldest = at;
    }
    return oldest;
}

static zero_status find_program(zero_comm *comm, const zero_collective_spec *spec,
                                program **out)
{
    struct zero_works *w = comm->works;
    program *p = w->programs;
    while (p && (p->op.is_active || !is_same(&p->op.steps.spec, spec))) p = p->next;
    if (!p) {
        ZERO_TRY(zero_new(&p, 1, "a collective"));
        zero_status st = zero_collective_init(&p->op, comm, spec);
        if (st == ZERO_OK && spec->algorithm == ZERO_ALGORITHM_SHM)
            st = zero_new(&p->op.given, comm->size, "places of data");
        if (st != ZERO_OK) {
            zero_collective_destroy(&p->op);
            free(p);
            return st;
        }
        program **oldest = tidy(w);
        if (w->n_programs >= PROGRAMS && oldest) drop(w, oldest);
        p->staging = zero_collective_staging(spec, &comm->layout);
        p->next = w->programs;
        w->programs = p;
        w->n_programs++;
    } else if (p->staging > 0 && !p->op.staging) {
        tidy(w);
    }
    p->used = comm->sequence;
    *out = p;
    return ZERO_OK;
}

/* ---- begin ---- */

zero_status zero_works_start(zero_comm *comm)
{
    ZERO_TRY(zero_comm_check(comm));
    ZERO_TRY(zero_thread_need(comm));
    if (comm->works) return ZERO_OK;
    zero_thread_lock(comm);
    struct zero_works *made = NULL;
    zero_status st = comm->works ? ZERO_OK : zero_new(&made, 1, "the works of a group");
    if (made) st = zero_new(&made->given, comm->size, "the works of a group");
    if (st == ZERO_OK && made)
        comm->works = made;
    else
        free(made);
    if (comm->name[0] == '\0') strcpy(comm->name, "world");
    zero_thread_unlock(comm);
    return st;
}

zero_status zero_works_make(zero_comm *comm, zero_work **place, zero_work **work)
{
    ZERO_INVALID_IF(!place, "an operation without a place for its work");
    ZERO_TRY(zero_works_start(comm));
    ZERO_TRY(zero_new(work, 1, "an operation"));
    (*work)->comm = comm;
    zero_thread_lock(comm);
    return ZERO_OK;
}

static zero_status run(zero_comm *comm, const zero_collective_spec *spec,
                       const char **given, int64_t sequence, zero_work *w)
{
    program *p;
    ZERO_TRY(find_program(comm, spec, &p));
    if (!p->op.staging) ZERO_TRY(take_block(comm->works, p->staging, &p->op.staging));
    p->op.done = &w->done;
    for (int r = 0; given && r < comm->size; r++) p->op.given[r] = given[r];
    return zero_collective_begin_as(&p->op, sequence, w->in, w->out, p->op.staging);
}

/* True if ranks of a node may read this data where it lies, in place of messages. */
static bool may_share(const zero_comm *comm, const zero_collective_spec *spec)
{
    bool sums = zero_collective_sums(spec->kind);
    return comm->heap && comm->size > 1 && spec->tail == 0 && spec->count > 0 &&
           !zero_collective_has_root(spec->kind) &&
           (!sums || zero_reduction_is_tree(spec->reduction, (zero_number)spec->type));
}

zero_status zero_works_decide(zero_comm *comm)
{
    for (zero_work **at = &comm->undecided, *w; (w = *at) != NULL;) {
        const char **given = comm->works->given;
        zero_places places =
            zero_heap_find(comm, w->what.sequence, zero_collective_hash(&w->spec), given);
        at = places == ZERO_PLACES_UNKNOWN ? &w->next : at;
        if (places == ZERO_PLACES_UNKNOWN) continue;
        *at = w->next;
        if (places == ZERO_PLACES_SHARED) {
            w->spec.algorithm = ZERO_ALGORITHM_SHM;
            w->spec.in_apart = w->spec.out_apart = 1; /* not 0: neighbours can read */
        } else {
            given = NULL;
        }
        ZERO_TRY(run(comm, &w->spec, given, w->what.sequence, w));
    }
    return ZERO_OK;
}

static zero_status start(zero_comm *comm, zero_work *w)
{
    ZERO_TRY(zero_thread_failure(comm));
    w->what = zero_operation_collective(&w->spec, comm->sequence);
    zero_operation_set_group(&w->what, comm->name);
    if (w->spec.kind == ZERO_ALL_REDUCE)
        w->what.count = comm->size * w->spec.count + w->spec.tail;
    if (may_share(comm, &w->spec)) {
        /* Says where this rank's data lie, and waits for the others to say so. */
        const bool has_pieces = w->spec.kind != ZERO_ALL_GATHER;
        const size_t bytes = (size_t)((has_pieces ? comm->size : 1) * w->spec.count) *
                             zero_element_size(w->spec.type);
        zero_work **end = &comm->undecided;
        ZERO_TRY(zero_collective_check(&w->spec, &comm->layout));
        zero_heap_publish(comm, comm->sequence++, zero_collective_hash(&w->spec), w->in,
                          bytes);
        while (*end) end = &(*end)->next;
        *end = w;
        zero_thread_wake(comm);
        zero_watch_note(zero_family_whole(comm), ZERO_WATCH_COMPUTING, &w->what);
        return zero_works_decide(comm);
    }
    return run(comm, &w->spec, NULL, comm->sequence, w);
}

zero_status zero_works_begun(zero_comm *comm, zero_status st, zero_work *w,
                             zero_work **work)
{
    if (st == ZERO_OK) *work = w;
    if (st == ZERO_ERR_MPI) zero_thread_fail(comm, st);
    zero_thread_unlock(comm);
    if (st == ZERO_OK || st == ZERO_ERR_MPI) return st;
    free(w->requests.list);
    free(w);
    return st;
}

static zero_status begin(zero_comm *comm, const zero_collective_spec *spec, const void *in,
                         void *out, zero_work **work)
{
    zero_work *w;
    ZERO_INVALID_IF(spec->count + spec->tail > 0 && (!in || !out), "a %s of data at NULL",
                    zero_collective_kind_name(spec->kind));
    ZERO_TRY(zero_works_make(comm, work, &w));
    w->spec = *spec;
    if (comm->layout.n_nodes > 1)
        w->spec.message = zero_wire_message(&zero_family_whole(comm)->wire);
    w->in = in;
    w->out = out;
    return zero_works_begun(comm, start(comm, w), w, work);
}

static zero_collective_spec spec_of(zero_collective_kind kind, zero_reduction reduction,
                                    zero_number number, int64_t count, int root)
{
    return (zero_collective_spec){.kind = kind,
                                  .algorithm = ZERO_ALGORITHM_P2P,
                                  .type = (zero_type)number,
                                  .result = (zero_type)number,
                                  .reduction = reduction,
                                  .count = count,
                                  .stride = count,
                                  .root = root,
                                  .unit = ZERO_NO_UNIT};
}

zero_status zero_reduce_scatter_begin(zero_comm *comm, zero_reduction reduction,
                                      zero_number number, int64_t count, const void *in,
                                      void *out, zero_work **work)
{
    zero_collective_spec spec = spec_of(ZERO_REDUCE_SCATTER, reduction, number, count, 0);
    return begin(comm, &spec, in, out, work);
}

zero_status zero_all_gather_begin(zero_comm *comm, size_t bytes, const void *in, void *out,
                                  zero_work **work)
{
    zero_collective_spec spec =
        spec_of(ZERO_ALL_GATHER, ZERO_SUM, ZERO_NUMBER_UINT8, (int64_t)bytes, 0);
    return begin(comm, &spec, in, out, work);
}

/* What N does not divide goes to all ranks at once, in one round, and between two ranks so
 * does what is short, which takes no more bytes then. */
zero_status zero_all_reduce_begin(zero_comm *comm, zero_reduction reduction,
                                  zero_number number, int64_t count, void *data,
                                  zero_work **work)
{
    zero_collective_spec spec = spec_of(ZERO_ALL_REDUCE, reduction, number, count, 0);
    const int64_t size = zero_max(zero_comm_size(comm), 1);
    bool at_once = size == 2 && count <= AT_ONCE / 8;
    spec.count = spec.stride = at_once ? 0 : count / size;
    spec.tail = at_once ? count : count % size;
    return begin(comm, &spec, data, data, work);
}

zero_status zero_reduce_begin(zero_comm *comm, zero_reduction reduction, zero_number number,
                              int64_t count, int root, void *data, zero_work **work)
{
    zero_collective_spec spec = spec_of(ZERO_REDUCE, reduction, number, count, root);
    return begin(comm, &spec, data, data, work);
}

zero_status zero_broadcast_begin(zero_comm *comm, size_t bytes, int root, void *data,
                                 zero_work **work)
{
    zero_collective_spec spec =
        spec_of(ZERO_BROADCAST, ZERO_SUM, ZERO_NUMBER_UINT8, (int64_t)bytes, root);
    return begin(comm, &spec, data, data, work);
}

/* ---- ends ---- */

zero_status zero_work_test(zero_work *work, bool *done)
{
    zero_thread_lock(work->comm);
    zero_status st = work->done ? ZERO_OK : zero_flight_poll(work->comm, NULL);
    if (st != ZERO_OK) zero_thread_fail(work->comm, st);
    *done = work->done;
    if (work->done && !zero_family_is_active(zero_family_whole(work->comm)))
        zero_watch_note(zero_family_whole(work->comm), ZERO_WATCH_COMPUTING, &work->what);
    zero_thread_unlock(work->comm);
    return st;
}

static zero_status wait(zero_work *work, double seconds, bool naps, bool *done)
{
    const zero_awaited awaited = {.done = &work->done,
                                  .until =
                                      seconds > 0.0 ? zero_clock_seconds() + seconds : 0.0,
                                  .naps = naps};
    return zero_wait_until(work->comm, ZERO_WATCH_WAITING, &work->what, &awaited, done);
}

zero_status zero_work_wait(zero_work *work, double seconds, bool *done)
{
    return wait(work, seconds, false, done);
}

zero_status zero_work_wait_beside(zero_work *work, double seconds, bool *done)
{
    return wait(work, seconds, true, done);
}

void zero_work_close(zero_work **work)
{
    bool done;
    if (!work || !*work) return;
    zero_work *w = *work;
    *work = NULL;
    /* After a failure MPI may still write to it. */
    if (!w->done && wait(w, 0.0, false, &done) != ZERO_OK) return;
    free(w->requests.list);
    free(w);
}

/* ---- the end ---- */

zero_status zero_works_drain(zero_comm *comm)
{
    bool ended;
    const zero_awaited awaited = {.idle = comm};
    zero_operation what = zero_operation_control(ZERO_OPERATION_END, comm->sequence, 0, -1);
    zero_operation_set_group(&what, comm->name);
    return zero_wait_until(comm, ZERO_WATCH_WAITING, &what, &awaited, &ended);
}

zero_status zero_works_end(zero_comm *comm)
{
    struct zero_works *w = comm->works;
    if (!w) return ZERO_OK;
    zero_thread_lock(comm);
    zero_status st = zero_mpi_is_up() ? zero_works_drain(comm) : ZERO_OK;
    if (st == ZERO_OK) {
        while (w->programs) drop(w, &w->programs);
        for (block *b = w->blocks; b < w->blocks + BLOCKS; b++) free(b->memory);
        free(w->given);
        free(w);
        comm->works = NULL;
    }
    zero_thread_unlock(comm);
    return st;
}
