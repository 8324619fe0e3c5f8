/* Collectives on data. One instruction begins a collective, which progresses while the
 * backend computes; its wait ends it. RELEASE only says that a gathered buffer is free.
 *
 *     REDUCE, GATHER   a group's exchanges in the shard group
 *     ALL_REDUCE       with replicas: adds the pieces of all of them; a chain
 *     JOIN             the parts of a unit's pass meet the other ranks of the TP group; a
 *                      sum is a chain, a gather is one collective
 *     KEEP, COLLECT    all ranks of a TP group have the same output: each keeps a piece of
 *                      it, and they gather the pieces before the output is read again
 *                      (writer_kept.c)
 *
 *     SEND, RECEIVE    between pipeline stages; each content is numbered by itself
 *
 * A COLLECT is in flight while the pass of another unit computes, and beside that pass's
 * JOINs. No JOIN is in flight where it begins, so all ranks of the group begin their
 * collectives in the same order. */

#include "engine/walk.h"
#include "sharding/schedule_exchange.h"

/* ---- chains ---- */

zero_status zero_chain_begin(zero_chained *c, const void *in)
{
    char *out = c->chain->n == 1 ? c->whole : c->own;
    c->begun = 1;
    for (int k = 0; k < c->chain->n; k++) c->chain->ops[k].label = c->label;
    return zero_collective_begin(&c->chain->ops[0], in, out, c->staging);
}

static zero_status begin_second(zero_chained *c)
{
    c->begun = 2;
    return zero_collective_begin(&c->chain->ops[1], c->own, c->whole, c->staging);
}

zero_status zero_chain_continue(zero_chained *c)
{
    bool done = false;
    /* --check collectives compares each begin between ranks, so the second
     * collective has to begin where the program says: at the wait (comm/divide.h).
     * The check is that of the chain's own group, because a world that is divided
     * has none. */
    if (!c->chain || c->begun == c->chain->n || c->chain->ops[0].comm->check != NULL)
        return ZERO_OK;
    ZERO_TRY(zero_collective_progress(&c->chain->ops[0], &done));
    return done ? begin_second(c) : ZERO_OK;
}

zero_status zero_chain_wait(const zero_runner *r, zero_chained *c)
{
    assert(c->chain);
    ZERO_TRY(r->poll_status);
    ZERO_TRY(zero_collective_wait(&c->chain->ops[0]));
    if (c->begun < c->chain->n) ZERO_TRY(begin_second(c));
    if (c->begun == 2) ZERO_TRY(zero_collective_wait(&c->chain->ops[1]));
    c->chain = NULL;
    return ZERO_OK;
}

/* ---- the shard group ---- */

static char *staging_at(zero_walk *w, const zero_instruction *i, int k)
{
    char *staging = zero_use(w, i->staging);
    return staging ? staging + zero_exchange_staging(w->r->schedule, i->op, i->group, k)
                   : NULL;
}

static zero_runner_exchange *exchange_of(const zero_walk *w, const zero_instruction *i)
{
    return &w->r->exchanges[zero_ops[i->op].begun_by][zero_exchange_number(i)];
}

/* Slices are exchanged by one collective; of owners, each that has a piece needs one. */
zero_status zero_run_exchange(zero_walk *w, const zero_instruction *i)
{
    const zero_partition *p = &w->r->schedule->groups[i->group].partition;
    const bool gathers = i->op == ZERO_OP_GATHER;
    const int self = w->r->shard->rank;
    zero_runner_exchange *x = exchange_of(w, i);
    /* MPI reads what the backend wrote. With a device a collective waits itself for all
     * that was computed before its begin. */
    if (!w->r->link.memory) ZERO_TRY(w->r->backend->sync(&w->r->math));
    for (int k = 0; k < x->n; k++) x->ops[k].label = zero_walk_label(w, i);
    if (w->plan->partition == ZERO_PARTITION_SLICE) {
        int64_t own = zero_partition_piece(p, self).begin;
        const void *in = gathers ? zero_use_element(w, i->in, own) : zero_use(w, i->in);
        void *out = gathers ? zero_use(w, i->buffer) : zero_use_element(w, i->buffer, own);
        return zero_collective_begin(&x->ops[0], in, out, staging_at(w, i, 0));
    }
    zero_use(w, gathers ? i->in : i->buffer);
    for (int k = 0; k < x->n; k++) {
        const int root = (int)zero_partition_owners(p).begin + k;
        int64_t begin = zero_partition_piece(p, root).begin;
        bool reads = !gathers || root == self, writes = gathers || root == self;
        ZERO_TRY(zero_collective_begin(
            &x->ops[k], reads ? zero_use_element(w, i->in, begin) : NULL,
            writes ? zero_use_element(w, i->buffer, begin) : NULL, staging_at(w, i, k)));
    }
    return ZERO_OK;
}

