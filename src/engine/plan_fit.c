#include "engine/plan_fit.h"

#include "base/fail.h"
#include "base/number.h"
#include "engine/plan.h"

static zero_status measure(const zero_gpt2_shape *shape, const zero_plan_input *input,
                           int64_t layers, zero_plan_fitted *made)
{
    zero_gpt2_shape deep = *shape;
    zero_plan_input plan = *input;
    zero_plan_ledger ledger;
    zero_model model;
    deep.layers = layers;
    ZERO_TRY(zero_gpt2_describe(&deep, &model));
    plan.model = &model;
    zero_status st = zero_plan_measure(&plan, &ledger);
    if (st == ZERO_OK)
        *made =
            (zero_plan_fitted){layers, model.n_params, ledger.needed, ledger.file_bytes};
    zero_model_destroy(&model);
    return st;
}

static bool fits(const zero_plan_fitted *f, size_t bytes, size_t disk)
{
    return f->needed <= bytes && (disk == 0 || f->file <= disk);
}

static zero_status fail_too_small(const zero_plan_fitted *least, size_t bytes, size_t disk)
{
    if (least->needed <= bytes)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--fit %zu,%zu: the memory would do, but the file does not fit the "
            "disk: even with one layer it has %zu bytes per rank; give more "
            "bytes after the comma, more ranks, or a smaller --hidden or "
            "--vocab",
            bytes, disk, least->file);
    return zero_fail(
        ZERO_ERR_INVALID,
        "--fit %zu: not even one layer fits: it needs %zu bytes of memory per rank; give "
        "more bytes, "
        "more ranks, a higher --stage, or a smaller --hidden, --vocab or --micro-batch",
        bytes, least->needed);
}

/* Memory grows with depth. The search doubles first, since deep models take longer to plan. */
zero_status zero_plan_fit(const zero_gpt2_shape *shape, const zero_plan_input *input,
                          size_t bytes, size_t disk, zero_plan_fitted *fitted)
{
    zero_plan_fitted best, next;
    int64_t beyond = 2;
    ZERO_TRY(measure(shape, input, 1, &best));
    if (!fits(&best, bytes, disk)) return fail_too_small(&best, bytes, disk);
    for (; beyond <= ZERO_GPT2_LAYERS; beyond *= 2) {
        ZERO_TRY(measure(shape, input, beyond, &next));
        if (!fits(&next, bytes, disk)) break;
        best = next;
    }
    beyond = zero_min(beyond, ZERO_GPT2_LAYERS + 1);
    while (beyond - best.layers > 1) {
        int64_t middle = best.layers + (beyond - best.layers) / 2;
        ZERO_TRY(measure(shape, input, middle, &next));
        if (!fits(&next, bytes, disk))
            beyond = middle;
        else
            best = next;
    }
    *fitted = best;
    return ZERO_OK;
}
