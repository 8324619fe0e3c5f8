/* A microbatch's gradient becomes the one that the optimizer reads.
 *
 *     leaf     a microbatch's gradient, rounded to the type of gradients
 *     sum      of leaves, in fp32, rounded to that type once
 *
 * Gradients held whole: a rank adds its leaves and reduces their sum. Gradients held in pieces:
 * it reduces every leaf, and owners add what arrives. With `reproducible` both walk one tree
 * over the step's microbatches; otherwise a rank adds in the order in which it computes. */
#include "sharding/holdings.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

void zero_write_complete(zero_writer *w, int u)
{
    const zero_model *model = w->s->input.model;
    const zero_unit *unit = &model->units[u];
    for (int k = 0; k < unit->n_groups; k++)
        if (w->last_writer[unit->groups[k]] == u) w->path->completed(w, unit->groups[k]);
}

/* ---- sums over microbatches ---- */

void zero_write_round(zero_writer *w, int g, zero_range range, int in, int buffer)
{
    zero_instruction *i = zero_write(w, ZERO_OP_ROUND);
    i->group = g;
    i->in = in;
    i->buffer = buffer;
    i->range = range;
}

/* A leaf to be added: a whole group, or this rank's piece of one. */
struct addend {
    int group, microbatch;
    zero_holding what;
    zero_range range;
    int leaf;
    zero_type type; /* the leaf is still to be rounded to this type */
};

static void add(zero_writer *w, const struct addend *a, int sum, zero_type type, int buffer)
{
    zero_instruction *i = zero_schedule_emit(w->s, w->program, ZERO_OP_ACCUMULATE);
    i->group = a->group;
    i->microbatch = a->microbatch;
    i->in = a->leaf;
    i->sum = sum;
    i->type = type;
    i->buffer = buffer;
    i->range = a->range;
}

/* The counter's sum of 2^level leaves. The sum of all of them is the group's. */
static int counter_place(zero_writer *w, const struct addend *a, int level)
{
    if (1 << level == w->s->input.accumulation) return w->s->groups[a->group].sum;
    return zero_hold_buffer(w->s, w->program, ZERO_CLASS_ACCUMULATORS, a->group, a->what,
                            ZERO_SPACE_OWN, ZERO_FP32);
}

/* A binary counter: after microbatch m, partial sums are alive where m + 1 has ones. */
static void count_up(zero_writer *w, const struct addend *a)
{
    int *partial = w->partial[a->group], merges = 0;
    while (a->microbatch >> merges & 1) merges++;
    int place = counter_place(w, a, merges);
    if (merges == 0) add(w, a, ZERO_NO_BUFFER, a->type, place);
    for (int k = 0; k < merges; k++)
        add(w, a, partial[k], k == 0 ? a->type : ZERO_FP32,
            k == merges - 1 ? place : a->leaf);
    partial[merges] = place;
}

static void join_sum(zero_writer *w, const struct addend *a)
{
    int sum = w->s->groups[a->group].sum;
    if (w->s->input.reproducible)
        count_up(w, a);
    else if (a->leaf != sum) /* equal: backward wrote the first leaf there */
        add(w, a, a->microbatch > 0 ? sum : ZERO_NO_BUFFER, a->type, sum);
}

static bool is_last(const zero_writer *w, int microbatch)
{
    return microbatch == w->s->input.accumulation - 1;
}

static zero_range piece_of(const zero_writer *w, int g)
{
    return zero_partition_piece(&w->s->groups[g].partition, w->s->input.rank);
}

/* ---- reducing ---- */

static void reduce(zero_writer *w, int g, int in, int buffer)
{
    zero_schedule *s = w->s;
    zero_exchange *x = &s->groups[g].reduce;
    zero_write_finish_reduce(w);
    if (!x->is_used) *x = (zero_exchange){.is_used = true, .in = in, .out = buffer};
    size_t bytes =
        zero_schedule_staging(s, ZERO_OP_REDUCE, g, zero_schedule_collectives(s, g));
    int staging = ZERO_NO_BUFFER;
    if (bytes > 0)
        staging = zero_schedule_add_buffer(
            s, (zero_buffer){.class = ZERO_CLASS_BUCKETS,
                             .program = w->program,
                             .space = zero_schedule_space(s, ZERO_CLASS_BUCKETS),
                             .bytes = bytes});
    zero_instruction *i = zero_schedule_emit(s, w->program, ZERO_OP_REDUCE);
    i->group = g;
    i->microbatch = w->microbatch;
    i->in = in;
    i->buffer = buffer;
    i->staging = staging;
    w->reducing = *i;
    if (s->input.serial) zero_write_finish_reduce(w);
}

