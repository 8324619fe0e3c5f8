/* JOIN and JOIN_WAIT: the parts of a unit's pass meet the other ranks of the TP group.
 *
 * A sum is two collectives, of which the second needs the result of the first: a reduce-scatter,
 * so that each rank has a piece of the sum, and an all-gather of the pieces. The walk begins the
 * first; a poll during arithmetic, or the wait, begins the second. The ranks of a group have one
 * JOIN in flight at a time and begin its collectives in order, so they begin them alike. */
#include "base/fail.h"
#include "engine/walk.h"
#include "sharding/schedule_exchange.h"

static const zero_join_exchange *exchange_of(const zero_walk *w, const zero_instruction *i)
{
    return &w->r->schedule->joins[i->join];
}

/* This rank's piece of the sum, which it makes and the others gather. */
static char *own_piece(const zero_walk *w, const zero_instruction *i, char *joined)
{
    const zero_join_exchange *x = exchange_of(w, i);
    int64_t piece = x->count / w->r->tp->size;
    return joined + (size_t)(piece * w->r->tp->rank) * sizeof(float);
}

zero_status zero_run_join(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    zero_runner_join *join = &r->joins[i->join];
    const void *in = zero_use(w, i->in);
    char *joined = zero_use(w, i->buffer);
    ZERO_TRY(r->backend->sync(&r->math)); /* other ranks read what the backend wrote */
    r->joining = (zero_joining){
        .join = join, .begun = 1, .joined = joined, .staging = zero_use(w, i->staging)};
    if (join->n == 1)
        return zero_collective_begin(&join->ops[0], in, joined, r->joining.staging);
    r->joining.own = own_piece(w, i, joined);
    return zero_collective_begin(&join->ops[0], in, r->joining.own, r->joining.staging);
}

static zero_status begin_second(zero_joining *j)
{
    j->begun = 2;
    return zero_collective_begin(&j->join->ops[1], j->own, j->joined, j->staging);
}

zero_status zero_run_continue_join(zero_runner *r)
{
    zero_joining *j = &r->joining;
    bool done = false;
    /* A check compares each begin, and then needs the order of the program (comm/divide.h). */
    if (!j->join || j->begun == j->join->n || r->comm->check) return ZERO_OK;
    ZERO_TRY(zero_collective_progress(&j->join->ops[0], &done));
    return done ? begin_second(j) : ZERO_OK;
}

zero_status zero_run_join_wait(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    zero_joining *j = &r->joining;
    ZERO_TRY(r->poll_status);
    ZERO_TRY(zero_collective_wait(&j->join->ops[0]));
    if (j->begun < j->join->n) ZERO_TRY(begin_second(j));
    if (j->begun == 2) ZERO_TRY(zero_collective_wait(&j->join->ops[1]));
    r->joining = (zero_joining){.join = NULL};
    zero_use(w, i->in);
    zero_use(w, i->buffer);
    zero_use(w, i->staging);
    return ZERO_OK;
}
