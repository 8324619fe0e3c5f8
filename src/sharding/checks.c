#include "sharding/checks.h"

#include "lists/small.h"
#include "nn/share.h"

const char *zero_array_name(const zero_schedule *s, zero_array array)
{
    switch (array) {
    case ZERO_ARRAY_PARAMETERS: return "parameters";
    case ZERO_ARRAY_MASTERS: return "masters";
    case ZERO_ARRAY_GRADIENTS: return "gradients";
    default: return zero_rule_at(s->input.optimizer)->states[array - ZERO_ARRAY_STATES];
    }
}

_Static_assert(offsetof(zero_group_state, grad) ==
                   offsetof(zero_group_state, buffers[ZERO_ARRAY_GRADIENTS]),
               "an array of states is the number of its buffer");

int zero_master_buffer(const zero_schedule *s, int g)
{
    const zero_group_state *group = &s->groups[g];
    bool is_param = s->input.type == ZERO_FP32 && group->master == ZERO_NO_BUFFER;
    return is_param ? group->param : group->master;
}

/* ---- what is held more than once ---- */

bool zero_has_rounded(const zero_schedule *s)
{
    bool are_apart = s->input.type != ZERO_FP32 || zero_plan_updates_beside(&s->input);
    return are_apart && !s->input.forward_only;
}

static zero_copies copies_of_pieces(const zero_schedule *s)
{
    return s->shard.replicas > 1 ? ZERO_COPIES_OF_REPLICAS : ZERO_COPIES_NONE;
}

zero_copies zero_copies_of(const zero_schedule *s, int g, zero_array array)
{
    const zero_group_state *group = &s->groups[g];
    int buffer = group->buffers[array];
    if (s->input.n_ranks == 1 || buffer == ZERO_NO_BUFFER) return ZERO_COPIES_NONE;
    if (array == ZERO_ARRAY_PARAMETERS) {
        /* A shard group on one node has one copy in its window; each replica has another
         * one in its own. */
        bool are_compared = zero_schedule_layout(s)->n_nodes > 1 || s->shard.replicas > 1;
        bool masters_say_it =
            group->master != ZERO_NO_BUFFER && group->optimizer_held == group->param_held;
        if (masters_say_it) return ZERO_COPIES_NONE;
        if (group->param_held != ZERO_HOLD_WHOLE) return copies_of_pieces(s);
        if (s->buffers[group->param].space != ZERO_SPACE_NODE) return ZERO_COPIES_OF_RANKS;
        return are_compared ? ZERO_COPIES_OF_NODES : ZERO_COPIES_NONE;
    }
    return group->optimizer_held == ZERO_HOLD_WHOLE ? ZERO_COPIES_OF_RANKS
                                                    : copies_of_pieces(s);
}

bool zero_has_copies(const zero_schedule *s, zero_copies kind)
{
    if (s->pipe.n_stages > 1 && s->input.n_ranks > 1) return true;
    for (int g = 0; g < s->model->n_groups; g++)
        for (zero_array a = 0; a < ZERO_ARRAYS; a++)
            if (zero_copies_of(s, g, a) == kind) return true;
    return false;
}

bool zero_has_replicated(const zero_schedule *s)
{
    const zero_model *model = s->model;
    for (int i = 0; model->share.ranks > 1 && i < model->n_tensors; i++)
        if (zero_tensor_is_replicated(&model->tensors[i])) return true;
    return false;
}

static bool is_held_twice(const zero_schedule *s)
{
    bool any = zero_has_replicated(s);
    for (zero_copies kind = ZERO_COPIES_OF_RANKS; kind < ZERO_COPIES_KINDS; kind++)
        any = any || zero_has_copies(s, kind);
    return any;
}

bool zero_is_checked(const zero_schedule *s)
{
    return s->input.check_replicas > 0 && !s->input.forward_only &&
           (zero_has_rounded(s) || is_held_twice(s));
}

/* A device's parameters are compared with masters beside it, where UPDATE does not see
 * them. */
bool zero_is_compared(const zero_schedule *s)
{
    return zero_is_checked(s) && (zero_plan_updates_beside(&s->input) || is_held_twice(s));
}

/* ---- some blocks in each step ---- */

int zero_update_period(const zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    bool is_late = in->offload == ZERO_OFFLOAD_DELAYED && !in->device;
    if (!zero_is_checked(s) || in->type == ZERO_FP32 || is_late) return 0;
    for (int g = 0; g < in->model->n_groups; g++)
        if (s->groups[g].param != ZERO_NO_BUFFER)
            return in->device ? in->check_replicas : 1;
    return 0;
}

/* Copies of the same elements as this rank's. */
struct copies {
    int n, mine;
    int least; /* ranks that have one of them together */
};

/* The ranks of a shard group on one node are neighbours in it, and have one copy. */
static struct copies copies_of(const zero_schedule *s, zero_copies kind)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    const int all = zero_schedule_stage_ranks(s), first = s->pipe.stage * all;
    int tp = s->model->share.ranks, group = s->shard.size * tp;
    int step = kind == ZERO_COPIES_OF_REPLICAS ? group : tp;
    int rank = zero_schedule_world_rank(s), together = 0;
    struct copies c = {.n = 0, .least = all};
    for (int r = first + rank % step; r < first + all; r += step) {
        bool is_beside = kind == ZERO_COPIES_OF_NODES && r % group >= tp &&
                         world->node_of[r] == world->node_of[r - tp];
        if (!is_beside && c.n > 0) c.least = (int)zero_min(c.least, together);
        together = is_beside ? together + 1 : 1;
        c.n += !is_beside;
        if (r == rank) c.mine = c.n - 1;
    }
    c.least = (int)zero_min(c.least, together);
    return c;
}

