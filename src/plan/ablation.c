#include "plan/ablation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "sharding/stages.h"

#define FLOAT sizeof(float)

const char *zero_ablation_name(zero_ablated part)
{
    static const char *const names[ZERO_ABLATIONS] = {[ZERO_ABLATE_RECOMPUTE] = "recompute",
                                                      [ZERO_ABLATE_PARTITION] = "P_a",
                                                      [ZERO_ABLATE_STAGE] = "stage",
                                                      [ZERO_ABLATE_BUCKET] = "bucket",
                                                      [ZERO_ABLATE_CONSTANT_BUFFERS] =
                                                          "C_B"};
    return names[part];
}

/* ---- one part taken away ---- */

/* P_a and the file take what --recompute keeps. */
static void take_recompute(zero_plan_input *in, zero_ablation_line *line)
{
    line->is_used = in->recompute;
    in->recompute = false;
    in->offload_activations = 0;
    in->partition_activations = 0;
    snprintf(line->instead, sizeof line->instead, "all activations kept");
}

static void take_partition(zero_plan_input *in, zero_ablation_line *line)
{
    line->is_used = in->partition_activations;
    in->partition_activations = 0;
    snprintf(line->instead, sizeof line->instead, "whole activations kept");
}

/* Only the last stage has pieces of parameters, which a file takes or a node gathers. */
static void take_stage(zero_plan_input *in, zero_ablation_line *line)
{
    line->is_used = in->stage > 0;
    if (!line->is_used) return;
    in->stage--;
    in->offload_parameters = 0;
    in->node_parameters = 0;
    snprintf(line->instead, sizeof line->instead, "stage %d", in->stage);
}

static int64_t largest_group(const zero_schedule *s)
{
    int64_t most = 1;
    for (int g = 0; g < s->input.model->n_groups; g++)
        most = zero_max(most, s->groups[g].partition.padded);
    return most;
}

static void take_bucket(const zero_schedule *s, zero_plan_input *in,
                        zero_ablation_line *line)
{
    int64_t most = largest_group(s);
    line->is_used = in->bucket < most;
    in->bucket = zero_max(in->bucket, most);
    snprintf(line->instead, sizeof line->instead, "--bucket %" PRId64, in->bucket);
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

static void add_fused_buffer(const zero_schedule *s, size_t needed,
                             zero_ablation_line *line)
{
    size_t psi = (size_t)s->input.model->n_params;
    *line = (zero_ablation_line){.is_used = true,
                                 .is_possible = true,
                                 .needed = needed + psi * FLOAT,
                                 .by_formula = true};
    snprintf(line->instead, sizeof line->instead, "a fused fp32 buffer, 4 Psi");
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
    take_recompute(&without[ZERO_ABLATE_RECOMPUTE], &a.of[ZERO_ABLATE_RECOMPUTE]);
    take_partition(&without[ZERO_ABLATE_PARTITION], &a.of[ZERO_ABLATE_PARTITION]);
    take_stage(&without[ZERO_ABLATE_STAGE], &a.of[ZERO_ABLATE_STAGE]);
    take_bucket(s, &without[ZERO_ABLATE_BUCKET], &a.of[ZERO_ABLATE_BUCKET]);
    for (int p = 0; p < ZERO_ABLATE_CONSTANT_BUFFERS; p++)
        ZERO_TRY(measure(&without[p], &a.of[p]));
    add_fused_buffer(s, a.needed, &a.of[ZERO_ABLATE_CONSTANT_BUFFERS]);
    *ablation = a;
    return ZERO_OK;
}