/* One reduction is in flight at a time: the next begins when this one has ended. */
void zero_write_finish_reduce(zero_writer *w)
{
    if (w->reducing.group < 0) return;
    zero_instruction *wait = zero_schedule_emit(w->s, w->program, ZERO_OP_REDUCE_WAIT);
    *wait = w->reducing;
    wait->op = ZERO_OP_REDUCE_WAIT;
    w->path->reduced(w);
    w->reducing.group = -1;
}

/* ---- gradients held whole ---- */

void zero_write_sum_whole(zero_writer *w, int g)
{
    const zero_group_state *state = &w->s->groups[g];
    struct addend a = {.group = g,
                       .microbatch = w->microbatch,
                       .what = ZERO_HOLD_WHOLE,
                       .range = {0, state->partition.padded},
                       .leaf = w->grad[g],
                       .type = w->s->input.type};
    bool is_only = w->s->input.accumulation == 1;
    if (!is_only) join_sum(w, &a);
    if (is_only && a.leaf != state->grad)
        zero_write_round(w, g, a.range, a.leaf, state->grad);
    int sum = is_only ? state->grad : state->sum;
    if (is_last(w, w->microbatch)) reduce(w, g, sum, sum);
}

void zero_write_round_sum(zero_writer *w)
{
    int g = w->reducing.group;
    const zero_group_state *state = &w->s->groups[g];
    if (state->sum != ZERO_NO_BUFFER && state->sum != state->grad)
        zero_write_round(w, g, piece_of(w, g), state->sum, state->grad);
}

/* ---- gradients held in pieces ---- */

/* The gradient as it travels: fp32 unchanged, 16 bits rounded to where neighbours can read. */
static int leaf_to_send(zero_writer *w, int g)
{
    zero_type type = w->s->input.type;
    if (type == ZERO_FP32) return w->grad[g];
    zero_space space = zero_schedule_shares(w->s) ? ZERO_SPACE_PART : ZERO_SPACE_OWN;
    int leaf = zero_hold_buffer(w->s, w->program, ZERO_CLASS_IN_FLIGHT, g, ZERO_HOLD_WHOLE,
                                space, type);
    zero_range all = {0, w->s->groups[g].partition.padded};
    zero_write_round(w, g, all, w->grad[g], leaf);
    return leaf;
}

void zero_write_reduce_leaf(zero_writer *w, int g)
{
    const zero_group_state *state = &w->s->groups[g];
    int buffer = state->grad;
    if (w->s->input.accumulation > 1) {
        bool is_first = w->microbatch == 0 && !w->s->input.reproducible;
        buffer = is_first ? state->sum
                          : zero_hold_buffer(w->s, w->program, ZERO_CLASS_IN_FLIGHT, g,
                                             ZERO_HOLD_PIECE, ZERO_SPACE_OWN, ZERO_FP32);
    }
    reduce(w, g, leaf_to_send(w, g), buffer);
}

void zero_write_sum_pieces(zero_writer *w)
{
    int g = w->reducing.group;
    if (w->s->input.accumulation == 1) {
        zero_write_gradient_is_final(w, g);
        return;
    }
    struct addend a = {.group = g,
                       .microbatch = w->reducing.microbatch,
                       .what = ZERO_HOLD_PIECE,
                       .range = piece_of(w, g),
                       .leaf = w->reducing.buffer,
                       .type = ZERO_FP32};
    join_sum(w, &a);
    if (!is_last(w, a.microbatch)) return;
    zero_write_round_sum(w);
    zero_write_gradient_is_final(w, g);
}

const zero_gradient_path zero_gradient_in_pieces = {.deal = ZERO_DEAL_ROUND,
                                                    .completed = zero_write_reduce_leaf,
                                                    .reduced = zero_write_sum_pieces};
