/* The step of a pipeline stage: the alternative that the ZeRO paper compares with.
 *
 * Stage s computes its units for one microbatch after another. It takes its input from
 * stage s-1 and gives its output to stage s+1; their gradients travel back. All else is
 * stage 0's step with these units. The first of two stages, of four microbatches:
 *
 *     gpipe  F0 F1 F2 F3 | B3 B2 B1 B0           all microbatches are alive at once
 *     1f1b   F0 | F1 B0 | F2 B1 | F3 B2 | B3     at most P - s of them; the same bubble
 *
 * A message's buffer stays with its sender until the neighbour has taken the message, so
 * one message at most is under way in each direction. A group that units of several stages
 * read, such as the tied embedding, is held by each of these stages, and TIE adds up their
 * gradients. Sources: Huang et al., GPipe, arXiv:1811.06965; Narayanan et al., Megatron-LM,
 * arXiv:2104.04473, section 2.2 (1F1B); Harlap et al., PipeDream, arXiv:1806.03377. */

#include "base/fail.h"
#include "base/number.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

/* The buffers of a microbatch between its passes. */
struct alive {
    int *out, *saved; /* [n_units] */
    int tokens, row_loss, stream;
};

struct pipe {
    zero_writer w;
    const zero_pipeline_place *place;
    struct alive *alive; /* [accumulation] */
    zero_instruction
        sent[2]; /* the last message to the next stage, to the one before; or length 0 */
    bool has_sent[2];
};

static void await_sent(struct pipe *p, bool back)
{
    if (!p->has_sent[back]) return;
    p->sent[back].in = ZERO_NO_BUFFER;
    zero_write_wait(&p->w, back ? ZERO_OP_SEND_GRAD_WAIT : ZERO_OP_SEND_WAIT,
                    &p->sent[back]);
}

/* The output of unit u, or its gradient. */
static void send(struct pipe *p, int u, int in, bool back)
{
    int64_t floats = zero_write_out_floats(&p->w, u);
    await_sent(p, back);
    int buffer = zero_write_buffer(&p->w, ZERO_CLASS_BUCKETS, ZERO_SPACE_OWN,
                                   (size_t)floats * sizeof(float));
    zero_instruction *i = zero_write(&p->w, back ? ZERO_OP_SEND_GRAD : ZERO_OP_SEND);
    i->unit = u;
    i->in = in;
    i->buffer = buffer;
    i->range = (zero_range){0, floats};
    p->sent[back] = *i;
    p->has_sent[back] = true;
}

static void receive(struct pipe *p, int u, int buffer, bool back)
{
    zero_instruction *i = zero_write(&p->w, back ? ZERO_OP_RECEIVE_GRAD : ZERO_OP_RECEIVE);
    i->unit = u;
    i->buffer = buffer;
}

static void forward(struct pipe *p, int m)
{
    zero_writer *w = &p->w;
    const zero_pipeline_place *at = p->place;
    struct alive *a = &p->alive[m];
    w->out = a->out;
    w->saved = a->saved;
    zero_write_load(w, m);
    *a = (struct alive){a->out, a->saved, w->tokens, w->row_loss, w->stream};
    if (at->stage > 0) {
        a->out[at->first_unit - 1] = zero_write_output(w, at->first_unit - 1);
        receive(p, at->first_unit - 1, a->out[at->first_unit - 1], false);
    }
    for (int u = at->first_unit; u < at->end_unit; u++) zero_write_forward(w, u);
    if (at->stage < at->n_stages - 1)
        send(p, at->end_unit - 1, a->out[at->end_unit - 1], false);
}

static void backward(struct pipe *p, int m, int turn)
{
    zero_writer *w = &p->w;
    const zero_pipeline_place *at = p->place;
    const struct alive *a = &p->alive[m];
    w->microbatch = m;
    w->turn = turn;
    w->out = a->out;
    w->saved = a->saved;
    w->tokens = a->tokens;
    w->row_loss = a->row_loss;
    w->stream = a->stream;
    if (at->stage < at->n_stages - 1) receive(p, at->end_unit - 1, w->stream, true);
    for (int u = at->end_unit - 1; u >= at->first_unit; u--) {
        zero_write_backward(w, u);
        zero_write_complete(w, u);
    }
    if (at->stage > 0) send(p, at->first_unit - 1, w->stream, true);
}

