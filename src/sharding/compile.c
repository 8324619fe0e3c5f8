#include "sharding/compile.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "io/scratch_file.h"
#include "lists/member.h"
#include "nn/share.h"
#include "sharding/checks.h"
#include "sharding/holdings.h"
#include "sharding/offload.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"
#include "sharding/writer.h"

/* ---- nodes ---- */

static zero_status check_layout(const zero_layout *layout, const char *of, int n, int rank)
{
    if (layout->size == n && rank >= 0 && rank < n) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "a plan for rank %d of %d%s, on nodes of %d ranks",
                     rank, n, of, layout->size);
}

/* Two ranks are on one node if they are in all three groups. This is exact if all TP groups
 * are spread over nodes in the same way, and no node has parts of two of them, unless both
 * are whole there. */
static zero_status number_world(zero_schedule *s)
{
    const zero_layout *data = zero_schedule_data_layout(s),
                      *tp = zero_schedule_tp_layout(s), *pp = zero_schedule_pp_layout(s);
    const int T = s->model->share.ranks, N = data->size, n = s->pipe.n_stages * N * T;
    ZERO_FREED int *ids = NULL;
    ZERO_TRY(zero_new(&ids, n, "ranks of the world"));
    for (int r = 0; r < n; r++) {
        const int stage = s->pipe.n_stages > 1 ? pp->node_of[r / (N * T)] : 0;
        ids[r] = (stage * data->n_nodes + data->node_of[r / T % N]) * T +
                 (T > 1 ? tp->node_of[r % T] : 0);
    }
    return zero_layout_init(&s->own_world_layout, n, ids);
}

/* The places of a shard group's ranks. */
enum spread { ALL_APART, ONE_NODE, SEVERAL_NODES };

/* Looks at neighbours only: algorithms that share memory have the ranks of a node in
 * blocks. */
static enum spread spread_of(const zero_layout *data, int first, int size)
{
    int together = 0;
    for (int rank = first + 1; rank < first + size; rank++)
        together += data->node_of[rank] == data->node_of[rank - 1];
    return together == 0 ? ALL_APART : together == size - 1 ? ONE_NODE : SEVERAL_NODES;
}

/* If the algorithm shares memory, checks that all shard groups, each of `size` neighbouring
 * data ranks, are spread over nodes alike. */
static zero_status check_shard_nodes(const zero_plan_input *in, const zero_layout *data,
                                     int size)
{
    if (!zero_algorithm_get(in->collectives)->works_in_window) return ZERO_OK;
    for (int first = size; first < data->size; first += size)
        ZERO_FAIL_IF(spread_of(data, first, size) != spread_of(data, 0, size),
                     ZERO_ERR_INVALID,
                     "--shard-ranks %d: ranks 0 to %d are spread over nodes in another way "
                     "than ranks %d to %d, but all shard groups must share memory alike: "
                     "use --collectives p2p, or put a multiple of %d ranks on each node",
                     size, size - 1, first, first + size - 1, size);
    return ZERO_OK;
}

/* With node_parameters, checks that there is node memory. The schedule has its layouts. */
static zero_status check_node_memory(const zero_schedule *s)
{
    if (!s->input.node_parameters || zero_schedule_shares(s)) return ZERO_OK;
    zero_algorithm given = s->input.collectives;
    const char *remedy = "use --collectives auto, shm or hier, and ";
    if (zero_algorithm_get(given)->works_in_window) remedy = "";
    return zero_fail(
        ZERO_ERR_INVALID,
        "--node-parameters with --collectives %s, where no two ranks that shard together "
        "share a node's memory: %sput several of them on each node",
        zero_algorithm_name(given), remedy);
}

