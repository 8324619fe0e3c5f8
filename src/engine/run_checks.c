/* VERIFY, COMPARE and RECORD: a step looks for flipped bits before its first UPDATE, because that
 * hides them. All ranks are between OVERFLOW and UPDATE then, so parameters that lie once per node do
 * not change. UPDATE itself looks at the parameters that it overwrites. */
#include <inttypes.h>

#include "base/fail.h"
#include "engine/walk.h"
#include "state/records.h"
#include "state/replicas.h"

zero_status zero_name_step(int64_t step, zero_status st)
{
    if (st != ZERO_ERR_CORRUPTED) return st;
    return zero_fail(st, "step %" PRId64 ": %s", step + 1, zero_last_error());
}

zero_status zero_run_verify(zero_walk *w, const zero_instruction *i)
{
    (void)i;
    return zero_name_step(w->in->step, zero_records_verify(w->r));
}

/* A step that overflows has no UPDATE, and a flipped bit may be why: all is compared then. */
zero_status zero_run_compare(zero_walk *w, const zero_instruction *i)
{
    (void)i;
    const zero_step_verdict verdict = w->out->verdict;
    bool has_gradient = verdict < ZERO_STEP_OVERFLOW; /* else it may be anything */
    /* The vote: ranks that were called with different steps disagree on what is due. */
    if (w->out->differs || verdict > ZERO_STEP_OVERFLOW) return ZERO_OK;
    if (has_gradient && !zero_is_compared(w->r->schedule)) return ZERO_OK;
    ZERO_TRY(zero_name_step(
        w->in->step, zero_replicas_compare_due(
                         w->r, has_gradient ? w->in->step : ZERO_ALL_STEPS, has_gradient)));
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