/* A stage of 1F1B first starts one microbatch for each stage after it. Then it starts one
 * before each that it ends. */
static void write_passes(struct pipe *p)
{
    int m = p->w.in->accumulation;
    bool is_gpipe = p->place->kind == ZERO_PIPELINE_GPIPE;
    int after = p->place->n_stages - 1 - p->place->stage;
    int ahead = is_gpipe ? m : (int)zero_min(m, after);
    for (int k = 0; k < ahead; k++) forward(p, k);
    for (int k = 0; k < m; k++) {
        if (ahead + k < m) forward(p, ahead + k);
        backward(p, is_gpipe ? m - 1 - k : k, k);
    }
}

/* Bytes that messages of a TIE take while the stages, on as many nodes, add up their
 * pieces. */
static size_t tie_staging(const zero_schedule *s, int g, int holders, zero_type type)
{
    int64_t count = s->groups[g].partition.padded / holders;
    zero_collective_spec spec =
        zero_exchange_spec(s, ZERO_REDUCE_SCATTER, ZERO_ALGORITHM_P2P, type, count, 0);
    zero_layout layout;
    if (zero_layout_init_blocks(&layout, holders, holders) != ZERO_OK) return 0;
    zero_exchange_bound(&spec, &layout, s->input.bucket);
    size_t bytes = zero_collective_staging(&spec, &layout);
    zero_layout_destroy(&layout);
    return bytes;
}

static bool is_tied(const struct pipe *p, int g)
{
    return p->place->holders[g] > 1;
}

static void gather_sum(zero_writer *w)
{
    int grad = w->groups[w->ended.group].grad;
    zero_write_round_sum(w);
    zero_write_gather(w, w->ended.group, grad, grad);
}

static void nothing(zero_writer *w)
{
    (void)w;
}

void zero_write_pipeline(zero_schedule *s)
{
    static const zero_gradient_path path = {.deal = ZERO_DEAL_BLOCKS,
                                            .completed = zero_write_join_whole,
                                            .reduced = gather_sum,
                                            .summed = nothing};
    size_t m = (size_t)s->input.accumulation, units = (size_t)s->model->n_units;
    struct pipe p = {.place = &s->pipe};
    if (!zero_writer_open(&p.w, s, ZERO_PROGRAM_STEP, &path)) return;
    int *all = calloc(2 * m * units, sizeof *all);
    p.alive = calloc(m, sizeof *p.alive);
    if (all && p.alive) {
        for (size_t k = 0; k < m; k++)
            p.alive[k] = (struct alive){.out = all + 2 * k * units,
                                        .saved = all + (2 * k + 1) * units};
        write_passes(&p);
        p.w.microbatch = s->input.accumulation - 1;
        /* A tied gradient waits for the first stage, whose backward pass is the last to
         * end. A stage reduces all its other gradients before that. */
        for (int tied = 0; tied < 2; tied++) {
            for (int k = 0; tied && k < p.w.n_order; k++) {
                int g = p.w.order[k];
                const zero_group_state *state = &p.w.groups[g];
                int holders = p.place->holders[g];
                int sum = state->sum != ZERO_NO_BUFFER ? state->sum : state->grad;
                if (is_tied(&p, g)) {
                    int staging = zero_write_staging(
                        &p.w, tie_staging(p.w.s, g, holders, p.w.s->buffers[sum].type));
                    zero_instruction *i =
                        zero_write_group(&p.w, ZERO_OP_TIE, g, ZERO_NO_BUFFER, sum);
                    i->staging = staging;
                    i->range = (zero_range){0, state->partition.padded};
                    i->rank_stride = holders;
                }
            }
            for (int k = 0; k < p.w.n_order; k++)
                if (is_tied(&p, p.w.order[k]) == tied)
                    zero_write_reduce_whole(&p.w, p.w.order[k]);
            zero_write_finish_reduce(&p.w);
            for (int k = 0; k < p.w.n_order; k++)
                if (is_tied(&p, p.w.order[k]) == tied)
                    zero_write_gather_wait(&p.w, p.w.order[k],
                                           p.w.groups[p.w.order[k]].grad);
        }
        zero_write_update(&p.w);
        for (int back = 0; back < 2; back++) await_sent(&p, back);
    } else {
        s->status = zero_fail(ZERO_ERR_NOMEM, "no memory to plan %zu microbatches", m);
    }
    zero_writer_close(&p.w);
    free(all);
    free(p.alive);
}
