/* A microbatch's gradient becomes the one that the optimizer reads.
 *
 *     leaf     a microbatch's gradient, rounded to the type of gradients
 *     sum      of leaves, in fp32, rounded to that type once
 *
 * Gradients held whole: a rank adds its leaves and reduces their sum. Gradients held in
 * pieces: it reduces every leaf, and owners add what arrives. With `reproducible` both walk
 * one tree over the step's microbatches; otherwise a rank adds in the order in which it
 * computes. */
#include "sharding/holdings.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

void zero_write_complete(zero_writer *w, int u)
{
    const zero_unit *unit = &w->model->units[u];
    for (int k = 0; k < unit->n_groups; k++)
        if (w->last_writer[unit->groups[k]] == u) w->path->completed(w, unit->groups[k]);
}

/* ---- sums over microbatches ---- */

void zero_write_round(zero_writer *w, int g, zero_range range, int in, int buffer)
{
    zero_write_group(w, ZERO_OP_ROUND, g, in, buffer)->range = range;
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
    zero_instruction *i =
        zero_write_group(w, ZERO_OP_ACCUMULATE, a->group, a->leaf, buffer);
    i->microbatch = a->microbatch;
    i->sum = sum;
    i->type = type;
    i->range = a->range;
}

/* The counter's sum of 2^level leaves. The sum of all of them is the group's. */
static int counter_place(zero_writer *w, const struct addend *a, int level)
{
    if (1 << level == w->in->accumulation) return w->groups[a->group].sum;
    return zero_hold_buffer(w->s, w->program, ZERO_CLASS_ACCUMULATORS, a->group, a->what,
                            ZERO_SPACE_OWN, ZERO_FP32);
}

static void join_sum(zero_writer *w, const struct addend *a)
{
    int sum = w->groups[a->group].sum;
    if (w->in->reproducible) {
        /* A binary counter: after microbatch m, partial sums are alive where m + 1 has
         * ones. */
        int *partial = w->partial[a->group], merges = 0;
        while (a->microbatch >> merges & 1) merges++;
        int place = counter_place(w, a, merges);
        if (merges == 0) add(w, a, ZERO_NO_BUFFER, a->type, place);
        for (int k = 0; k < merges; k++)
            add(w, a, partial[k], k == 0 ? a->type : ZERO_FP32,
                k == merges - 1 ? place : a->leaf);
        partial[merges] = place;
    } else if (a->leaf != sum) /* equal: backward wrote the first leaf there */
        add(w, a, a->microbatch > 0 ? sum : ZERO_NO_BUFFER, a->type, sum);
}

static bool is_last(const zero_writer *w, int microbatch)
{
    return microbatch == w->in->accumulation - 1;
}

static zero_range piece_of(const zero_writer *w, int g)
{
    return zero_partition_piece(&w->groups[g].partition, w->s->shard.rank);
}

/* ---- reducing ---- */

/* Begins a REDUCE or ALL_REDUCE; `sum` gives its group, microbatch, `in` and `buffer`. */
static zero_instruction begin(zero_writer *w, zero_op op, zero_instruction sum)
{
    zero_schedule *s = w->s;
    int g = sum.group;
    zero_exchange *x =
        op == ZERO_OP_ALL_REDUCE ? &s->groups[g].all_reduce : &s->groups[g].reduce;
    if (!x->is_used) *x = (zero_exchange){.is_used = true, .in = sum.in, .out = sum.buffer};
    int staging = zero_write_staging(
        w, zero_exchange_staging(s, op, g, zero_exchange_collectives(s, op, g)));
    zero_instruction *i = zero_write_group(w, op, g, sum.in, sum.buffer);
    i->microbatch = sum.microbatch;
    i->staging = staging;
    return *i;
}

static void has_ended(zero_writer *w, zero_instruction sum)
{
    w->ended = sum;
    w->path->reduced(w);
    if (is_last(w, sum.microbatch)) w->unsquared = sum.group;
}

/* One reduction is in flight at a time: the next begins when this one has ended. */
static void end_reduce(zero_writer *w)
{
    if (w->reducing.group < 0) return;
    zero_write_wait(w, ZERO_OP_REDUCE_WAIT, &w->reducing);
    if (w->s->shard.replicas > 1) {
        /* A shard group has one of K sums. Replicas add theirs while the next REDUCE is in
         * flight. Only one ALL_REDUCE is in flight at a time, so the one before ends
         * first. */
        zero_instruction sum = w->reducing;
        zero_instruction before = w->crossing;
        if (before.group >= 0) zero_write_wait(w, ZERO_OP_ALL_REDUCE_WAIT, &before);
        sum.in = sum.buffer;
        w->crossing = begin(w, ZERO_OP_ALL_REDUCE, sum);
        if (before.group >= 0) has_ended(w, before);
    } else
        has_ended(w, w->reducing);
    w->reducing.group = -1;
}