int64_t zero_copy_weight(const zero_schedule *s, zero_copies kind)
{
    struct copies c = copies_of(s, kind);
    return c.mine == 0 ? 1 - c.n : 1;
}

/* A rank that computes 6 * 4096 operations per parameter hashes its copies of 16 bits in
 * 0.06 % of that time (engine/README.md). The ranks of a node divide theirs. */
#define TOKENS_PER_COMPARISON 4096

int zero_compare_period(const zero_schedule *s, zero_copies kind, bool are_parameters)
{
    const zero_plan_input *in = &s->input;
    if (!are_parameters || in->device) return in->check_replicas;
    int64_t tokens = in->micro_batch * in->seq * in->accumulation;
    if (kind == ZERO_COPIES_OF_NODES) tokens *= copies_of(s, kind).least;
    return (int)zero_min(in->check_replicas, zero_divide_up(TOKENS_PER_COMPARISON, tokens));
}

int zero_compared_in(const zero_schedule *s, zero_array array)
{
    int64_t steps = 0;
    for (int g = 0; g < s->model->n_groups && zero_is_compared(s); g++) {
        zero_copies kind = zero_copies_of(s, g, array);
        bool are_parameters = array == ZERO_ARRAY_PARAMETERS;
        if (kind != ZERO_COPIES_NONE)
            steps = zero_max(steps, zero_compare_period(s, kind, are_parameters));
    }
    return (int)steps;
}

/* ---- records ---- */

zero_range zero_states_held(const zero_schedule *s, int g)
{
    const zero_partition *p = &s->groups[g].partition;
    if (!s->groups[g].is_here) return (zero_range){0, 0};
    if (s->groups[g].optimizer_held == ZERO_HOLD_PIECE)
        return zero_partition_shard(p, s->shard.rank);
    return (zero_range){0, p->n_params};
}

int64_t zero_state_index(const zero_schedule *s, int g, int k, int64_t element)
{
    zero_range held = zero_states_held(s, g), part;
    int64_t n = 0;
    if (k < zero_rule_least_states(s->input.optimizer)) return element - held.begin;
    for (int i = -1;
         zero_next_part(s->model, g, (zero_range){held.begin, element}, &i, &part);)
        if (zero_rule_states(s->input.optimizer, &s->model->tensors[i]) > k)
            n += zero_range_len(part);
    return n;
}

int64_t zero_records_of(const zero_schedule *s, int g)
{
    zero_range part;
    int64_t n = 0;
    for (int i = -1; zero_next_part(s->model, g, zero_states_held(s, g), &i, &part);)
        n += zero_divide_up(zero_range_len(part), ZERO_RECORD_BLOCK);
    return n;
}

int zero_recorded_arrays(const zero_schedule *s, int g)
{
    bool has_file = zero_plan_uses_file(&s->input);
    int n = zero_master_buffer(s, g) != ZERO_NO_BUFFER ? 1 : 0;
    for (int k = 0; k < ZERO_MOST_STATES && !has_file; k++)
        n += s->groups[g].state[k] != ZERO_NO_BUFFER;
    return n;
}

/* ---- buffers ---- */

/* The ranks that look at each other's findings: of the world, if they share models. */
static size_t n_ranks(const zero_schedule *s)
{
    return (size_t)zero_schedule_world_layout(s)->size;
}

static size_t words_bytes(const zero_schedule *s)
{
    return zero_round_up_size(n_ranks(s) * 2 * sizeof(uint64_t), ZERO_BUFFER_ALIGN);
}

static size_t classes_bytes(const zero_schedule *s)
{
    return zero_round_up_size(n_ranks(s) * sizeof(int), ZERO_BUFFER_ALIGN);
}

zero_check_space zero_check_space_at(const zero_schedule *s, void *buffer)
{
    char *at = buffer, *classes = at + words_bytes(s);
    return (zero_check_space){.words = buffer,
                              .class_of = (int *)(void *)classes,
                              .block = classes + classes_bytes(s)};
}

/* The host hashes and compares, also beside a device. */
void zero_hold_checks(zero_schedule *s)
{
    zero_space space = s->input.device ? ZERO_SPACE_HOST : ZERO_SPACE_OWN;
    size_t block =
        zero_has_rounded(s) ? ZERO_CHECK_BLOCK * zero_type_size(s->input.type) : 0;
    if (zero_is_checked(s) || s->input.check_memory)
        s->check = zero_schedule_hold(s, ZERO_CLASS_WORKSPACE, space,
                                      words_bytes(s) + classes_bytes(s) + block);
    for (int g = 0; g < s->model->n_groups && s->input.check_memory; g++) {
        size_t n = (size_t)(zero_recorded_arrays(s, g) * zero_records_of(s, g));
        if (n > 0)
            s->groups[g].records =
                zero_schedule_hold(s, ZERO_CLASS_WORKSPACE, space, n * sizeof(uint64_t));
    }
}

zero_traffic zero_schedule_compare_traffic(const zero_schedule *s)
{
    zero_traffic sum = {0};
    if (zero_is_checked(s))
        zero_small_add_reduced(&sum, zero_schedule_world_layout(s),
                               zero_schedule_world_rank(s), ZERO_COMPARE_WORDS,
                               sizeof(int64_t));
    return sum;
}