static zero_status choose_layout(zero_schedule *s)
{
    int n = s->input.n_ranks;
    if (!s->input.layout) ZERO_TRY(zero_layout_init_blocks(&s->own_layout, n, n));
    ZERO_TRY(check_layout(zero_schedule_data_layout(s), "", n, s->input.rank));
    if (s->shard.replicas > 1) {
        const zero_layout *data = zero_schedule_data_layout(s);
        const zero_division divided = {.size = n, .tp = 1, .shard = s->shard.size};
        zero_member shard = zero_member_of(ZERO_SHARD_GROUP, &divided, s->input.rank);
        zero_member replica = zero_member_of(ZERO_REPLICA_GROUP, &divided, s->input.rank);
        ZERO_TRY(check_shard_nodes(&s->input, data, s->shard.size));
        ZERO_TRY(zero_member_layout(&shard, data, &s->shard_layout));
        ZERO_TRY(zero_member_layout(&replica, data, &s->replica_layout));
    }
    ZERO_TRY(check_node_memory(s));
    const zero_share *share = &s->model->share;
    const int P = s->pipe.n_stages;
    if (!zero_share_has_parts(share) && P == 1) return ZERO_OK;
    if (!s->input.tp_layout)
        ZERO_TRY(zero_layout_init_blocks(&s->own_tp_layout, share->ranks, 1));
    ZERO_TRY(check_layout(zero_schedule_tp_layout(s), " of a TP group", share->ranks,
                          share->rank));
    if (!s->input.pp_layout) ZERO_TRY(zero_layout_init_blocks(&s->own_pp_layout, P, P));
    ZERO_TRY(check_layout(zero_schedule_pp_layout(s), " of a pipeline", P, s->pipe.stage));
    if (!s->input.world_layout) ZERO_TRY(number_world(s));
    return check_layout(zero_schedule_world_layout(s), " of all TP groups",
                        P * s->input.n_ranks * share->ranks, zero_schedule_world_rank(s));
}

/* ---- pipeline stages ---- */

/* The units between the first and the last are dealt evenly. Those two go to the stages of
 * their neighbours. */
static int first_of(const zero_plan_input *in, int stage)
{
    const int64_t P = zero_plan_stages(in), between = in->model->n_units - 2;
    return stage == 0   ? 0
           : stage == P ? in->model->n_units
                        : 1 + (int)(between * stage / P);
}

static int stage_of(const zero_plan_input *in, int u)
{
    int stage = 0;
    while (first_of(in, stage + 1) <= u) stage++;
    return stage;
}

static bool reads(const zero_model *model, int u, int g)
{
    for (int k = 0; k < model->units[u].n_groups; k++)
        if (model->units[u].groups[k] == g) return true;
    return false;
}

static zero_pipeline_place pipe_place(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    zero_pipeline_place p = {.n_stages = zero_plan_stages(in), .stage = in->pp_stage};
    if (!model) return p;
    p.end_unit = model->n_units;
    if (p.n_stages == 1 || p.n_stages > model->n_units) return p;
    p.first_unit = first_of(in, p.stage);
    p.end_unit = first_of(in, p.stage + 1);
    for (int u = first_of(in, 1); u < model->n_units; u++)
        for (int k = 0; k < model->units[0].n_groups; k++)
            if (reads(model, u, model->units[0].groups[k])) p.first_stage = stage_of(in, u);
    return p;
}

/* A group's gradient is made in one stage. Only the first unit's BACKWARD can move there,
 * as no other one waits for it. */
static zero_status deal_groups(zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    const zero_model *model = in->model;
    for (int g = 0; g < model->n_groups; g++) s->groups[g].stage = -1;
    for (int u = 0; u < model->n_units; u++)
        for (int k = 0; k < model->units[u].n_groups; k++) {
            const int stage = u == 0 ? s->pipe.first_stage : stage_of(in, u);
            zero_group_state *g = &s->groups[model->units[u].groups[k]];
            const bool moves = u == 0 && stage != 0;
            ZERO_FAIL_IF(
                (g->stage >= 0 && g->stage != stage) ||
                    (moves && (model->units[0].sizes(model->units, 1, 1).saved > 0 ||
                               !model->units[0].backward_without_params)),
                ZERO_ERR_INVALID,
                "--pp %d: unit '%s' shares group '%s' with a unit of another stage, which "
                "only an embedding can; leave --pp out",
                in->pp, model->units[u].name,
                model->groups[model->units[u].groups[k]].name);
            g->stage = stage;
            g->is_here = stage == s->pipe.stage;
            g->is_copy = g->is_copy || (moves && s->pipe.stage == 0);
        }
    return ZERO_OK;
}

