#include "sharding/holdings.h"

#include "sharding/checks.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"
#include "sharding/stages.h"

int zero_hold_buffer(zero_schedule *s, zero_program_kind program, zero_class cls, int g,
                     zero_holding what, zero_space space, zero_type type)
{
    const zero_partition *p = &s->groups[g].partition;
    zero_range range = what == ZERO_HOLD_PIECE ? zero_partition_piece(p, s->shard.rank)
                                               : (zero_range){0, p->padded};
    return zero_schedule_add_buffer(s, (zero_buffer){.class = cls,
                                                     .program = program,
                                                     .space = space,
                                                     .group = g,
                                                     .bytes = zero_range_bytes(range, type),
                                                     .type = type,
                                                     .begin = range.begin});
}

static int whole_run(zero_schedule *s, zero_class cls, int g, zero_holding what,
                     zero_space space, zero_type type)
{
    return zero_hold_buffer(s, ZERO_PROGRAM_ALL, cls, g, what, space, type);
}

/* ---- parameters ---- */

/* Neighbours' pieces are not adjacent with `owner`: each rank keeps a whole copy. */
static void hold_parameters(zero_schedule *s, int g, zero_holding what)
{
    bool slice = s->input.partition == ZERO_PARTITION_SLICE;
    bool one_node = zero_schedule_layout(s)->n_nodes == 1;
    zero_holding held = what;
    zero_space space = ZERO_SPACE_OWN;
    if (zero_schedule_shares(s) && slice) {
        if (one_node) held = ZERO_HOLD_WHOLE;
        space = held == ZERO_HOLD_WHOLE ? ZERO_SPACE_NODE : ZERO_SPACE_PART;
    } else if (zero_schedule_shares(s) && what == ZERO_HOLD_WHOLE) {
        space = ZERO_SPACE_PART;
    }
    /* A group that stays whole against the rule is more than a share of the model
     * states. */
    bool is_moved = what == ZERO_HOLD_PIECE && s->input.offload_parameters;
    s->groups[g].param_held = what;
    if (is_moved) return; /* to the file, with its states */
    bool is_extra = what == ZERO_HOLD_WHOLE &&
                    zero_stage_at(s->input.stage)->parameters == ZERO_HOLD_PIECE;
    zero_class cls = is_extra ? ZERO_CLASS_GATHERED : ZERO_CLASS_PARAMETERS;
    s->groups[g].param = whole_run(s, cls, g, held, space, s->input.type);
}

bool zero_is_published(const zero_schedule *s, int g)
{
    return s->groups[g].param_held == ZERO_HOLD_WHOLE &&
           s->groups[g].optimizer_held == ZERO_HOLD_PIECE;
}

/* ---- gradients and optimizer ---- */

static zero_space read_by_neighbours(const zero_schedule *s)
{
    return zero_schedule_shares(s) ? ZERO_SPACE_PART : ZERO_SPACE_OWN;
}

static void hold_gradients(zero_schedule *s, int g, zero_holding what, bool gathered)
{
    zero_group_state *state = &s->groups[g];
    zero_type type = s->input.type;
    zero_space space = what == ZERO_HOLD_WHOLE ? read_by_neighbours(s) : ZERO_SPACE_OWN;
    state->grad_held = what;
    if (s->input.forward_only) return;
    if (s->input.accumulation == 1) {
        state->grad = whole_run(s, ZERO_CLASS_GRADIENTS, g, what, space, type);
        return;
    }
    state->sum = whole_run(s, ZERO_CLASS_ACCUMULATORS, g, what, space, ZERO_FP32);
    state->grad = state->sum;
    if (type == ZERO_FP32) return;
    state->grad =
        whole_run(s, ZERO_CLASS_GRADIENTS, g, gathered ? ZERO_HOLD_WHOLE : ZERO_HOLD_PIECE,
                  gathered ? read_by_neighbours(s) : ZERO_SPACE_OWN, type);
}

