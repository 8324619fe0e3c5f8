#include "sharding/schedule.h"

#include "base/grow.h"
#include "nn/share.h"

_Static_assert(offsetof(zero_instruction, hashes) ==
                   offsetof(zero_instruction, operands[ZERO_OPERANDS - 1]),
               "each operand has its name");
_Static_assert(offsetof(zero_group_state, records) ==
                   offsetof(zero_group_state, buffers[ZERO_GROUP_BUFFERS - 1]),
               "and each buffer of a group");

static const struct {
    const char *name, *meaning;
} classes[ZERO_CLASSES] = {
    [ZERO_CLASS_PARAMETERS] = {"parameters", "those that a rank holds all the time"},
    [ZERO_CLASS_GRADIENTS] = {"gradients", "those that a rank holds all the time"},
    [ZERO_CLASS_OPTIMIZER] = {"optimizer states",
                              "the optimizer's; of 16-bit runs master weights, too"},
    [ZERO_CLASS_GATHERED] = {"gathered parameters",
                             "other ranks' parameters, while they are needed"},
    [ZERO_CLASS_IN_FLIGHT] = {"gradients in flight",
                              "a group's gradient from BACKWARD until it is reduced"},
    [ZERO_CLASS_ACCUMULATORS] = {"accumulators",
                                 "sums of gradients over microbatches, fp32"},
    [ZERO_CLASS_BUCKETS] = {"buckets", "staging of collectives"},
    [ZERO_CLASS_SLOTS] = {"offload slots", "blocks of the file while they are in memory"},
    [ZERO_CLASS_KEPT] = {"activations kept",
                         "what is kept of a unit to compute it once more"},
    [ZERO_CLASS_CACHE] = {"key/value cache",
                          "keys and values of the texts that are being generated"},
    [ZERO_CLASS_ACTIVATIONS] = {"activations",
                                "what FORWARD leaves for BACKWARD, and outputs"},
    [ZERO_CLASS_LOGITS] = {"logits",
                           "scores of all words at each position, and their losses"},
    [ZERO_CLASS_WORKSPACE] = {"workspace",
                              "what a unit needs only while it computes; sums, checks"},
    [ZERO_CLASS_DATA] = {"data", "tokens of a microbatch"},
};

static const char *const program_names[ZERO_PROGRAMS] = {
    [ZERO_PROGRAM_PROLOGUE] = "prologue", [ZERO_PROGRAM_STEP] = "step",
    [ZERO_PROGRAM_EVALUATE] = "evaluate", [ZERO_PROGRAM_GENERATE] = "generate",
    [ZERO_PROGRAM_TOKEN] = "token",       [ZERO_PROGRAM_EPILOGUE] = "epilogue",
};

const char *zero_class_name(zero_class cls)
{
    return classes[cls].name;
}

const char *zero_class_meaning(zero_class cls)
{
    return classes[cls].meaning;
}

const char *zero_program_name(zero_program_kind program)
{
    return program_names[program];
}

const zero_layout *zero_schedule_data_layout(const zero_schedule *s)
{
    return s->input.layout ? s->input.layout : &s->own_layout;
}

const zero_layout *zero_schedule_layout(const zero_schedule *s)
{
    return s->shard.replicas > 1 ? &s->shard_layout : zero_schedule_data_layout(s);
}

const zero_layout *zero_schedule_tp_layout(const zero_schedule *s)
{
    return s->input.tp_layout ? s->input.tp_layout : &s->own_tp_layout;
}

const zero_layout *zero_schedule_pp_layout(const zero_schedule *s)
{
    return s->input.pp_layout ? s->input.pp_layout : &s->own_pp_layout;
}

const zero_layout *zero_schedule_world_layout(const zero_schedule *s)
{
    if (!zero_share_has_parts(&s->model->share) && s->pipe.n_stages == 1)
        return zero_schedule_data_layout(s);
    return s->input.world_layout ? s->input.world_layout : &s->own_world_layout;
}

int zero_schedule_world_rank(const zero_schedule *s)
{
    const zero_share *share = &s->model->share;
    const int d = s->pipe.stage * s->input.n_ranks + s->input.rank;
    return zero_share_has_parts(share) ? d * share->ranks + share->rank : d;
}

int zero_schedule_stage_ranks(const zero_schedule *s)
{
    return s->input.n_ranks * s->model->share.ranks;
}