/* ---- groups ---- */

static zero_status add_groups(zero_schedule *s)
{
    const zero_model *model = s->model;
    ZERO_FREED int64_t *n_params = NULL;
    ZERO_FREED zero_partition *parts = NULL;
    ZERO_TRY(zero_new(&n_params, model->n_groups, "groups"));
    ZERO_TRY(zero_new(&parts, model->n_groups, "groups"));
    ZERO_TRY(zero_new(&s->groups, model->n_groups, "groups"));
    for (int g = 0; g < model->n_groups; g++) n_params[g] = model->groups[g].n_params;
    ZERO_TRY(zero_partition_cut(s->input.partition, s->shard.size, s->shard.replicas,
                                model->n_groups, n_params, parts));
    ZERO_TRY(zero_partition_keep_whole(s->input.optimizer, model->n_tensors, model->tensors,
                                       model->n_groups, parts, &s->cuts));
    for (int g = 0; g < model->n_groups; g++) {
        zero_group_state *state = &s->groups[g];
        state->partition = parts[g];
        state->is_here = s->pipe.n_stages == 1;
        for (int k = 0; k < ZERO_GROUP_BUFFERS; k++) state->buffers[k] = ZERO_NO_BUFFER;
    }
    return s->pipe.n_stages > 1 ? deal_groups(s) : ZERO_OK;
}

/* ---- the cache ---- */

/* Bytes of a pipeline stage's activations that no order of instructions avoids: when the
 * last unit's forward runs, every other unit still has its output, and what it saved unless
 * that is computed again. */
static size_t least_activations(const zero_plan_input *in, int stage)
{
    const zero_model *model = in->model;
    int64_t floats = 0, parts = in->partition_activations ? model->share.ranks : 1;
    if (in->forward_only) return 0;
    for (int u = first_of(in, stage); u < first_of(in, stage + 1); u++) {
        const zero_unit *unit = &model->units[u];
        zero_unit_sizes sizes = unit->sizes(unit, in->micro_batch, in->seq);
        floats += in->offload_activations ? 0 : zero_unit_out_room(unit, &sizes) / parts;
        floats += zero_plan_recomputes(in, u) ? 0 : sizes.saved;
    }
    return (size_t)floats * sizeof(float);
}

/* Floats that a program of texts needs while it computes a unit, beside the cache. */
static int64_t unit_floats(const zero_model *model, int u, int64_t B, int64_t T)
{
    const zero_unit *unit = &model->units[u], *before = u > 0 ? unit - 1 : unit;
    const zero_unit_sizes n = unit->sizes(unit, B, T), b = before->sizes(before, B, T);
    return zero_unit_out_room(before, &b) + zero_unit_out_room(unit, &n) + n.saved +
           n.forward_work + n.logits;
}

/* Bytes that texts take; more than they need, for buffers may share memory. */
static size_t most_of_texts(const zero_plan_input *in)
{
    const zero_model *model = in->model;
    int64_t cached = 0, most = 0;
    for (int u = 0; u < model->n_units; u++) {
        const zero_unit *unit = &model->units[u];
        cached += in->texts * unit->sizes(unit, 1, in->seq).cache;
        most = zero_max(most, unit_floats(model, u, 1, in->seq));
        most = zero_max(most, unit_floats(model, u, in->texts, 1));
    }
    return (size_t)(cached + most) * sizeof(float);
}

