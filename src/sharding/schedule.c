#include "sharding/schedule.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[ZERO_OP_KINDS] = {
    "LOAD",   "FORWARD",     "BACKWARD", "ACCUMULATE", "REDUCE",   "REDUCE_WAIT",
    "GATHER", "GATHER_WAIT", "LOSS",     "NORM",       "OVERFLOW", "UPDATE",
};

static const char *const class_names[ZERO_CLASSES] = {
    "parameters", "gradients", "accumulators", "optimizer states", "buckets", "activations",
    "logits",     "workspace", "data",
};

const char *zero_op_name(zero_op op)
{
    return op_names[op];
}

const char *zero_class_name(zero_class cls)
{
    return class_names[cls];
}

/* ---- building ---- */

int zero_schedule_add_buffer(zero_schedule *s, zero_program_kind program, zero_class cls,
                             size_t bytes)
{
    if (bytes == 0) return ZERO_NO_BUFFER;
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
    s->buffers[s->n_buffers] =
        (zero_buffer){.class = cls, .program = program, .bytes = bytes, .first = -1};
    return s->n_buffers++;
}

const zero_layout *zero_schedule_layout(const zero_schedule *s)
{
    return s->input.layout ? s->input.layout : &s->own_layout;
}

void zero_schedule_share(zero_schedule *s, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return;
    zero_buffer *b = &s->buffers[buffer];
    assert(b->program == ZERO_PROGRAM_ALL);
    b->shared = zero_algorithm_needs_window(s->input.collectives, zero_schedule_layout(s));
}

static zero_instruction blank(zero_op op)
{
    zero_instruction i = {.op = op, .unit = -1, .group = -1};
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) i.param[k] = i.grad[k] = ZERO_NO_BUFFER;
    i.momentum = i.variance = ZERO_NO_BUFFER;
    i.in = i.out = i.stream = i.saved = i.work = ZERO_NO_BUFFER;
    i.logits = i.row_loss = i.tokens = i.buffer = i.staging = ZERO_NO_BUFFER;
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

/* ---- lifetimes and layout ---- */

int zero_instruction_operands(const zero_instruction *i, int list[ZERO_MAX_OPERANDS])
{
    int n = 0;
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) {
        list[n++] = i->param[k];
        list[n++] = i->grad[k];
    }
    const int rest[] = {i->momentum, i->variance, i->in,     i->out,
                        i->stream,   i->saved,    i->work,   i->logits,
                        i->row_loss, i->tokens,   i->buffer, i->staging};
    memcpy(list + n, rest, sizeof rest);
    return n + (int)(sizeof rest / sizeof rest[0]);
}

static void find_lifetimes(zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    for (int at = 0; at < p->length; at++) {
        int list[ZERO_MAX_OPERANDS];
        int n = zero_instruction_operands(&p->code[at], list);
        for (int k = 0; k < n; k++) {
            if (list[k] == ZERO_NO_BUFFER) continue;
            zero_buffer *b = &s->buffers[list[k]];
            if (b->program == ZERO_PROGRAM_ALL) continue;
            assert(b->program == kind);
            if (b->first < 0) b->first = at;
            b->last = at;
        }
    }
}

static size_t aligned(size_t bytes)
{
    return (bytes + ZERO_BUFFER_ALIGN - 1) / ZERO_BUFFER_ALIGN * ZERO_BUFFER_ALIGN;
}

/* Memory on its way through a program: the buffers alive, and what they add up to. */
struct sweep {
    int *live; /* sorted by offset */
    int n_live;
    size_t bytes[ZERO_CLASSES], total;
};

static void count(const zero_schedule *s, struct sweep *w, int id)
{
    w->bytes[s->buffers[id].class] += s->buffers[id].bytes;
    w->total += s->buffers[id].bytes;
}

static void note_peak(zero_schedule *s, const struct sweep *w)
{
    if (w->total > s->peak_bytes) s->peak_bytes = w->total;
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (w->bytes[c] > s->class_peak[c]) s->class_peak[c] = w->bytes[c];
}

