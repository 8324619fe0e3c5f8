#include "lesson/narrate.h"

#include <inttypes.h>

#include "base/fail.h"

zero_status zero_narrate_check(const zero_model *model, int n_ranks)
{
    if (n_ranks <= ZERO_TOLD_RANKS && model->n_params <= ZERO_NARRATE_PARAMS)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "a model of %" PRId64
                     " parameters on %d ranks cannot be told number by "
                     "number, at most %d parameters on %d ranks can: take --model lesson "
                     "--data lesson",
                     model->n_params, n_ranks, ZERO_NARRATE_PARAMS, ZERO_TOLD_RANKS);
}
void zero_narrate_instruction(const zero_narrator *n, const zero_tale *tale, int at,
                              FILE *out)
{
    (void)n;
    const zero_told *t = zero_tale_at(tale, 0, at);
    fprintf(out, "%4d op %" PRId64 "\n", at, t->op);
}

void zero_narrate_step(const zero_narrator *n, const zero_tale *tale, FILE *out)
{
    for (int at = 0; at < tale->length; at++) zero_narrate_instruction(n, tale, at, out);
}
