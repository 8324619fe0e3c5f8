/* VERIFY, COMPARE and RECORD: a step looks for flipped bits before its first UPDATE, because that
 * hides them. All ranks are between OVERFLOW and UPDATE then, so parameters that lie once per node
 * do not change. */
#include <inttypes.h>

#include "base/fail.h"
#include "engine/records.h"
#include "engine/replicas.h"
#include "engine/walk.h"

static zero_status name_step(const zero_walk *w, zero_status st)
{
    if (st != ZERO_ERR_CORRUPTED) return st;
    return zero_fail(st, "step %" PRId64 ": %s", w->in->step + 1, zero_last_error());
}

zero_status zero_run_verify(zero_walk *w, const zero_instruction *i)
{
    (void)i;
    return name_step(w, zero_records_verify(w->r));
}

zero_status zero_run_compare(zero_walk *w, const zero_instruction *i)
{
    (void)i;
    /* The vote: ranks that were called with different steps disagree on which one is due. */
    if (w->out->differs || w->out->verdict > ZERO_STEP_OVERFLOW) return ZERO_OK;
    if ((w->in->step + 1) % w->plan->check_replicas != 0) return ZERO_OK;
    bool has_gradient = w->out->verdict < ZERO_STEP_OVERFLOW; /* else it may be anything */
    ZERO_TRY(name_step(w, zero_replicas_compare(w->r, has_gradient)));
    w->r->compares++;
    return ZERO_OK;
}

/* Does nothing where UPDATE left the states as they are. A device's failure waits for the next vote:
 * the other ranks continue this step. */
zero_status zero_run_record(zero_walk *w, const zero_instruction *i)
{
    if (!w->update.is_due) return ZERO_OK;
    zero_status st = zero_records_take(w->r, i->group);
    return w->r->link.has_failed ? ZERO_OK : st;
}