bool zero_schedule_backs(const zero_schedule *s, int u)
{
    const zero_pipeline_place *p = &s->pipe;
    if (u == 0) return p->stage == p->first_stage;
    return p->first_unit <= u && u < p->end_unit;
}

/* ---- building ---- */

int zero_schedule_add_buffer(zero_schedule *s, zero_buffer buffer)
{
    if (!zero_grow(s->buffers, s->n_buffers, &s->buffer_capacity)) {
        s->status = zero_fail(ZERO_ERR_NOMEM, "no memory for buffer record %d of a plan",
                              s->n_buffers);
        return ZERO_NO_BUFFER;
    }
    buffer.first = -1;
    s->buffers[s->n_buffers] = buffer;
    return s->n_buffers++;
}

int zero_schedule_hold(zero_schedule *s, zero_class cls, zero_space space, size_t bytes)
{
    return zero_schedule_add_buffer(
        s, (zero_buffer){
               .class = cls, .program = ZERO_PROGRAM_ALL, .space = space, .bytes = bytes});
}

static zero_instruction blank(zero_op op)
{
    zero_instruction i = {
        .op = op, .unit = -1, .part = ZERO_PART_ALL, .group = -1, .join = -1, .after = -1};
    for (int k = 0; k < ZERO_OPERANDS; k++) i.operands[k] = ZERO_NO_BUFFER;
    return i;
}

bool zero_buffer_is_of(const zero_buffer *b, zero_program_kind program)
{
    return b->program == program && b->first >= 0;
}

bool zero_buffer_lives_through(const zero_buffer *b, zero_program_kind program)
{
    return b->program == ZERO_PROGRAM_ALL ||
           (b->program == ZERO_PROGRAM_TEXT && zero_program_generates(program));
}

bool zero_schedule_has_cache(const zero_schedule *s)
{
    const zero_model *model = s->model;
    bool never_continues = s->input.seq == 1; /* a text is computed whole for each token */
    if (s->input.texts == 0 || never_continues) return false;
    for (int u = 0; u < model->n_units; u++)
        if (!model->units[u].continues) return false;
    return true;
}

int64_t zero_program_samples(const zero_schedule *s, zero_program_kind program)
{
    if (program == ZERO_PROGRAM_TOKEN) return s->input.texts;
    return program == ZERO_PROGRAM_GENERATE ? 1 : s->input.micro_batch;
}

int64_t zero_program_positions(const zero_schedule *s, zero_program_kind program)
{
    return program == ZERO_PROGRAM_TOKEN ? 1 : s->input.seq;
}

zero_pass zero_program_pass(zero_program_kind program, zero_op op)
{
    if (program == ZERO_PROGRAM_EVALUATE) return ZERO_PASS_EVALUATE;
    if (zero_program_generates(program)) return ZERO_PASS_GENERATE;
    if (op == ZERO_OP_BACKWARD) return ZERO_PASS_BACKWARD;
    return op == ZERO_OP_RECOMPUTE ? ZERO_PASS_RECOMPUTE : ZERO_PASS_FORWARD;
}

zero_instruction *zero_schedule_emit(zero_schedule *s, zero_program_kind program,
                                     zero_op op)
{
    zero_program *p = &s->programs[program];
    if (!zero_grow(p->code, p->length, &p->capacity)) {
        s->status =
            zero_fail(ZERO_ERR_NOMEM, "no memory for instruction %d of a plan", p->length);
        s->discarded = blank(op);
        return &s->discarded;
    }
    p->code[p->length] = blank(op);
    return &p->code[p->length++];
}

size_t zero_schedule_targets_at(const zero_model *model, int64_t positions)
{
    return zero_round_up_size((size_t)positions * model->input_bytes, ZERO_BUFFER_ALIGN);
}

void zero_schedule_destroy(zero_schedule *s)
{
    for (int p = 0; p < ZERO_PROGRAMS; p++) free(s->programs[p].code);
    free(s->buffers);
    free(s->groups);
    free(s->cuts);
    free(s->joins);
    free(s->messages);
    zero_layout_destroy(&s->own_layout);
    zero_layout_destroy(&s->own_tp_layout);
    zero_layout_destroy(&s->own_pp_layout);
    zero_layout_destroy(&s->shard_layout);
    zero_layout_destroy(&s->replica_layout);
    zero_layout_destroy(&s->own_world_layout);
    *s = (zero_schedule){0};
}
