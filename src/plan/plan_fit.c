#include "plan/plan_fit.h"

#include "base/fail.h"
#include "base/number.h"
#include "nn/share.h"
#include "plan/plan.h"

/* Plans the part of a deeper model that the plan's rank has. */
static zero_status measure_part(const zero_model *whole, const zero_plan_input *input,
                                zero_plan_ledger *ledger)
{
    zero_plan_input plan = *input;
    zero_model part;
    bool is_shared = input->model && zero_share_has_parts(&input->model->share);
    plan.model = is_shared ? &part : whole;
    if (!is_shared) return zero_plan_measure(&plan, ledger);
    ZERO_TRY(zero_model_share(whole, input->model->share, &part));
    zero_status st = zero_plan_measure(&plan, ledger);
    zero_model_destroy(&part);
    return st;
}

static zero_status measure(const zero_shape *shape, const zero_plan_input *input,
                           const zero_plan_room *room, int64_t layers,
                           zero_plan_fitted *made)
{
    zero_shape deep = *shape;
    zero_plan_ledger ledger;
    ZERO_AT_END(zero_model_destroy) zero_model model = {0};
    deep.layers = layers;
    ZERO_TRY(zero_model_build(&deep, &model));
    ZERO_TRY(zero_model_activate(&model, input->activations));
    const zero_model *like = input->model;
    if (like && like->n_units > 0)
        zero_model_chunk_logits(&model, like->units[like->n_units - 1].logits);
    ZERO_TRY(measure_part(&model, input, &ledger));
    *made = (zero_plan_fitted){layers, model.n_params,
                               zero_plan_scarce(input, &ledger) + room->context,
                               input->device ? ledger.needed : 0, ledger.file_bytes};
    return ZERO_OK;
}

static bool fits(const zero_plan_fitted *f, const zero_plan_room *room)
{
    return f->needed <= room->bytes && (room->host == 0 || f->host <= room->host) &&
           (room->disk == 0 || f->file <= room->disk);
}

/* Memory grows with depth. The search doubles first, since deep models take longer to
 * plan. */
zero_status zero_plan_fit(const zero_shape *shape, const zero_plan_input *input,
                          const zero_plan_room *room, zero_plan_fitted *fitted)
{
    zero_plan_fitted best, next;
    int64_t beyond = 2;
    ZERO_TRY(measure(shape, input, room, 1, &best));
    if (!fits(&best, room)) {
        if (best.needed <= room->bytes && room->host > 0 && best.host > room->host)
            return zero_fail(
                ZERO_ERR_INVALID,
                "--fit %zu: the device would do, but not --memory-limit %zu: even with one "
                "layer the host needs %zu bytes per rank; give more bytes, more ranks, or "
                "--offload DIR where it is --offload host",
                room->bytes, room->host, best.host);
        if (best.needed <= room->bytes)
            return zero_fail(
                ZERO_ERR_INVALID,
                "--fit %zu,%zu: the memory would do, but the file does not fit the disk: "
                "even with one layer it has %zu bytes per rank; give more bytes after the "
                "comma, more ranks, or a smaller --hidden or --vocab",
                room->bytes, room->disk, best.file);
        return zero_fail(ZERO_ERR_INVALID,
                         "--fit %zu: not even one layer fits: it needs %zu bytes of memory "
                         "per rank; give more bytes, more ranks, a higher --stage, or a "
                         "smaller --hidden, --vocab or --micro-batch",
                         room->bytes, best.needed);
    }
    for (; beyond <= ZERO_MOST_LAYERS; beyond *= 2) {
        ZERO_TRY(measure(shape, input, room, beyond, &next));
        if (!fits(&next, room)) break;
        best = next;
    }
    beyond = zero_min(beyond, ZERO_MOST_LAYERS + 1);
    while (beyond - best.layers > 1) {
        int64_t middle = best.layers + (beyond - best.layers) / 2;
        ZERO_TRY(measure(shape, input, room, middle, &next));
        if (!fits(&next, room))
            beyond = middle;
        else
            best = next;
    }
    *fitted = best;
    return ZERO_OK;
}
