#include "sharding/compile.h"

#include "base/fail.h"
#include "base/number.h"
#include "lists/member.h"
#include "nn/share.h"
#include "sharding/offload.h"
#include "sharding/stages.h"
#include "sharding/writer.h"

/* These bounds keep every size far from 2^63. */
#define MAX_TOKENS       (INT64_C(1) << 24)
#define MAX_PARAMS       (INT64_C(1) << 56)
#define MAX_ACCUMULATION (1 << (ZERO_COUNTER_LEVELS - 1))
#define MAX_PASSES       (INT64_C(1) << 20) /* of a pipeline's units in a step */

static zero_status check_input(const zero_plan_input *in)
{
    ZERO_FAIL_IF(in->n_ranks < 1 || in->accumulation < 1 || in->micro_batch < 1 ||
                     in->bucket < 1,
                 ZERO_ERR_INVALID,
                 "a plan for %d ranks, %d microbatches of %" PRId64
                 " sequences and buckets of %" PRId64 " elements: each must be at least 1",
                 in->n_ranks, in->accumulation, in->micro_batch, in->bucket);
    ZERO_FAIL_IF(in->texts < 0 || in->texts > ZERO_TEXTS, ZERO_ERR_INVALID,
                 "a plan for %" PRId64
                 " texts at one time: expected 0 to %d; generate the others later",
                 in->texts, ZERO_TEXTS);
    ZERO_FAIL_IF(in->stage < 0 || in->stage >= ZERO_STAGE_COUNT || in->prefetch < 0 ||
                     in->persist < 0,
                 ZERO_ERR_INVALID,
                 "a plan for stage %d, prefetch %" PRId64 ", persist %" PRId64
                 ": expected a stage from 0 to %d, and no negative number",
                 in->stage, in->prefetch, in->persist, ZERO_STAGE_COUNT - 1);
    ZERO_FAIL_IF(in->seq < 1 || in->seq > in->model->seq, ZERO_ERR_INVALID,
                 "a plan for sequences of %" PRId64
                 " tokens: the model takes 1 to %" PRId64,
                 in->seq, in->model->seq);
    ZERO_FAIL_IF(in->micro_batch > MAX_TOKENS / in->seq, ZERO_ERR_INVALID,
                 "a microbatch of %" PRId64 " sequences of %" PRId64
                 " tokens: expected at most 2^24 tokens; give a smaller --micro-batch",
                 in->micro_batch, in->seq);
    ZERO_FAIL_IF(in->model->n_params > MAX_PARAMS || in->accumulation > MAX_ACCUMULATION,
                 ZERO_ERR_INVALID,
                 "a plan for %" PRId64
                 " parameters and %d microbatches per rank: expected at most 2^56 and %d",
                 in->model->n_params, in->accumulation, MAX_ACCUMULATION);
    ZERO_FAIL_IF(in->message != 0 && in->message < ZERO_LEAST_MESSAGE, ZERO_ERR_INVALID,
                 "--message %" PRId64 ": expected %d bytes or more, or 0: no limit",
                 in->message, ZERO_LEAST_MESSAGE);
    ZERO_FAIL_IF(in->message != 0 &&
                     zero_algorithm_get(in->collectives)->posts_mpi_collectives,
                 ZERO_ERR_INVALID,
                 "--message %" PRId64 " with --collectives %s, which cuts messages as it "
                 "likes: use --collectives auto, p2p or hier",
                 in->message, zero_algorithm_name(in->collectives));
    ZERO_FAIL_IF(in->check_compute < 0, ZERO_ERR_INVALID,
                 "passes run twice every %d steps: expected 1 or more, or 0: never",
                 in->check_compute);
    ZERO_FAIL_IF(
        in->check_compute > 0 && zero_share_has_parts(&in->model->share), ZERO_ERR_INVALID,
        "--check-compute with --tp or --tp-slices: a pass is in parts there, which "
        "work on each other's results; leave one of them out");
    return ZERO_OK;
}