/* State k of the optimizer; where some tensors do without it, of the others. */
static int hold_state(zero_schedule *s, int g, int k, zero_holding what, zero_space space)
{
    int buffer = whole_run(s, ZERO_CLASS_OPTIMIZER, g, what, space, ZERO_FP32);
    if (s->status == ZERO_OK && k >= zero_rule_least_states(s->input.optimizer))
        s->buffers[buffer].bytes =
            sizeof(float) * (size_t)zero_state_index(s, g, k, zero_states_held(s, g).end);
    return buffer;
}

void zero_hold_groups(zero_schedule *s)
{
    const zero_stage *stage = zero_stage_at(s->input.stage);
    bool is_plain = stage->optimizer == ZERO_HOLD_WHOLE;
    for (int g = 0; g < s->model->n_groups; g++) {
        if (!s->groups[g].is_here && !s->groups[g].is_copy) continue;
        bool stays = s->groups[g].partition.n_params <= s->input.persist;
        if (is_plain)
            s->groups[g].param = whole_run(s, ZERO_CLASS_PARAMETERS, g, ZERO_HOLD_WHOLE,
                                           ZERO_SPACE_OWN, s->input.type);
        else
            hold_parameters(s, g, stays ? ZERO_HOLD_WHOLE : stage->parameters);
        zero_holding what = stage->optimizer;
        s->groups[g].optimizer_held = what;
        if (!s->groups[g].is_here) continue;
        hold_gradients(s, g, stage->gradients, is_plain);
        if (s->input.forward_only) continue;
        if (zero_plan_uses_file(&s->input)) {
            zero_offload_hold(s, g);
            if (s->input.offload == ZERO_OFFLOAD_DELAYED && !s->input.device) {
                /* The last step's gradient, and the parameters that it makes while this
                 * step reads the old ones. */
                s->groups[g].late_grad = whole_run(s, ZERO_CLASS_IN_FLIGHT, g, what,
                                                   ZERO_SPACE_OWN, s->input.type);
                s->groups[g].late_param = whole_run(s, ZERO_CLASS_GATHERED, g, what,
                                                    ZERO_SPACE_OWN, s->input.type);
            }
        } else {
            /* In memory. Only fp32 parameters in the same memory are masters, too. */
            zero_space space = s->input.offload_host ? ZERO_SPACE_HOST : ZERO_SPACE_OWN;
            zero_group_state *state = &s->groups[g];
            if (s->input.type != ZERO_FP32 || space == ZERO_SPACE_HOST)
                state->master =
                    whole_run(s, ZERO_CLASS_OPTIMIZER, g, what, space, ZERO_FP32);
            for (int k = 0; k < zero_rule_most_states(s->input.optimizer); k++)
                state->state[k] = hold_state(s, g, k, what, space);
        }
        if (zero_plan_updates_beside(&s->input)) {
            /* The host's sides of gradient and parameters. New parameters are fp32 masters,
             * or those rounded; until they are copied nothing on the device changes, so a
             * delayed update needs no other copy. */
            zero_group_state *state = &s->groups[g];
            bool is_exact = s->input.type == ZERO_FP32;
            if (is_exact && state->master == ZERO_NO_BUFFER) /* the file has the others */
                state->master =
                    whole_run(s, ZERO_CLASS_OPTIMIZER, g, what, ZERO_SPACE_HOST, ZERO_FP32);
            state->host_grad =
                whole_run(s, ZERO_CLASS_IN_FLIGHT, g, what, ZERO_SPACE_HOST, s->input.type);
            state->host_param = is_exact ? state->master
                                         : whole_run(s, ZERO_CLASS_GATHERED, g, what,
                                                     ZERO_SPACE_HOST, s->input.type);
            if (s->input.offload == ZERO_OFFLOAD_DELAYED)
                state->late_grad = whole_run(s, ZERO_CLASS_IN_FLIGHT, g, what,
                                             ZERO_SPACE_HOST, s->input.type);
        }
    }
}