static void place_persistent(zero_schedule *s)
{
    size_t at = 0;
    for (int i = 0; i < s->n_buffers; i++) {
        zero_buffer *b = &s->buffers[i];
        if (b->program != ZERO_PROGRAM_ALL) continue;
        if (b->shared) {
            b->array = s->n_arrays++;
            s->window_bytes += b->bytes;
            continue;
        }
        b->offset = at;
        at += aligned(b->bytes);
    }
    s->persistent_bytes = at;
    s->arena_bytes = at;
}

/* First fit above the persistent buffers. */
static void place(zero_schedule *s, struct sweep *w, int id)
{
    zero_buffer *b = &s->buffers[id];
    size_t at = s->persistent_bytes;
    int k = 0;
    for (; k < w->n_live; k++) {
        const zero_buffer *other = &s->buffers[w->live[k]];
        if (other->offset >= at + aligned(b->bytes)) break;
        at = other->offset + aligned(other->bytes);
    }
    memmove(w->live + k + 1, w->live + k, (size_t)(w->n_live - k) * sizeof *w->live);
    w->live[k] = id;
    w->n_live++;
    b->offset = at;
    count(s, w, id);
    if (at + aligned(b->bytes) > s->arena_bytes) s->arena_bytes = at + aligned(b->bytes);
}

static void drop_dead(const zero_schedule *s, struct sweep *w, int at)
{
    int kept = 0;
    for (int k = 0; k < w->n_live; k++) {
        const zero_buffer *b = &s->buffers[w->live[k]];
        if (b->last >= at) {
            w->live[kept++] = w->live[k];
        } else {
            w->bytes[b->class] -= b->bytes;
            w->total -= b->bytes;
        }
    }
    w->n_live = kept;
}

/* order = ids of the program's buffers by first instruction (counting sort); starts has one
 * entry more than there are instructions. */
static void sort_by_first(const zero_schedule *s, zero_program_kind kind, int *starts,
                          int *order)
{
    int length = s->programs[kind].length;
    memset(starts, 0, ((size_t)length + 1) * sizeof *starts);
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffers[i].program == kind) starts[s->buffers[i].first + 1]++;
    for (int at = 0; at < length; at++) starts[at + 1] += starts[at];
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffers[i].program == kind) order[starts[s->buffers[i].first]++] = i;
}

static zero_status place_program(zero_schedule *s, zero_program_kind kind)
{
    int length = s->programs[kind].length, next = 0;
    int *starts = malloc(((size_t)length + 1) * sizeof *starts);
    int *order = malloc(((size_t)s->n_buffers + 1) * sizeof *order);
    struct sweep w = {.live = malloc(((size_t)s->n_buffers + 1) * sizeof *w.live)};
    zero_status st = ZERO_OK;
    if (starts && order && w.live) {
        for (int i = 0; i < s->n_buffers; i++)
            if (s->buffers[i].program == ZERO_PROGRAM_ALL) count(s, &w, i);
        sort_by_first(s, kind, starts, order); /* leaves starts[at] = end of at's ids */
        for (int at = 0; at < length; at++) {
            drop_dead(s, &w, at);
            while (next < starts[at]) place(s, &w, order[next++]);
            note_peak(s, &w);
        }
    } else {
        st = zero_fail(ZERO_ERR_NOMEM, "no memory to lay out %d buffers", s->n_buffers);
    }
    free(w.live);
    free(order);
    free(starts);
    return st;
}

/* ---- collectives ---- */

static zero_collective_spec in_place(const zero_schedule *s, zero_op op, int g)
{
    const zero_partition *p = &s->groups[g].partition;
    size_t whole = (size_t)zero_partition_padded(p) * sizeof(float);
    bool shares =
        zero_algorithm_needs_window(s->input.collectives, zero_schedule_layout(s));
    zero_collective_spec spec = {.kind = ZERO_REDUCE_SCATTER,
                                 .algorithm = s->input.collectives,
                                 .count = p->shard_len,
                                 .stride = p->shard_len,
                                 .in_apart = shares ? whole : 0,
                                 .unit = g};
    if (op == ZERO_OP_REDUCE) return spec;
    spec.kind = ZERO_ALL_GATHER;
    spec.in_apart = shares ? whole + (size_t)p->shard_len * sizeof(float) : 0;
    spec.out_apart = shares ? whole : 0;
    return spec;
}