/* One for each unit, also for those that keep nothing, or are in other stages. */
static void add_caches(zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    if (!zero_schedule_has_cache(s)) return;
    for (int u = 0; u < in->model->n_units; u++) {
        const zero_unit *unit = &in->model->units[u];
        bool is_here = s->pipe.first_unit <= u && u < s->pipe.end_unit;
        int64_t n = is_here ? in->texts * unit->sizes(unit, 1, in->seq).cache : 0;
        int buffer =
            zero_schedule_add_buffer(s, (zero_buffer){.class = ZERO_CLASS_CACHE,
                                                      .program = ZERO_PROGRAM_TEXT,
                                                      .bytes = (size_t)n * sizeof(float),
                                                      .type = ZERO_FP32});
        if (u == 0) s->first_cache = buffer;
    }
}

/* R = N_d unless the input says otherwise. */
static zero_shard_place place_of(const zero_plan_input *in)
{
    int size = in->shard_ranks > 0 ? in->shard_ranks : in->n_ranks;
    size = size > 0 ? size : 1; /* checked later */
    return (zero_shard_place){.size = size,
                              .rank = in->rank % size,
                              .replicas = in->n_ranks / size,
                              .replica = in->rank / size};
}

static zero_schedule begin(const zero_plan_input *input)
{
    bool is_moved = zero_plan_uses_file(input);
    size_t align = is_moved ? ZERO_SCRATCH_ALIGN : ZERO_BUFFER_ALIGN;
    return (zero_schedule){.input = *input,
                           .model = input->model,
                           .pipe = pipe_place(input),
                           .shard = place_of(input),
                           .check = ZERO_NO_BUFFER,
                           .update_room = ZERO_NO_BUFFER,
                           .first_slot = ZERO_NO_BUFFER,
                           .first_cache = ZERO_NO_BUFFER,
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
    ZERO_TRY(zero_check_plan_input(&s->input));
    ZERO_TRY(choose_layout(s));
    ZERO_TRY(add_groups(s));
    int64_t scratch = zero_math_scratch() * zero_plan_threads(&s->input);
    s->scratch = zero_schedule_hold(s, ZERO_CLASS_WORKSPACE, ZERO_SPACE_OWN,
                                    (size_t)scratch * sizeof(float));
    /* The samples of a run have a cache if its steps need that memory anyway. All ranks
     * decide alike: the bounds do not depend on their pieces and stages. */
    const zero_plan_input *in = &s->input;
    bool is_free = true;
    for (int k = 0; k < s->pipe.n_stages && !in->forward_only; k++)
        is_free = is_free && most_of_texts(in) <= least_activations(in, k);
    if (!zero_schedule_has_cache(s) || !is_free) s->input.texts = 0;
    zero_hold_groups(s);
    zero_offload_hold_slots(s);
    add_caches(s);
    if (s->input.device) zero_device_hold(s);
    if (!s->input.forward_only) zero_hold_checks(s);
    return s->status;
}

static zero_status compile(zero_schedule *s)
{
    ZERO_TRY(hold(s));
    ZERO_TRY(zero_schedule_check_exchange(s));
    zero_write_programs(s);
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

int64_t zero_schedule_least_bucket(const zero_plan_input *input)
{
    int64_t least = 0;
    ZERO_AT_END(zero_schedule_destroy) zero_schedule s = begin(input);
    bool is_found = zero_check_plan_input(input) == ZERO_OK &&
                    choose_layout(&s) == ZERO_OK && add_groups(&s) == ZERO_OK &&
                    zero_schedule_find_least_bucket(&s, &least) == ZERO_OK;
    return is_found ? least : 0;
}

zero_status zero_schedule_least(const zero_plan_input *input, zero_schedule_bound *least)
{
    ZERO_AT_END(zero_schedule_destroy) zero_schedule s = begin(input);
    ZERO_TRY(hold(&s));
    zero_schedule_place_persistent(&s);
    size_t beside = s.host_bytes + s.window_bytes + s.tp_window_bytes;
    *least = (zero_schedule_bound){
        .bytes = s.own_bytes + least_activations(input, s.pipe.stage) +
                 (input->device ? 0 : beside),
        .host_bytes = input->device ? beside : 0,
        .instructions = input->model->n_units *
                        (input->forward_only ? 1 : 2 * (int64_t)input->accumulation)};
    return ZERO_OK;
}
