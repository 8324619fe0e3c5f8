#include "sharding/schedule.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "sharding/writer.h"

static const char *const op_names[ZERO_OP_KINDS] = {
    "LOAD",        "GATHER",  "GATHER_WAIT", "FORWARD",    "RECOMPUTE",
    "BACKWARD",    "RELEASE", "ROUND",       "ACCUMULATE", "REDUCE",
    "REDUCE_WAIT", "LOSS",    "NORM",        "OVERFLOW",   "UPDATE",
};

static const char *const class_names[ZERO_CLASSES] = {
    "parameters",
    "gradients",
    "optimizer states",
    "gathered parameters",
    "gradients in flight",
    "accumulators",
    "buckets",
    "activations",
    "logits",
    "workspace",
    "data",
};

static const char *const program_names[ZERO_PROGRAMS] = {"prologue", "step", "evaluate",
                                                         "generate", "epilogue"};

const char *zero_op_name(zero_op op)
{
    return op_names[op];
}

const char *zero_class_name(zero_class cls)
{
    return class_names[cls];
}

const char *zero_program_name(zero_program_kind program)
{
    return program_names[program];
}

const zero_layout *zero_schedule_layout(const zero_schedule *s)
{
    return s->input.layout ? s->input.layout : &s->own_layout;
}

/* ---- building ---- */

int zero_schedule_add_buffer(zero_schedule *s, zero_buffer buffer)
{
    if (s->n_buffers == s->buffer_capacity) {
        int capacity = s->buffer_capacity ? 2 * s->buffer_capacity : 256;
        zero_buffer *grown = realloc(s->buffers, (size_t)capacity * sizeof *grown);
        if (!grown) {
            s->status =
                zero_fail(ZERO_ERR_NOMEM, "no memory for %d buffer records", capacity);
            return ZERO_NO_BUFFER;
        }
        s->buffers = grown;
        s->buffer_capacity = capacity;
    }
    buffer.first = -1;
    s->buffers[s->n_buffers] = buffer;
    return s->n_buffers++;
}

static zero_instruction blank(zero_op op)
{
    zero_instruction i = {.op = op, .unit = -1, .group = -1};
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) i.param[k] = i.grad[k] = ZERO_NO_BUFFER;
    i.master = i.momentum = i.variance = ZERO_NO_BUFFER;
    i.in = i.out = i.stream = i.saved = i.work = ZERO_NO_BUFFER;
    i.logits = i.row_loss = i.tokens = i.sum = i.buffer = i.staging = ZERO_NO_BUFFER;
    return i;
}

zero_instruction *zero_schedule_emit(zero_schedule *s, zero_program_kind program,
                                     zero_op op)
{
    zero_program *p = &s->programs[program];
    if (p->length == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 256;
        zero_instruction *grown = realloc(p->code, (size_t)capacity * sizeof *grown);
        if (!grown) {
            s->status =
                zero_fail(ZERO_ERR_NOMEM, "no memory for %d instructions", capacity);
            s->discarded = blank(op);
            return &s->discarded;
        }
        p->code = grown;
        p->capacity = capacity;
    }
    p->code[p->length] = blank(op);
    return &p->code[p->length++];
}

int zero_instruction_operands(const zero_instruction *i, int list[ZERO_MAX_OPERANDS])
{
    int n = 0;
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        list[n++] = i->param[k];
        list[n++] = i->grad[k];
    }
    const int rest[] = {i->master, i->momentum, i->variance, i->in,     i->out,
                        i->stream, i->saved,    i->work,     i->logits, i->row_loss,
                        i->tokens, i->sum,      i->buffer,   i->staging};
    memcpy(list + n, rest, sizeof rest);
    return n + (int)(sizeof rest / sizeof rest[0]);
}

size_t zero_schedule_targets_at(const zero_model *model, int64_t positions)
{
    size_t inputs = (size_t)positions * model->input_bytes;
    return (inputs + ZERO_BUFFER_ALIGN - 1) / ZERO_BUFFER_ALIGN * ZERO_BUFFER_ALIGN;
}