/* Elements of staging in the smallest chunks: no bucket can be below. */
static int64_t least_staging(const zero_schedule *s, zero_collective_spec spec)
{
    spec.max_chunk = ZERO_SHARD_GRANULE;
    return (int64_t)(zero_collective_staging(&spec, zero_schedule_layout(s)) /
                     sizeof(float));
}

static bool is_bounded(const zero_schedule *s)
{
    return s->input.collectives != ZERO_ALGORITHM_MPI;
}

zero_collective_spec zero_schedule_collective(const zero_schedule *s, zero_op op, int g)
{
    zero_collective_spec spec = in_place(s, op, g);
    size_t bucket = (size_t)s->input.bucket * sizeof(float);
    /* Staging grows with the chunk: so many smallest chunks fill the bucket. */
    if (is_bounded(s) && zero_collective_staging(&spec, zero_schedule_layout(s)) > bucket)
        spec.max_chunk = s->input.bucket / least_staging(s, spec) * ZERO_SHARD_GRANULE;
    return spec;
}

static zero_status check_collectives(const zero_schedule *s)
{
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_collective_spec spec = in_place(s, ZERO_OP_REDUCE, g);
        ZERO_TRY(zero_collective_check(&spec, zero_schedule_layout(s)));
        int64_t least = least_staging(s, spec);
        if (is_bounded(s) && s->input.bucket < least)
            return zero_fail(ZERO_ERR_INVALID,
                             "--bucket %" PRId64 " is below the %" PRId64
                             " elements that an exchange among %d ranks needs",
                             s->input.bucket, least, s->input.n_ranks);
    }
    return ZERO_OK;
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

static zero_status add_groups(zero_schedule *s)
{
    const zero_model *model = s->input.model;
    s->groups = calloc((size_t)model->n_groups, sizeof *s->groups);
    if (!s->groups)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %d groups", model->n_groups);
    for (int g = 0; g < model->n_groups; g++)
        ZERO_TRY(zero_partition_init(&s->groups[g].partition, model->groups[g].n_params,
                                     s->input.n_ranks));
    return ZERO_OK;
}

/* Together with the limits of a model's shape it keeps every size far from 2^63. */
#define MAX_TOKENS (INT64_C(1) << 24)

static zero_status check_input(const zero_plan_input *in)
{
    if (in->n_ranks < 1 || in->accumulation < 1 || in->micro_batch < 1 || in->bucket < 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for %d ranks, %d microbatches of %" PRId64
                         " sequences and buckets of %" PRId64 " elements: each must be at "
                         "least 1",
                         in->n_ranks, in->accumulation, in->micro_batch, in->bucket);
    if (in->seq < 1 || in->seq > in->model->seq)
        return zero_fail(ZERO_ERR_INVALID,
                         "a plan for sequences of %" PRId64
                         " tokens: the model takes 1 to %" PRId64,
                         in->seq, in->model->seq);
    if (in->micro_batch > MAX_TOKENS / in->seq)
        return zero_fail(
            ZERO_ERR_INVALID,
            "a microbatch of %" PRId64 " sequences of %" PRId64
            " tokens: expected at most 2^24 tokens; give a smaller --micro-batch",
            in->micro_batch, in->seq);
    return ZERO_OK;
}

static zero_status compile(zero_schedule *s)
{
    ZERO_TRY(check_input(&s->input));
    ZERO_TRY(choose_layout(s));
    ZERO_TRY(add_groups(s));
    ZERO_TRY(check_collectives(s));
    if (s->input.stage != 0)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "--stage %d: this version builds stage 0 only", s->input.stage);
    zero_stage_none_compile(s);
    if (s->status != ZERO_OK) return s->status;

    place_persistent(s);
    for (int p = 0; p < ZERO_PROGRAMS; p++) {
        find_lifetimes(s, (zero_program_kind)p);
        ZERO_TRY(place_program(s, (zero_program_kind)p));
    }
    return ZERO_OK;
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

/* ---- ledger ---- */

zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_op op)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    zero_traffic t = {0};
    for (int i = 0; i < p->length; i++)
        if (p->code[i].op == op) zero_traffic_add(&t, 1, &p->code[i].traffic);
    return t;
}
