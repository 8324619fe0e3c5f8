/* random_run.h - what a run of test_any_run.c is: a model, and settings on given ranks, drawn at
 * random. */
#pragma once

#include "fake/fake.h"
#include "plan/plan.h"
#include "sharding/offload.h"
#include "support/engine_test.h"
#include "support/hand_model.h"

/* The source of random numbers. */
typedef struct {
    zero_rng rng;
    uint64_t next;
} dice;

static inline int64_t roll(dice *d, int64_t n)
{
    return hand_draw(&d->rng, &d->next, n);
}

/* What is run: on which ranks, and what does not depend on them. */
typedef struct {
    zero_plan_input plan;
    zero_model whole;
    int slices;
    const zero_backend *backend;
    double clip;
    bool skips;     /* step 1, whose gradient overflows */
    int64_t number; /* of the round */
} drawn;

/* A GPT-2 in half of the cases. */
static inline void draw_shape(dice *d, int slices, zero_type activations, zero_model *model)
{
    int64_t heads = slices * (1 + roll(d, 2));
    zero_shape shape = {.layers = 1 + roll(d, 3),
                        .heads = heads,
                        .hidden = heads * (1 + roll(d, 12)),
                        .seq = 1 + roll(d, 10),
                        .vocab = slices + roll(d, 50),
                        .dropout = roll(d, 2) ? 0.1f : 0.0f,
                        .seed = 3};
    const int64_t kind = roll(d, 2 * ZERO_ARCHITECTURES);
    if (kind > ZERO_GPT2 && kind < ZERO_ARCHITECTURES) {
        shape.kind = &zero_architectures[kind];
        if (shape.kind->has & ZERO_HAS_HEADS) {
            shape.kv_heads = heads;
            shape.heads *= 1 + roll(d, 3);
            shape.head_size = 2 * (1 + roll(d, 5));
        } else {
            shape.hidden = 8 * heads * (1 + roll(d, 3));
            shape.rotary = roll(d, 2) == 0 ? 1.0 : 0.5;
        }
        shape.inner = slices * (1 + roll(d, 12));
        shape.tied = roll(d, 2) == 0;
        shape.dropout = 0.0f;
    }
    assert_ok(zero_model_build(&shape, model));
    assert_ok(zero_model_activate(model, activations));
}

/* A rank's part of a model in slices, or the whole. */
static inline const zero_model *part_of(const zero_model *whole, zero_share share,
                                        zero_model *part)
{
    if (share.slices == 1) return whole;
    assert_ok(zero_model_share(whole, share, part));
    return part;
}

static inline bool is_power_of_two(int64_t n)
{
    return (n & (n - 1)) == 0;
}

/* True if `size` neighbours lie on nodes in the same way wherever they begin, as the windows of shard
 * groups need. */
static inline bool are_even(const zero_layout *layout, int size)
{
    const int *node_of = layout->node_of;
    bool even = true;
    for (int r = size; r < layout->size; r++)
        for (int q = r / size * size; q < r; q++)
            even = even &&
                   (node_of[q] == node_of[r]) == (node_of[q % size] == node_of[r % size]);
    return even;
}

static inline zero_algorithm draw_algorithm(dice *d, zero_comm *comm)
{
    zero_algorithm algorithm = (zero_algorithm)roll(d, ZERO_ALGORITHMS);
    const zero_comm *tp = zero_comm_tp(comm);
    int shared = zero_comm_shard(comm)->size * (tp ? tp->size : 1);
    bool in_window = algorithm == ZERO_ALGORITHM_SHM || algorithm == ZERO_ALGORITHM_HIER;
    if (in_window && !are_even(&comm->layout, shared)) return ZERO_ALGORITHM_P2P;
    return in_window && comm->layout.n_nodes > 1 ? ZERO_ALGORITHM_HIER : algorithm;
}

/* True if parameters of stage 3 can wait in node memory for their next use. */
static inline bool has_node_memory(const zero_plan_input *plan, const zero_comm *shard)
{
    return plan->stage == 3 && plan->partition == ZERO_PARTITION_SLICE &&
           zero_algorithm_needs_window(plan->collectives, &shard->layout);
}

