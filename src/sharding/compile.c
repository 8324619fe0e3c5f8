#include "sharding/compile.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "io/scratch_file.h"
#include "nn/share.h"
#include "sharding/checks.h"
#include "sharding/offload.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"
#include "sharding/stages.h"
#include "sharding/writer.h"

/* ---- checks ---- */

/* These bounds keep every size far from 2^63. */
#define MAX_TOKENS       (INT64_C(1) << 24)
#define MAX_PARAMS       (INT64_C(1) << 56)
#define MAX_ACCUMULATION (1 << (ZERO_COUNTER_LEVELS - 1))

static zero_status check_sizes(const zero_plan_input *in)
{
    if (in->micro_batch > MAX_TOKENS / in->seq)
        return zero_fail(
            ZERO_ERR_INVALID,
            "a microbatch of %" PRId64 " sequences of %" PRId64
            " tokens: expected at most 2^24 tokens; give a smaller --micro-batch",
            in->micro_batch, in->seq);
    if (in->model->n_params <= MAX_PARAMS && in->accumulation <= MAX_ACCUMULATION)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "a plan for %" PRId64
                     " parameters and %d microbatches per rank: expected at most 2^56 and "
                     "%d",
                     in->model->n_params, in->accumulation, MAX_ACCUMULATION);
}

static zero_status check_input(const zero_plan_input *in)
{
    if (in->n_ranks < 1 || in->accumulation < 1 || in->micro_batch < 1 || in->bucket < 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for %d ranks, %d microbatches of %" PRId64
                         " sequences and buckets of %" PRId64 " elements: each must be at "
                         "least 1",
                         in->n_ranks, in->accumulation, in->micro_batch, in->bucket);
    if (in->stage < 0 || in->stage >= ZERO_STAGE_COUNT || in->prefetch < 0 ||
        in->persist < 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for stage %d, prefetch %" PRId64 ", persist %" PRId64
                         ": expected a stage from 0 to %d, and no negative number",
                         in->stage, in->prefetch, in->persist, ZERO_STAGE_COUNT - 1);
    if (in->seq < 1 || in->seq > in->model->seq)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for sequences of %" PRId64
                         " tokens: the model takes 1 to %" PRId64,
                         in->seq, in->model->seq);
    return check_sizes(in);
}

/* Only complete subtrees may move from one rank to another without changing the sum. */
static zero_status check_reproducible(const zero_plan_input *in)
{
    if (!in->reproducible) return ZERO_OK;
    if (!zero_algorithm_get(in->collectives)->adds_along_tree)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--reproducible with --collectives %s, which adds in an order of its own: use "
            "--collectives auto",
            zero_algorithm_name(in->collectives));
    if (zero_is_power_of_two(in->n_ranks) && zero_is_power_of_two(in->accumulation))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--reproducible needs powers of two, got %d ranks x %d microbatches: "
                     "change the ranks, --global-batch or --micro-batch",
                     in->n_ranks, in->accumulation);
}

static zero_status check_offload(const zero_plan_input *in)
{
    bool is_on = in->offload != ZERO_OFFLOAD_OFF;
    if (is_on && (in->offload_depth < 1 || in->offload_depth > ZERO_OFFLOAD_MAX_DEPTH))
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan with %d blocks of a file in memory: expected 1 to %d "
                         "(--offload-depth)",
                         in->offload_depth, ZERO_OFFLOAD_MAX_DEPTH);
    if (!is_on && (in->offload_parameters || in->offload_activations))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--offload-parameters and --offload-activations need --offload DIR, "
            "the directory for the file");
    if (is_on && in->forward_only)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan without steps has no optimizer states to offload");
    if (in->offload_parameters && in->stage != 3)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload-parameters needs --stage 3, got stage %d: below it "
                         "each rank keeps all parameters",
                         in->stage);
    if (in->offload_activations && !in->recompute)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload-activations needs --recompute: it moves what "
                         "--recompute keeps");
    return ZERO_OK;
}

static zero_status check_device(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    for (int u = 0; in->device && u < model->n_units; u++)
        if (!model->units[u].computes_by_layers)
            return zero_fail(ZERO_ERR_INVALID,
                             "unit '%s' cannot run on a device: loops of its own would run "
                             "on the host, which cannot touch the device's memory. If all "
                             "its arithmetic goes through zero/layers.h, set its "
                             "computes_by_layers",
                             model->units[u].name);
    if (in->device && in->offload != ZERO_OFFLOAD_OFF)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload with --device: optimizer states in a file are not "
                         "yet updated beside a device; give one of them");
    return ZERO_OK;
}

static zero_status check_offload_host(const zero_plan_input *in)
{
    if (!in->offload_host) return ZERO_OK;
    if (!in->device)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload host without --device: optimizer states lie in the "
                         "host's memory already; give a device, or --offload DIR");
    if (in->offload != ZERO_OFFLOAD_OFF)
        return zero_fail(ZERO_ERR_INVALID,
                         "optimizer states in the host's memory and in a file: give one "
                         "--offload");
    if (in->forward_only)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan without steps has no optimizer states to offload");
    return ZERO_OK;
}

