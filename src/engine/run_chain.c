#include "engine/run_chain.h"

#include <assert.h>

#include "base/fail.h"

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