zero_status zero_run_release(zero_walk *w, const zero_instruction *i)
{
    zero_use(w, i->buffer);
    return ZERO_OK;
}

/* ---- other groups ---- */

/* In place: this rank's piece of the shard group's sum becomes the same piece of the sum
 * over all ranks. Each replica adds up a K-th of it. */
zero_status zero_run_all_reduce(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const zero_comm *replicas = r->replicas;
    zero_range piece =
        zero_partition_piece(&r->schedule->groups[i->group].partition, r->shard->rank);
    int64_t part = zero_range_len(piece) / replicas->size;
    char *own = zero_use_element(w, i->buffer, piece.begin + part * replicas->rank);
    char *whole = zero_use_element(w, i->buffer, piece.begin);
    r->reducing = (zero_chained){.chain = exchange_of(w, i),
                                 .label = zero_walk_label(w, i),
                                 .own = own,
                                 .whole = whole,
                                 .staging = zero_use(w, i->staging)};
    return zero_chain_begin(&r->reducing, whole);
}

zero_status zero_run_join(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const void *in = zero_use(w, i->in);
    char *joined = zero_use(w, i->buffer);
    /* This rank's piece of the sum, which it makes and the others gather. */
    int64_t piece = r->schedule->joins[i->join].count / r->tp->size;
    char *own = joined + (size_t)(piece * r->tp->rank) * sizeof(float);
    ZERO_TRY(r->backend->sync(&r->math)); /* other ranks read what the backend wrote */
    r->joining = (zero_chained){.chain = exchange_of(w, i),
                                .label = zero_walk_label(w, i),
                                .own = own,
                                .whole = joined,
                                .staging = zero_use(w, i->staging)};
    return zero_chain_begin(&r->joining, in);
}

zero_status zero_run_keep(zero_walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    const float *own = zero_use_range(w, i, i->in);
    float *kept = zero_use_range(w, i, i->buffer);
    r->backend->round(&r->math, ZERO_FP32, zero_range_len(i->range), own, kept);
    return ZERO_OK;
}

zero_status zero_run_collect(zero_walk *w, const zero_instruction *i)
{
    zero_collective *op = &exchange_of(w, i)->ops[0];
    ZERO_TRY(w->r->backend->sync(&w->r->math)); /* other ranks read what it wrote */
    op->label = zero_walk_label(w, i);
    return zero_collective_begin(op, zero_use_range(w, i, i->in), zero_use(w, i->buffer),
                                 zero_use(w, i->staging));
}

zero_status zero_run_message(zero_walk *w, const zero_instruction *i)
{
    const zero_pipe_message *m = &w->r->schedule->messages[i->join];
    zero_collective *op = &exchange_of(w, i)->ops[0];
    const bool sends = i->op == ZERO_OP_SEND;
    void *data = zero_use_range(w, i, sends ? i->in : i->buffer);
    if (!w->r->link.memory) /* as above */
        ZERO_TRY(w->r->backend->sync(&w->r->math));
    op->label = zero_walk_label(w, i);
    const int64_t number =
        w->r->messages[sends][m->content]++ * ZERO_PIPE_CONTENTS + m->content;
    return zero_collective_begin_as(op, number * w->r->pipe->size + m->from, data, data,
                                    zero_use(w, i->staging));
}

/* The collective uses its buffers until here. */
zero_status zero_run_exchange_wait(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const zero_runner_exchange *x = exchange_of(w, i);
    zero_chained *chain = i->op == ZERO_OP_ALL_REDUCE_WAIT ? &r->reducing
                          : i->op == ZERO_OP_JOIN_WAIT     ? &r->joining
                                                           : NULL;
    ZERO_TRY(r->poll_status);
    if (chain) ZERO_TRY(zero_chain_wait(r, chain));
    for (int k = 0; !chain && k < x->n; k++) ZERO_TRY(zero_collective_wait(&x->ops[k]));
    zero_use(w, i->in);
    zero_use(w, i->buffer);
    zero_use(w, i->staging);
    return ZERO_OK;
}