static void reduce(zero_writer *w, int g, int in, int buffer)
{
    end_reduce(w);
    w->reducing =
        begin(w, ZERO_OP_REDUCE,
              (zero_instruction){
                  .group = g, .microbatch = w->microbatch, .in = in, .buffer = buffer});
    zero_write_early_norm(w);
    if (w->in->serial) zero_write_finish_reduce(w);
}

void zero_write_finish_reduce(zero_writer *w)
{
    end_reduce(w);
    zero_write_early_norm(w);
    if (w->crossing.group >= 0) {
        zero_write_wait(w, ZERO_OP_ALL_REDUCE_WAIT, &w->crossing);
        has_ended(w, w->crossing);
        w->crossing.group = -1;
    }
    zero_write_early_norm(w);
}

/* A shard group's sum waits for its replicas in fp32: the sum of all is rounded once. */
static int sum_in_flight(zero_writer *w, int g)
{
    return zero_hold_buffer(w->s, w->program, ZERO_CLASS_IN_FLIGHT, g, ZERO_HOLD_PIECE,
                            ZERO_SPACE_OWN, ZERO_FP32);
}

static bool is_rounded_later(const zero_writer *w)
{
    return w->s->shard.replicas > 1 && w->in->type != ZERO_FP32;
}

/* ---- gradients held whole ---- */

void zero_write_sum_whole(zero_writer *w, int g)
{
    const zero_group_state *state = &w->groups[g];
    struct addend a = {.group = g,
                       .microbatch = w->microbatch,
                       .what = ZERO_HOLD_WHOLE,
                       .range = {0, state->partition.padded},
                       .leaf = w->grad[g],
                       .type = w->in->type};
    bool is_only = w->in->accumulation == 1;
    if (!is_only) join_sum(w, &a);
    if (is_only && a.leaf != state->grad)
        zero_write_round(w, g, a.range, a.leaf, state->grad);
    if (!is_last(w, w->microbatch)) return;
    int sum = is_only ? state->grad : state->sum;
    reduce(w, g, sum, is_only && is_rounded_later(w) ? sum_in_flight(w, g) : sum);
}

void zero_write_round_sum(zero_writer *w)
{
    int g = w->ended.group;
    const zero_group_state *state = &w->groups[g];
    int sum = state->sum != ZERO_NO_BUFFER ? state->sum : w->ended.buffer;
    if (sum != state->grad) zero_write_round(w, g, piece_of(w, g), sum, state->grad);
}

/* ---- gradients held in pieces ---- */

/* The gradient as it travels: fp32 unchanged, 16 bits rounded to where neighbours can
 * read. */
static int leaf_to_send(zero_writer *w, int g)
{
    zero_type type = w->in->type;
    if (type == ZERO_FP32) return w->grad[g];
    zero_space space = zero_schedule_shares(w->s) ? ZERO_SPACE_PART : ZERO_SPACE_OWN;
    int leaf = zero_hold_buffer(w->s, w->program, ZERO_CLASS_IN_FLIGHT, g, ZERO_HOLD_WHOLE,
                                space, type);
    zero_range all = {0, w->groups[g].partition.padded};
    zero_write_round(w, g, all, w->grad[g], leaf);
    return leaf;
}

static void reduce_leaf(zero_writer *w, int g)
{
    const zero_group_state *state = &w->groups[g];
    int buffer = is_rounded_later(w) ? ZERO_NO_BUFFER : state->grad;
    if (w->in->accumulation > 1) {
        bool is_first = w->microbatch == 0 && !w->in->reproducible;
        buffer = is_first ? state->sum : ZERO_NO_BUFFER;
    }
    if (buffer == ZERO_NO_BUFFER) buffer = sum_in_flight(w, g);
    reduce(w, g, leaf_to_send(w, g), buffer);
}

static void sum_pieces(zero_writer *w)
{
    int g = w->ended.group;
    struct addend a = {.group = g,
                       .microbatch = w->ended.microbatch,
                       .what = ZERO_HOLD_PIECE,
                       .range = piece_of(w, g),
                       .leaf = w->ended.buffer,
                       .type = ZERO_FP32};
    if (w->in->accumulation > 1) join_sum(w, &a);
    if (!is_last(w, a.microbatch)) return;
    zero_write_round_sum(w);
    zero_write_gradient_is_final(w, g);
}

const zero_gradient_path zero_gradient_in_pieces = {
    .deal = ZERO_DEAL_ROUND, .completed = reduce_leaf, .reduced = sum_pieces};