/* ---- compiling ---- */

static zero_status choose_layout(zero_schedule *s)
{
    int n = s->input.n_ranks, rank = s->input.rank;
    if (!s->input.layout) ZERO_TRY(zero_layout_init_blocks(&s->own_layout, n, n));
    if (zero_schedule_layout(s)->size == n && rank >= 0 && rank < n) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "a plan for rank %d of %d, on nodes of %d ranks",
                     rank, n, zero_schedule_layout(s)->size);
}

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
        state->gather_staging = ZERO_NO_BUFFER;
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

/* Together they keep every size far from 2^63. */
#define MAX_TOKENS (INT64_C(1) << 24)
#define MAX_PARAMS (INT64_C(1) << 56)
/* What the binary counter has levels for. */
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
    if (in->stage < 0 || in->stage > 3 || in->prefetch < 0 || in->persist < 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for stage %d, prefetch %" PRId64 ", persist %" PRId64
                         ": expected a stage from 0 to 3, and no negative number",
                         in->stage, in->prefetch, in->persist);
    if (in->seq < 1 || in->seq > in->model->seq)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for sequences of %" PRId64
                         " tokens: the model takes 1 to %" PRId64,
                         in->seq, in->model->seq);
    return check_sizes(in);
}

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* Only complete subtrees can be moved from a rank to another without changing the sum. */
static zero_status check_reproducible(const zero_plan_input *in)
{
    if (!in->reproducible) return ZERO_OK;
    if (!zero_algorithm_get(in->collectives)->adds_along_tree)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--reproducible with --collectives %s, which adds in an order of its own: use "
            "--collectives auto",
            zero_algorithm_name(in->collectives));
    if (is_power_of_two(in->n_ranks) && is_power_of_two(in->accumulation)) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--reproducible needs numbers of ranks and of microbatches per rank that "
        "are powers of two, and these are %d ranks and %d microbatches: change "
        "the ranks, --global-batch or --micro-batch",
        in->n_ranks, in->accumulation);
}

static void add_scratch(zero_schedule *s)
{
    size_t bytes = (size_t)zero_math_scratch() * sizeof(float);
    s->scratch = zero_schedule_add_buffer(s, (zero_buffer){.class = ZERO_CLASS_WORKSPACE,
                                                           .program = ZERO_PROGRAM_ALL,
                                                           .bytes = bytes});
}

static void (*const stages[])(zero_schedule *) = {
    zero_stage_none_compile,
    zero_stage_os_compile,
    zero_stage_os_g_compile,
    zero_stage_os_g_p_compile,
};

static zero_status compile(zero_schedule *s)
{
    ZERO_TRY(check_input(&s->input));
    ZERO_TRY(check_reproducible(&s->input));
    ZERO_TRY(zero_model_check_sizes(s->input.model, s->input.micro_batch, s->input.seq));
    ZERO_TRY(choose_layout(s));
    ZERO_TRY(add_groups(s));
    ZERO_TRY(zero_schedule_check_exchange(s));
    add_scratch(s);
    stages[s->input.stage](s);
    ZERO_TRY(s->status);
    ZERO_TRY(zero_schedule_lay_out(s));
    return zero_schedule_count_traffic(s);
}

zero_status zero_schedule_compile(zero_schedule *s, const zero_plan_input *input)
{
    *s = (zero_schedule){.input = *input};
    zero_status st = compile(s);
    if (st != ZERO_OK) zero_schedule_destroy(s);
    return st;
}

void zero_schedule_destroy(zero_schedule *s)
{
    for (int p = 0; p < ZERO_PROGRAMS; p++) free(s->programs[p].code);
    free(s->buffers);
    free(s->groups);
    zero_layout_destroy(&s->own_layout);
    *s = (zero_schedule){0};
}
