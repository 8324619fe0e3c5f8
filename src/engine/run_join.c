/* JOIN and JOIN_WAIT: the parts of a unit's pass meet the other ranks of the TP group. A
 * sum is a chain of two collectives (run_chain.h), a gather is one. */
#include "base/fail.h"
#include "engine/run_chain.h"
#include "engine/walk.h"
#include "sharding/schedule_exchange.h"

/* This rank's piece of the sum, which it makes and the others gather. */
static char *own_piece(const zero_walk *w, const zero_instruction *i, char *joined)
{
    const zero_join_exchange *x = &w->r->schedule->joins[i->join];
    int64_t piece = x->count / w->r->tp->size;
    return joined + (size_t)(piece * w->r->tp->rank) * sizeof(float);
}

zero_status zero_run_join(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const void *in = zero_use(w, i->in);
    char *joined = zero_use(w, i->buffer);
    ZERO_TRY(r->backend->sync(&r->math)); /* other ranks read what the backend wrote */
    r->joining = (zero_chained){.chain = &r->joins[i->join],
                                .label = zero_walk_label(w, i),
                                .own = own_piece(w, i, joined),
                                .whole = joined,
                                .staging = zero_use(w, i->staging)};
    return zero_chain_begin(&r->joining, in);
}

zero_status zero_run_join_wait(zero_walk *w, const zero_instruction *i)
{
    ZERO_TRY(zero_chain_wait(w->r, &w->r->joining));
    zero_use(w, i->in);
    zero_use(w, i->buffer);
    zero_use(w, i->staging);
    return ZERO_OK;
}