/* Neighbours in a TP group may lie otherwise on nodes in their ZeRO groups, and need other buckets. */
static inline int64_t common_least_bucket(zero_plan_input plan)
{
    int64_t least = test_least_bucket(plan), most;
    MPI_Allreduce(&least, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

/* The place of UPDATE, of states in the host's memory or in a file, and what it excludes. */
static inline void draw_tier(dice *d, drawn *w)
{
    zero_plan_input *plan = &w->plan;
    plan->offload = (zero_offload)(1 + roll(d, ZERO_OFFLOAD_PLACES - 1));
    plan->offload_depth = 1 + (int)roll(d, 4);
    plan->offload_host = plan->device && roll(d, 2) == 0;
    bool is_early = plan->offload == ZERO_OFFLOAD_BACKWARD,
         is_delayed = plan->offload == ZERO_OFFLOAD_DELAYED;
    if (is_early && plan->type == ZERO_FP16) plan->offload = ZERO_OFFLOAD_LAZY;
    if (is_early || is_delayed) plan->check_memory = false;
    if (is_early) w->clip = 0.0; /* the norm is not known yet */
    plan->delayed_from = is_delayed ? 2 : 0;
    if (plan->device) return;
    plan->offload_parameters = plan->stage == 3 && !is_delayed && roll(d, 2);
    plan->offload_activations = plan->recompute && roll(d, 2);
}

/* True if the ranks of a TP group can keep equal pieces of a block's input. */
static inline bool can_be_cut(const zero_plan_input *plan, const zero_model *model)
{
    const zero_unit *unit = &model->units[0];
    int64_t out = unit->sizes(unit, plan->micro_batch, model->seq).out;
    return model->share.ranks > 1 && zero_unit_room(unit, out) % model->share.ranks == 0;
}

/* Random settings on these ranks and nodes. */
static inline void draw_plan(dice *d, const zero_model *model, zero_comm *comm, drawn *w)
{
    const zero_comm *data = zero_comm_data(comm), *shard = zero_comm_shard(comm);
    const zero_type activations = zero_model_activations(model),
                    any = (zero_type)roll(d, 3);
    bool is_plain = model->units[0].computes_by_layers && w->slices == 1 && shard == data;
    zero_plan_input plan = {
        .stage = (int)roll(d, 4),
        .type = activations == ZERO_FP32 ? any : activations,
        .activations = activations,
        .partition = (zero_partition_scheme)roll(d, 2),
        .micro_batch = 1 + roll(d, 3),
        .accumulation = 1 + (int)roll(d, 4),
        .recompute = roll(d, 2) == 0,
        .prefetch = roll(d, 5),
        .persist = roll(d, 2) * roll(d, 2000),
        .serial = roll(d, 3) == 0,
        .forward_only = roll(d, 8) == 0,
        .check_replicas = (int)roll(d, 3),
        .check_memory = (int)roll(d, 2),
        .texts = roll(d, 3),
        .threads = 1 + roll(d, 8) / 7,
        .device = is_plain && roll(d, 3) == 0,
        .collectives = draw_algorithm(d, comm),
        .bucket = 1 << 20,
        .shard_ranks = shard == data ? 0 : shard->size,
    };
    if (plan.shard_ranks > 0) plan.partition = ZERO_PARTITION_SLICE;
    plan.node_parameters = !plan.device && has_node_memory(&plan, shard) && roll(d, 2) == 0;
    if (plan.collectives != ZERO_ALGORITHM_MPI && roll(d, 3) == 0)
        plan.message = ZERO_LEAST_MESSAGE + roll(d, 3000);
    bool may = is_power_of_two(data->size) && is_power_of_two(plan.accumulation);
    plan.reproducible = may && plan.collectives != ZERO_ALGORITHM_MPI && roll(d, 2) == 0;
    plan.partition_activations =
        plan.recompute && can_be_cut(&plan, model) && roll(d, 4) > 0;
    w->backend = roll(d, 4) > 0 ? &zero_backend_cpu : &zero_backend_naive;
    if (plan.device) w->backend = &zero_backend_fake;
    w->clip = 0.05;
    w->skips = plan.type == ZERO_FP16 && !plan.forward_only && roll(d, 2);
    w->plan = plan;
    if (!plan.forward_only && roll(d, 3) == 0) draw_tier(d, w);
    w->plan.check_compute = w->slices == 1 ? (int)roll(d, 3) : 0;
    w->plan = zero_engine_place(w->plan, model, comm);
    int64_t more = roll(d, 1000);
    if (roll(d, 3) > 0 && model->n_params < ZERO_OFFLOAD_BLOCK)
        w->plan.bucket = common_least_bucket(w->plan) + more;
}

/* Draws what pipelines have alone, and takes back what they cannot have. */
static inline void draw_stages(dice *d, drawn *w)
{
    zero_plan_input *plan = &w->plan;
    plan->stage %= 2;
    plan->pp_schedule = (zero_pipeline_kind)roll(d, ZERO_PIPELINE_KINDS);
    plan->partition = ZERO_PARTITION_SLICE;
    plan->node_parameters = plan->offload_parameters = false;
    plan->bucket = 1 << 20;
}

/* Random words, different for every sample and step. */
static inline void draw_sample(const void *arg, int64_t step, int64_t i, int64_t T,
                               void *inputs, void *targets)
{
    const zero_model *model = arg;
    zero_rng rng = {
        .purpose = ZERO_RNG_TEST, .step = (uint64_t)step, .sample = (uint64_t)i};
    size_t bytes = model->target_bytes;
    memset(targets, 0, (size_t)T * bytes);
    for (int64_t t = 0; t <= T; t++) {
        int32_t word = (int32_t)(zero_rng_bits(&rng, (uint64_t)t) % (uint64_t)model->vocab);
        if (t < T) memcpy((char *)inputs + t * 4, &word, 4);
        if (t > 0)
            memcpy((char *)targets + (size_t)(t - 1) * bytes, &word, bytes < 4 ? bytes : 4);
    }
}
