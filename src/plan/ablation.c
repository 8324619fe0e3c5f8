#include "plan/ablation.h"

#include "base/fail.h"
#include "base/number.h"

const char *zero_ablation_name(zero_ablated part)
{
    static const char *const names[] = {"recompute", "P_a", "stage", "bucket", "C_B"};
    return names[part];
}

static zero_status measure(const zero_plan_input *in, zero_ablation_line *line)
{
    zero_plan_ledger ledger;
    if (!line->is_used) return ZERO_OK;
    zero_status st = zero_plan_measure(in, &ledger);
    line->is_possible = st == ZERO_OK;
    if (st == ZERO_OK) line->needed = zero_plan_scarce(in, &ledger);
    if (st != ZERO_ERR_INVALID) return st;
    snprintf(line->why_not, sizeof line->why_not, "%s", zero_last_error());
    return ZERO_OK;
}

zero_status zero_plan_ablate(const zero_schedule *s, zero_ablation *ablation)
{
    zero_ablation a = {.alive = s->peak_bytes};
    zero_plan_input without[ZERO_ABLATIONS];
    zero_plan_ledger given;
    zero_plan_add_up(s, &given);
    a.needed = zero_plan_scarce(&s->input, &given);
    a.arena = s->own_bytes + (s->input.device ? 0 : s->window_bytes + s->tp_window_bytes);
    for (int p = 0; p < ZERO_ABLATIONS; p++) without[p] = s->input;
    zero_plan_input *in = &without[ZERO_ABLATE_RECOMPUTE];
    zero_ablation_line *line = &a.of[ZERO_ABLATE_RECOMPUTE];
    line->is_used = in->recompute; /* P_a and the file take what it keeps */
    in->recompute = false;
    in->offload_activations = 0;
    in->partition_activations = 0;
    snprintf(line->instead, sizeof line->instead, "all activations kept");

    in = &without[ZERO_ABLATE_PARTITION];
    line = &a.of[ZERO_ABLATE_PARTITION];
    line->is_used = in->partition_activations;
    in->partition_activations = 0;
    snprintf(line->instead, sizeof line->instead, "whole activations kept");

    /* Only the last stage has pieces of parameters, which a file takes or a node
     * gathers. */
    in = &without[ZERO_ABLATE_STAGE];
    line = &a.of[ZERO_ABLATE_STAGE];
    line->is_used = in->stage > 0;
    if (line->is_used)
        snprintf(line->instead, sizeof line->instead, "stage %d", --in->stage);
    in->offload_parameters = 0;
    in->node_parameters = 0;

    in = &without[ZERO_ABLATE_BUCKET];
    line = &a.of[ZERO_ABLATE_BUCKET];
    int64_t largest = 1;
    for (int g = 0; g < s->input.model->n_groups; g++)
        largest = zero_max(largest, s->groups[g].partition.padded);
    line->is_used = in->bucket < largest;
    in->bucket = zero_max(in->bucket, largest);
    snprintf(line->instead, sizeof line->instead, "--bucket %" PRId64, in->bucket);

    for (int p = 0; p < ZERO_ABLATE_CONSTANT_BUFFERS; p++)
        ZERO_TRY(measure(&without[p], &a.of[p]));
    line = &a.of[ZERO_ABLATE_CONSTANT_BUFFERS];
    *line = (zero_ablation_line){.is_used = true,
                                 .is_possible = true,
                                 .needed = a.needed +
                                           (size_t)s->input.model->n_params * sizeof(float),
                                 .by_formula = true};
    snprintf(line->instead, sizeof line->instead, "a fused fp32 buffer, 4 Psi");
    *ablation = a;
    return ZERO_OK;
}