/* Only complete subtrees may move from one rank to another without changing the sum. */
static zero_status check_reproducible(const zero_plan_input *in)
{
    if (!in->reproducible) return ZERO_OK;
    ZERO_FAIL_IF(!zero_algorithm_get(in->collectives)->adds_along_tree, ZERO_ERR_INVALID,
                 "--reproducible with --collectives %s, which adds in an order of its own: "
                 "use --collectives auto",
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
    bool is_on = in->offload != ZERO_OFFLOAD_OFF, has_file = zero_plan_uses_file(in);
    ZERO_FAIL_IF(
        has_file && (in->offload_depth < 1 || in->offload_depth > ZERO_OFFLOAD_MAX_DEPTH),
        ZERO_ERR_INVALID,
        "a plan with %d blocks of a file in memory: expected 1 to %d (--offload-depth)",
        in->offload_depth, ZERO_OFFLOAD_MAX_DEPTH);
    ZERO_FAIL_IF(!has_file && (in->offload_parameters || in->offload_activations),
                 ZERO_ERR_INVALID,
                 "--offload-parameters and --offload-activations need --offload DIR, the "
                 "directory for the file");
    ZERO_FAIL_IF(is_on && in->forward_only, ZERO_ERR_INVALID,
                 "a plan without steps has no optimizer states to offload");
    ZERO_FAIL_IF(in->offload_parameters && in->stage != 3, ZERO_ERR_INVALID,
                 "--offload-parameters needs --stage 3, got stage %d: below it each rank "
                 "keeps all parameters",
                 in->stage);
    ZERO_FAIL_IF(
        in->offload_activations && !in->recompute, ZERO_ERR_INVALID,
        "--offload-activations needs --recompute: it moves what --recompute keeps");
    ZERO_FAIL_IF(in->offload_host && !in->device, ZERO_ERR_INVALID,
                 "--offload host without --device: optimizer states lie in the host's "
                 "memory already; give a device, or --offload DIR");
    ZERO_FAIL_IF(in->offload_host && !is_on, ZERO_ERR_INVALID,
                 "offload_host without offload: a plan with optimizer states in the host's "
                 "memory also says when they are updated");
    /* With `backward` a group is updated before all gradients are known. */
    bool is_early = in->offload == ZERO_OFFLOAD_BACKWARD;
    ZERO_FAIL_IF(is_early && in->type == ZERO_FP16, ZERO_ERR_INVALID,
                 "--offload-when backward with fp16, which must skip steps that overflow: "
                 "use lazy or end");
    ZERO_FAIL_IF(is_early && in->check_memory, ZERO_ERR_INVALID,
                 "--offload-when backward with --check-memory, which must look at all "
                 "states before the first update: use lazy or end");
    bool is_delayed = in->offload == ZERO_OFFLOAD_DELAYED;
    ZERO_FAIL_IF(is_delayed && in->delayed_from < 1, ZERO_ERR_INVALID,
                 "delayed updates from step %" PRId64 " on: expected 1 or more",
                 in->delayed_from);
    ZERO_FAIL_IF(is_delayed && in->check_memory, ZERO_ERR_INVALID,
                 "--delayed-update with --check-memory, which must look at all states "
                 "before the first update: give one of them");
    ZERO_FAIL_IF(is_delayed && in->offload_parameters, ZERO_ERR_INVALID,
                 "--delayed-update with --offload-parameters: the new parameters wait in "
                 "memory until the step has ended; give one of them");
    return ZERO_OK;
}

/* An optimizer that moves matrices as a whole needs each on one rank, in memory. */
static zero_status check_matrices(const zero_plan_input *in)
{
    const char *name = zero_rule_name_at(in->optimizer);
    const int T = in->model->share.ranks,
              shard = in->shard_ranks > 0 ? in->shard_ranks : in->n_ranks;
    int64_t whole = 0, largest = 0;
    if (!zero_rule_at(in->optimizer)->moves_matrices || in->forward_only) return ZERO_OK;
    for (int i = 0; i < in->model->n_tensors; i++) {
        const zero_tensor *t = &in->model->tensors[i];
        if (!zero_rule_moves_whole(in->optimizer, t)) continue;
        whole += t->rows * t->cols;
        largest = zero_max(largest, t->rows * t->cols);
    }
    ZERO_FAIL_IF(
        in->muon_type != ZERO_FP32 && in->muon_type != in->type, ZERO_ERR_INVALID,
        "--muon-type %s with --dtype %s: only a run in bf16 has tried which products "
        "of bf16 are fast; give --dtype bf16, or leave --muon-type out",
        zero_type_name(in->muon_type), zero_type_name(in->type));
    ZERO_FAIL_IF(whole == 0, ZERO_ERR_INVALID,
                 "--optimizer %s: no tensor of this model is a matrix between layers "
                 "(is_hidden in zero/model.h), so all would move as with adamw; give that",
                 name);
    ZERO_FAIL_IF(
        T > 1, ZERO_ERR_INVALID,
        "--optimizer %s with --tp %d: it moves whole matrices, of which each rank has "
        "a part. Gathering momentum and gathering the update would move %.1f MB per "
        "rank and step, and is not built: leave one of them out",
        name, T, 2e-6 * (double)(T - 1) * (double)whole * 4.0);
    ZERO_FAIL_IF(in->partition == ZERO_PARTITION_SLICE && in->stage > 0 && shard > 1,
                 ZERO_ERR_INVALID,
                 "--optimizer %s with --stage %d and --partition slice: it moves whole "
                 "matrices, and slices cut each of them among %d ranks. Gathering them for "
                 "the update would move %.1f MB per rank and step; give --partition owner, "
                 "which cuts at matrices and moves nothing more",
                 name, in->stage, shard,
                 2e-6 * 4.0 * (double)whole * (double)(shard - 1) / (double)shard);
    ZERO_FAIL_IF(zero_plan_uses_file(in), ZERO_ERR_INVALID,
                 "--optimizer %s with --offload DIR: it moves whole matrices, and states "
                 "pass through memory in blocks of %d; the largest matrix has %" PRId64
                 " elements. Leave --offload out; states are sharded from stage 1 on",
                 name, (int)ZERO_OFFLOAD_BLOCK, largest);
    return ZERO_OK;
}

static zero_status check_device(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    const char *why, *optimizer = zero_rule_name_at(in->optimizer);
    const zero_rule *rule = zero_rule_at(in->optimizer);
    bool has_kernel = !rule->move && !rule->moves_matrices;
    ZERO_FAIL_IF(in->device && !has_kernel && !zero_plan_updates_beside(in),
                 ZERO_ERR_INVALID,
                 "--optimizer %s with --device: a device has a kernel of adamw alone; give "
                 "--offload host, and the host's CPU updates beside it",
                 optimizer);
    for (int u = 0; in->device && u < model->n_units; u++)
        ZERO_FAIL_IF(!model->units[u].computes_by_layers, ZERO_ERR_INVALID,
                     "unit '%s' cannot run on a device: loops of its own would run on the "
                     "host, which cannot touch the device's memory. If all its arithmetic "
                     "goes through zero/layers.h, set its computes_by_layers",
                     model->units[u].name);
    ZERO_FAIL_IF(in->device && (in->offload_parameters || in->offload_activations),
                 ZERO_ERR_INVALID,
                 "--offload-%s with --device: only optimizer states move between a device "
                 "and a file; give one of them",
                 in->offload_parameters ? "parameters" : "activations");
    ZERO_FAIL_IF(in->ipc && !in->device, ZERO_ERR_INVALID,
                 "--device-exchange ipc without --device: ranks reach each other's memory "
                 "already; give a device as well");
    ZERO_FAIL_IF(in->ipc && !zero_plan_can_reach_devices(in, &why), ZERO_ERR_INVALID,
                 "--device-exchange ipc with %d rank%s and --collectives %s: %s; use auto "
                 "or staged, or for a plan --fake-nodes 1",
                 in->n_ranks, in->n_ranks == 1 ? "" : "s",
                 zero_algorithm_name(in->collectives), why);
    ZERO_FAIL_IF(in->device_messages && !in->device, ZERO_ERR_INVALID,
                 "--device-exchange mpi without --device: messages reach the host's memory "
                 "already; give a device as well");
    ZERO_FAIL_IF(in->device_messages && !zero_plan_can_message_devices(in, &why),
                 ZERO_ERR_INVALID,
                 "--device-exchange mpi with %d rank%s and --collectives %s: %s; use "
                 "--collectives p2p, or --device-exchange auto or staged",
                 in->n_ranks, in->n_ranks == 1 ? "" : "s",
                 zero_algorithm_name(in->collectives), why);
    return ZERO_OK;
}

/* A device's kernels and the JOINs of its memory are not built. */
static zero_status check_share(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    const zero_share *share = &model->share;
    if (!zero_share_has_parts(share) && share->ranks <= 1) return ZERO_OK;
    ZERO_FAIL_IF(share->ranks < 1 || share->rank < 0 || share->rank >= share->ranks ||
                     share->slices < share->ranks,
                 ZERO_ERR_INVALID,
                 "a plan for rank %d of %d of a TP group, with sums in %d slices: expected "
                 "a slice or more for each rank",
                 share->rank, share->ranks, share->slices);
    ZERO_FAIL_IF(in->device, ZERO_ERR_INVALID,
                 "--device with --tp %d --tp-slices %d: a device computes whole models "
                 "only, in one slice; give one of them",
                 share->ranks, share->slices);
    for (int u = 0; u < model->n_units; u++)
        ZERO_FAIL_IF(!model->units[u].part, ZERO_ERR_INVALID,
                     "unit '%s' cannot be shared by %d ranks in %d slices: its passes have "
                     "no parts (zero_unit_part in zero/model.h)",
                     model->units[u].name, share->ranks, share->slices);
    return ZERO_OK;
}

/* ---- hybrid sharding ---- */

/* R of hybrid sharding; parameters in the node's memory. */
static zero_status check_shards(const zero_plan_input *in)
{
    bool has_replicas = in->shard_ranks != 0 && in->shard_ranks != in->n_ranks;
    if (has_replicas && !zero_can_shard(in->n_ranks, in->shard_ranks)) {
        char list[ZERO_SHARD_TEXT];
        zero_list_shards(in->n_ranks, list);
        return zero_fail(ZERO_ERR_INVALID,
                         "--shard-ranks %d of %d data-parallel ranks: expected a power of "
                         "two that divides them, or all of them: %s",
                         in->shard_ranks, in->n_ranks, list);
    }
    ZERO_FAIL_IF(has_replicas && in->partition == ZERO_PARTITION_OWNER, ZERO_ERR_INVALID,
                 "--shard-ranks %d with --partition owner, whose pieces are not equally "
                 "long: replicas cannot divide them; use --partition slice",
                 in->shard_ranks);
    ZERO_FAIL_IF(has_replicas && in->device, ZERO_ERR_INVALID,
                 "--shard-ranks %d with --device: sums across replicas are not yet made "
                 "beside a device; give one of them",
                 in->shard_ranks);
    ZERO_FAIL_IF(in->node_parameters && in->stage != 3, ZERO_ERR_INVALID,
                 "--node-parameters needs --stage 3, got stage %d: below it all parameters "
                 "stay whole",
                 in->stage);
    ZERO_FAIL_IF(in->node_parameters && in->device, ZERO_ERR_INVALID,
                 "--node-parameters with --device: whole parameters lie in each rank's "
                 "device, not in the node's memory; give one of them");
    ZERO_FAIL_IF(in->node_parameters && in->partition != ZERO_PARTITION_SLICE,
                 ZERO_ERR_INVALID,
                 "--node-parameters with --partition owner, where each rank has whole "
                 "parameters by itself: use --partition slice");
    return ZERO_OK;
}

/* ---- pipelines ---- */

/* Stages 2 and 3 exchange a group at each use. Its microbatches use it one by one. */
static zero_status refuse_stage(const zero_plan_input *in)
{
    const int P = in->pp, N = in->n_ranks, times = in->stage == 2 ? 1 : 3;
    const double bytes = (double)in->model->n_params / P * (N - 1) / N * times *
                         (double)zero_type_size(in->type);
    return zero_fail(
        ZERO_ERR_INVALID,
        "--stage %d with --pp %d: a rank would send about %.3g MB of %s for each of its %d "
        "microbatches, instead of once in a step; use --stage 0 or 1",
        in->stage, P, bytes / 1e6, times == 1 ? "gradients" : "gradients and parameters",
        in->accumulation);
}

static zero_status check_pipeline(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    const int most = (int)zero_max(1, model->n_units - 2);
    ZERO_FAIL_IF(in->pp < 0 || zero_plan_stages(in) > most, ZERO_ERR_INVALID,
                 "--pp %d: each stage has a block of the model or more, and there are %d; "
                 "expected 1 to %d",
                 in->pp, most, most);
    if (zero_plan_stages(in) == 1) return ZERO_OK;
    if (in->stage > 1) return refuse_stage(in);
    ZERO_FAIL_IF(in->partition != ZERO_PARTITION_SLICE, ZERO_ERR_INVALID,
                 "--pp %d with --partition owner: that cuts the model once, so most of a "
                 "stage would lie on a few of its ranks; use --partition slice",
                 in->pp);
    ZERO_FAIL_IF((int64_t)model->n_units * in->accumulation > MAX_PASSES, ZERO_ERR_INVALID,
                 "--pp %d: %d units in %d microbatches are more than 2^20 passes; give a "
                 "smaller --global-batch",
                 in->pp, model->n_units, in->accumulation);
    return ZERO_OK;
}

/* ---- all of them ---- */

zero_status zero_check_plan_input(const zero_plan_input *in)
{
    ZERO_TRY(check_input(in));
    ZERO_TRY(check_shards(in));
    ZERO_TRY(check_reproducible(in));
    ZERO_TRY(check_offload(in));
    ZERO_TRY(check_share(in));
    ZERO_TRY(check_matrices(in));
    ZERO_TRY(check_device(in));
    ZERO_TRY(check_pipeline(in));
    /* Units compute with what the model says; plans say it again, so that ranks and
     * files can compare it. */
    const zero_model *model = in->model;
    const char *type = zero_type_name(in->activations);
    for (int u = 0; u < model->n_units; u++)
        ZERO_FAIL_IF(model->units[u].activations != in->activations, ZERO_ERR_INVALID,
                     "a plan with activations of %s, and unit '%s' has %s: "
                     "zero_model_activate() sets all units'",
                     type, model->units[u].name,
                     zero_type_name(model->units[u].activations));
    ZERO_FAIL_IF(in->activations != ZERO_FP32 && in->activations != in->type,
                 ZERO_ERR_INVALID,
                 "activations of %s with parameters of %s: expected fp32, or the type of "
                 "the parameters",
                 type, zero_type_name(in->type));
    /* The ranks of a TP group divide what all of them have; a rank alone has nothing to
     * divide. */
    ZERO_FAIL_IF(
        in->partition_activations && !in->recompute, ZERO_ERR_INVALID,
        "--partition-activations needs --recompute: it divides what --recompute keeps");
    ZERO_FAIL_IF(in->partition_activations && in->model->share.ranks <= 1, ZERO_ERR_INVALID,
                 "--partition-activations needs --tp 2 or more: the ranks of a TP group "
                 "divide the activations that all of them have; --offload-activations "
                 "moves those of any rank to a file");
    return zero_model_check_sizes(in->model, in->micro_batch, in->seq);
}
