/* REDUCE, ALL_REDUCE, GATHER and their waits. The first three begin a group's collectives, which
 * progress while the backend computes; the waits end them. REDUCE and GATHER are exchanges of the
 * shard group; with replicas ALL_REDUCE then adds the pieces of all of them (run_chain.h). RELEASE
 * only says that a gathered buffer is free. */
#include "base/fail.h"
#include "engine/run_chain.h"
#include "engine/walk.h"
#include "sharding/schedule_exchange.h"

static zero_range piece_of(const zero_walk *w, int g)
{
    return zero_partition_piece(&w->r->schedule->groups[g].partition, w->r->shard->rank);
}

static char *staging_at(zero_walk *w, const zero_instruction *i, int k)
{
    char *staging = zero_use(w, i->staging);
    return staging ? staging + zero_exchange_staging(w->r->schedule, i->op, i->group, k)
                   : NULL;
}

/* The begin of the k-th owner's piece, and whether this rank is that owner. */
static int64_t owned_piece(const zero_walk *w, int g, int k, bool *mine)
{
    const zero_partition *p = &w->r->schedule->groups[g].partition;
    int root = (int)zero_partition_owners(p).begin + k;
    *mine = root == w->r->shard->rank;
    return zero_partition_piece(p, root).begin;
}

static bool is_sliced(const zero_walk *w)
{
    return w->plan->partition == ZERO_PARTITION_SLICE;
}

/* MPI reads what the backend wrote. With a device a collective waits itself for all that was computed
 * before its begin. */
static zero_status finish_compute(const zero_walk *w)
{
    return w->r->link.memory ? ZERO_OK : w->r->backend->sync(&w->r->math);
}

static void label(const zero_walk *w, const zero_instruction *i, zero_runner_exchange *x)
{
    for (int k = 0; k < x->n; k++) x->ops[k].label = zero_walk_label(w, i);
}

zero_status zero_run_reduce(zero_walk *w, const zero_instruction *i)
{
    zero_runner_exchange *x = &w->r->reduce[i->group];
    ZERO_TRY(finish_compute(w));
    label(w, i, x);
    int64_t own = piece_of(w, i->group).begin;
    if (is_sliced(w))
        return zero_collective_begin(&x->ops[0], zero_use(w, i->in),
                                     zero_use_element(w, i->buffer, own),
                                     staging_at(w, i, 0));
    zero_use(w, i->buffer);
    for (int k = 0; k < x->n; k++) {
        bool mine;
        int64_t begin = owned_piece(w, i->group, k, &mine);
        ZERO_TRY(zero_collective_begin(&x->ops[k], zero_use_element(w, i->in, begin),
                                       mine ? zero_use_element(w, i->buffer, begin) : NULL,
                                       staging_at(w, i, k)));
    }
    return ZERO_OK;
}

zero_status zero_run_gather(zero_walk *w, const zero_instruction *i)
{
    zero_runner_exchange *x = &w->r->gather[i->group];
    ZERO_TRY(finish_compute(w));
    label(w, i, x);
    int64_t own = piece_of(w, i->group).begin;
    if (is_sliced(w))
        return zero_collective_begin(&x->ops[0], zero_use_element(w, i->in, own),
                                     zero_use(w, i->buffer), staging_at(w, i, 0));
    zero_use(w, i->in);
    for (int k = 0; k < x->n; k++) {
        bool mine;
        int64_t begin = owned_piece(w, i->group, k, &mine);
        ZERO_TRY(zero_collective_begin(
            &x->ops[k], mine ? zero_use_element(w, i->in, begin) : NULL,
            zero_use_element(w, i->buffer, begin), staging_at(w, i, k)));
    }
    return ZERO_OK;
}

/* The collective uses its buffers until here. */
static zero_status wait_for(zero_walk *w, const zero_instruction *i,
                            zero_runner_exchange *x)
{
    ZERO_TRY(w->r->poll_status);
    for (int k = 0; k < x->n; k++) ZERO_TRY(zero_collective_wait(&x->ops[k]));
    zero_use(w, i->in);
    zero_use(w, i->buffer);
    zero_use(w, i->staging);
    return ZERO_OK;
}

zero_status zero_run_reduce_wait(zero_walk *w, const zero_instruction *i)
{
    return wait_for(w, i, &w->r->reduce[i->group]);
}

/* In place: this rank's piece of the shard group's sum becomes the same piece of the sum over all
 * ranks. Each replica adds up a K-th of it. */
zero_status zero_run_all_reduce(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const zero_comm *replicas = r->replicas;
    zero_range piece = piece_of(w, i->group);
    int64_t part = zero_range_len(piece) / replicas->size;
    char *own = zero_use_element(w, i->buffer, piece.begin + part * replicas->rank);
    char *whole = zero_use_element(w, i->buffer, piece.begin);
    r->reducing = (zero_chained){.chain = &r->all_reduce[i->group],
                                 .label = zero_walk_label(w, i),
                                 .own = own,
                                 .whole = whole,
                                 .staging = zero_use(w, i->staging)};
    return zero_chain_begin(&r->reducing, whole);
}

zero_status zero_run_all_reduce_wait(zero_walk *w, const zero_instruction *i)
{
    ZERO_TRY(zero_chain_wait(w->r, &w->r->reducing));
    zero_use(w, i->buffer);
    zero_use(w, i->staging);
    return ZERO_OK;
}

zero_status zero_run_gather_wait(zero_walk *w, const zero_instruction *i)
{
    return wait_for(w, i, &w->r->gather[i->group]);
}

zero_status zero_run_release(zero_walk *w, const zero_instruction *i)
{
    zero_use(w, i->buffer);
    return ZERO_OK;
}