static zero_status check_delayed(const zero_plan_input *in)
{
    if (in->offload != ZERO_OFFLOAD_DELAYED) return ZERO_OK;
    if (in->delayed_from < 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "delayed updates from step %" PRId64 " on: expected 1 or more",
                         in->delayed_from);
    if (in->check_memory)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--delayed-update with --check-memory, which must look at all states "
            "before the first update: give one of them");
    if (!in->offload_parameters) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--delayed-update with --offload-parameters: the new parameters "
                     "wait in memory until the step has ended; give one of them");
}

/* With `backward` a group is updated before all gradients are known. */
static zero_status check_backward(const zero_plan_input *in)
{
    if (in->offload != ZERO_OFFLOAD_BACKWARD) return ZERO_OK;
    if (in->type == ZERO_FP16)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload-when backward with fp16, which must skip steps that "
                         "overflow: use lazy or end");
    if (in->check_memory)
        return zero_fail(ZERO_ERR_INVALID,
                         "--offload-when backward with --check-memory, which must look at "
                         "all states before the first update: use lazy or end");
    return ZERO_OK;
}

/* A device's kernels and the JOINs of its memory are not built. */
static zero_status check_share(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    const zero_share *share = &model->share;
    if (!zero_share_has_parts(share) && share->ranks <= 1) return ZERO_OK;
    if (share->ranks < 1 || share->rank < 0 || share->rank >= share->ranks ||
        share->slices < share->ranks)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for rank %d of %d of a TP group, with sums in %d slices: "
                         "expected a slice or more for each rank",
                         share->rank, share->ranks, share->slices);
    if (in->device)
        return zero_fail(ZERO_ERR_INVALID,
                         "--device with --tp %d --tp-slices %d: a device computes whole "
                         "models only, in one slice; give one of them",
                         share->ranks, share->slices);
    for (int u = 0; u < model->n_units; u++)
        if (!model->units[u].part)
            return zero_fail(ZERO_ERR_INVALID,
                             "unit '%s' cannot be shared by %d ranks in %d slices: its "
                             "passes have no parts (zero_unit_part in zero/model.h)",
                             model->units[u].name, share->ranks, share->slices);
    return ZERO_OK;
}

/* ---- nodes ---- */

static zero_status check_layout(const zero_layout *layout, const char *of, int n, int rank)
{
    if (layout->size == n && rank >= 0 && rank < n) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "a plan for rank %d of %d%s, on nodes of %d ranks",
                     rank, n, of, layout->size);
}

/* Two ranks are on one node if they are in both groups. This is exact if all TP groups are
 * spread over nodes in the same way, and no node has parts of two of them, unless both are
 * whole there. */
static zero_status number_world(zero_schedule *s)
{
    const zero_layout *data = zero_schedule_layout(s), *tp = zero_schedule_tp_layout(s);
    int n = data->size * tp->size;
    int *ids = malloc((size_t)n * sizeof *ids);
    if (!ids) return zero_fail(ZERO_ERR_NOMEM, "no memory for the nodes of %d ranks", n);
    for (int r = 0; r < n; r++)
        ids[r] = data->node_of[r / tp->size] * tp->n_nodes + tp->node_of[r % tp->size];
    zero_status st = zero_layout_init(&s->world_layout, n, ids);
    free(ids);
    return st;
}

static zero_status choose_tp_layout(zero_schedule *s)
{
    const zero_share *share = &s->input.model->share;
    if (!zero_share_has_parts(share)) return ZERO_OK;
    if (!s->input.tp_layout)
        ZERO_TRY(zero_layout_init_blocks(&s->own_tp_layout, share->ranks, 1));
    ZERO_TRY(check_layout(zero_schedule_tp_layout(s), " of a TP group", share->ranks,
                          share->rank));
    return number_world(s);
}

static zero_status choose_layout(zero_schedule *s)
{
    int n = s->input.n_ranks;
    if (!s->input.layout) ZERO_TRY(zero_layout_init_blocks(&s->own_layout, n, n));
    ZERO_TRY(check_layout(zero_schedule_layout(s), "", n, s->input.rank));
    return choose_tp_layout(s);
}

/* ---- groups ---- */

static zero_status cut_groups(zero_schedule *s, int64_t *n_params, zero_partition *parts)
{
    const zero_model *model = s->input.model;
    if (!s->groups || !n_params || !parts)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d groups", model->n_groups);
    for (int g = 0; g < model->n_groups; g++) n_params[g] = model->groups[g].n_params;
    ZERO_TRY(zero_partition_cut(s->input.partition, s->input.n_ranks, model->n_groups,
                                n_params, parts));
    for (int g = 0; g < model->n_groups; g++) {
        zero_group_state *state = &s->groups[g];
        state->partition = parts[g];
        state->param = state->grad = state->sum = ZERO_NO_BUFFER;
        state->master = state->momentum = state->variance = ZERO_NO_BUFFER;
        state->gather_staging = state->records = ZERO_NO_BUFFER;
        state->first_block = state->first_param_block = ZERO_NO_BUFFER;
        state->late_grad = state->late_param = ZERO_NO_BUFFER;
        state->host_grad = state->host_param = ZERO_NO_BUFFER;
    }
    return ZERO_OK;
}

static zero_status add_groups(zero_schedule *s)
{
    size_t n = (size_t)s->input.model->n_groups;
    int64_t *n_params = calloc(n, sizeof *n_params);
    zero_partition *parts = calloc(n, sizeof *parts);
    s->groups = calloc(n, sizeof *s->groups);
    zero_status st = cut_groups(s, n_params, parts);
    free(n_params);
    free(parts);
    return st;
}

/* ---- compiling ---- */

static void add_scratch(zero_schedule *s)
{
    size_t bytes = (size_t)zero_math_scratch() * sizeof(float);
    s->scratch = zero_schedule_add_buffer(s, (zero_buffer){.class = ZERO_CLASS_WORKSPACE,
                                                           .program = ZERO_PROGRAM_ALL,
                                                           .bytes = bytes});
}

static zero_schedule begin(const zero_plan_input *input)
{
    bool is_moved = input->offload != ZERO_OFFLOAD_OFF;
    size_t align = is_moved ? ZERO_SCRATCH_ALIGN : ZERO_BUFFER_ALIGN;
    return (zero_schedule){.input = *input,
                           .check = ZERO_NO_BUFFER,
                           .first_slot = ZERO_NO_BUFFER,
                           .first_tokens = ZERO_NO_BUFFER,
                           .squares = ZERO_NO_BUFFER,
                           .squares_host = ZERO_NO_BUFFER,
                           .first_chunk = ZERO_NO_BUFFER,
                           .align = input->device ? zero_max_size(align, ZERO_MEMORY_ALIGN)
                                                  : align};
}

/* Adds the buffers that live for the whole run. */
static zero_status hold(zero_schedule *s)
{
    ZERO_TRY(check_input(&s->input));
    ZERO_TRY(check_reproducible(&s->input));
    ZERO_TRY(check_offload(&s->input));
    ZERO_TRY(check_offload_host(&s->input));
    ZERO_TRY(check_backward(&s->input));
    ZERO_TRY(check_delayed(&s->input));
    ZERO_TRY(check_share(&s->input));
    ZERO_TRY(check_device(&s->input));
    ZERO_TRY(zero_model_check_sizes(s->input.model, s->input.micro_batch, s->input.seq));
    ZERO_TRY(choose_layout(s));
    ZERO_TRY(add_groups(s));
    add_scratch(s);
    zero_stage_at(s->input.stage)->hold(s);
    zero_offload_hold_slots(s);
    if (s->input.device) zero_device_hold(s);
    if (!s->input.forward_only) zero_hold_checks(s);
    return s->status;
}

static zero_status compile(zero_schedule *s)
{
    ZERO_TRY(hold(s));
    ZERO_TRY(zero_schedule_check_exchange(s));
    zero_stage_at(s->input.stage)->write(s);
    ZERO_TRY(s->status);
    ZERO_TRY(zero_schedule_check_joins(s));
    ZERO_TRY(zero_schedule_lay_out(s));
    return zero_schedule_count_traffic(s);
}

zero_status zero_schedule_compile(zero_schedule *s, const zero_plan_input *input)
{
    *s = begin(input);
    zero_status st = compile(s);
    if (st != ZERO_OK) zero_schedule_destroy(s);
    return st;
}

/* ---- the least ---- */

/* Bytes of activations that no order of instructions avoids: when the last unit's forward runs,
 * every other unit still has its output, and what it saved unless that is computed again. */
static size_t least_activations(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    int64_t floats = 0;
    if (in->forward_only) return 0;
    for (int u = 0; u < model->n_units; u++) {
        const zero_unit *unit = &model->units[u];
        zero_unit_sizes sizes = unit->sizes(unit, in->micro_batch, in->seq);
        bool is_last = u == model->n_units - 1;
        floats += in->offload_activations ? 0 : sizes.out;
        floats += in->recompute && !is_last ? 0 : sizes.saved;
    }
    return (size_t)floats * sizeof(float);
}

static int64_t least_instructions(const zero_plan_input *in)
{
    int64_t units = in->model->n_units;
    return in->forward_only ? units : 2 * units * in->accumulation;
}

zero_status zero_schedule_least(const zero_plan_input *input, zero_schedule_bound *least)
{
    zero_schedule s = begin(input);
    zero_status st = hold(&s);
    if (st == ZERO_OK) {
        zero_schedule_place_persistent(&s);
        size_t beside = s.host_bytes + s.window_bytes + s.tp_window_bytes;
        *least = (zero_schedule_bound){.bytes = s.own_bytes + least_activations(input) +
                                                (input->device ? 0 : beside),
                                       .host_bytes = input->device ? beside : 0,
                                       .instructions = least_instructions(input)};
    }
    zero_schedule_destroy(&s);
    return st;
}
