/* The passes of a pipeline stage (--pp).
 *
 * Stage s has FORWARD and BACKWARD of its units for one microbatch after another. It takes
 * its input from stage s-1 and gives its output to stage s+1; their gradients travel back.
 * All else is the step of its ZeRO stage. The first of two stages, of four microbatches:
 *
 *     gpipe  F0 F1 F2 F3 | B0 B1 B2 B3           all microbatches are alive at once
 *     1f1b   F0 | F1 B0 | F2 B1 | F3 B2 | B3     at most P - s of them; the same bubble
 *
 * Each stage adds up its microbatches in order, so bits are those of one rank with all
 * units.
 *
 * **Tied words.** The head writes their gradient, and the embedding adds to it, microbatch
 * by microbatch. So BACKWARD of unit 0 is in the head's stage, which has the states of its
 * groups: stage 0 sends it the gradient of unit 0's output, as long as any other message,
 * and gets back the updated parameters, for FORWARD. A gradient of the head's waits there
 * until the microbatch has come back to stage 0:
 *
 *     stage 0    F0 F1 | B0    B1                  SEND of d(out of unit 0)
 *     stage 1    F0 B0 | F1 B1 E0 | E1             E: BACKWARD of unit 0
 *
 * With `lazy` states in a file that update is made, and sent, at the beginning of the next
 * step: the last stage has nothing else to do there.
 *
 * A message is received where it is needed and sent from where it was made. One of each
 * content is under way at most, and the receive of the next one begins when one has come:
 * it arrives beside computing. Sources: Huang et al., GPipe, arXiv:1811.06965; Narayanan et
 * al., Megatron-LM, arXiv:2104.04473, section 2.2 (1F1B); Harlap et al., PipeDream,
 * arXiv:1806.03377. */

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "sharding/holdings.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

/* The buffers of a microbatch between its passes. */
struct alive {
    int *out, *saved, *kept, *saved_file; /* [n_units], as a writer's */
    int tokens, row_loss, stream;
    int first;                  /* the gradient of unit 0's output, where its BACKWARD is */
    int grad[ZERO_UNIT_GROUPS]; /* of unit 0's groups, from the head on */
};

struct stage {
    zero_writer *w;
    const zero_pipeline_place *at;
    int n;                  /* microbatches */
    bool trains, has_first; /* BACKWARD of unit 0, whose FORWARD is elsewhere */
    struct alive *alive;    /* [n] */
    /* Under way, from and to this stage; join -1: nothing is. */
    zero_instruction sent[ZERO_PIPE_CONTENTS], coming[ZERO_PIPE_CONTENTS];
};

static zero_instruction *write_message(zero_writer *w, zero_op op,
                                       zero_pipe_content content, int peer, int buffer,
                                       zero_type type, zero_range range)
{
    zero_schedule *s = w->s;
    const bool sends = op == ZERO_OP_SEND;
    const int self = s->pipe.stage;
    zero_instruction *i = zero_write(w, op);
    *(sends ? &i->in : &i->buffer) = buffer;
    i->range = range;
    i->join =
        zero_schedule_add_message(s, (zero_pipe_message){.content = content,
                                                         .from = sends ? self : peer,
                                                         .to = sends ? peer : self,
                                                         .type = type,
                                                         .count = zero_range_len(range)});
    if (i->join < 0) return i;
    /* The mirror of a device's data; messages alone need none. */
    const bool on_host = w->in->device && !w->in->device_messages;
    i->staging =
        zero_write_buffer(w, ZERO_CLASS_BUCKETS, on_host ? ZERO_SPACE_HOST : ZERO_SPACE_OWN,
                          zero_exchange_staging(s, op, i->join, 1));
    return i;
}

/* Begins to send, or to receive, unit u's output or its gradient. */
static void begin(struct stage *p, zero_op op, zero_pipe_content content, int peer, int u,
                  int buffer)
{
    zero_instruction *begun = op == ZERO_OP_SEND ? p->sent : p->coming;
    zero_range all = {0, zero_write_out_floats(p->w, u)};
    zero_instruction *i = write_message(p->w, op, content, peer, buffer, ZERO_FP32, all);
    i->unit = u;
    begun[content] = *i;
}

static void finish(struct stage *p, zero_op op, zero_instruction *begun)
{
    if (begun->join >= 0) zero_write_wait(p->w, op, begun);
    begun->join = -1;
}

static void send(struct stage *p, zero_pipe_content content, int peer, int u, int buffer)
{
    finish(p, ZERO_OP_SEND_WAIT, &p->sent[content]);
    begin(p, ZERO_OP_SEND, content, peer, u, buffer);
}

/* Begins to receive what microbatch m needs, if there is one. */
static void expect(struct stage *p, zero_pipe_content content, int m)
{
    zero_writer *w = p->w;
    const zero_pipeline_place *at = p->at;
    const int now = w->microbatch;
    if (m >= p->n) return;
    struct alive *a = &p->alive[m];
    w->microbatch = m;
    if (content == ZERO_PIPE_OUTPUT) {
        a->out[at->first_unit - 1] = zero_write_output(w, at->first_unit - 1);
        begin(p, ZERO_OP_RECEIVE, content, at->stage - 1, at->first_unit - 1,
              a->out[at->first_unit - 1]);
    } else if (content == ZERO_PIPE_GRADIENT) {
        begin(p, ZERO_OP_RECEIVE, content, at->stage + 1, at->end_unit - 1, a->stream);
    } else {
        a->first = zero_write_buffer(w, ZERO_CLASS_ACTIVATIONS, ZERO_SPACE_OWN,
                                     (size_t)zero_write_out_floats(w, 0) * sizeof(float));
        begin(p, ZERO_OP_RECEIVE, content, 0, 0, a->first);
    }
    w->microbatch = now;
}

/* Takes it, and begins to receive the next one. */
static void take(struct stage *p, zero_pipe_content content, int m)
{
    if (p->coming[content].join < 0) expect(p, content, m);
    finish(p, ZERO_OP_RECEIVE_WAIT, &p->coming[content]);
    expect(p, content, m + 1);
}

static void name_buffers(zero_writer *w, const struct alive *a)
{
    w->out = a->out;
    w->saved = a->saved;
    w->kept = a->kept;
    w->saved_file = a->saved_file;
}

static void forward(struct stage *p, int m)
{
    zero_writer *w = p->w;
    const zero_pipeline_place *at = p->at;
    struct alive *a = &p->alive[m];
    const bool is_last = at->stage == at->n_stages - 1;
    name_buffers(w, a);
    zero_write_load(w, m);
    a->tokens = w->tokens;
    a->row_loss = w->row_loss;
    a->stream = w->stream;
    if (at->stage > 0) take(p, ZERO_PIPE_OUTPUT, m);
    for (int u = at->first_unit; u < at->end_unit; u++) zero_write_forward(w, u);
    if (!is_last)
        send(p, ZERO_PIPE_OUTPUT, at->stage + 1, at->end_unit - 1,
             a->out[at->end_unit - 1]);
    if (m > 0 || !p->trains) return;
    if (!is_last) expect(p, ZERO_PIPE_GRADIENT, 0);
    if (p->has_first) expect(p, ZERO_PIPE_FIRST, 0);
}

static void resume(struct stage *p, int m)
{
    zero_writer *w = p->w;
    const struct alive *a = &p->alive[m];
    w->microbatch = m;
    name_buffers(w, a);
    w->tokens = a->tokens;
    w->row_loss = a->row_loss;
    w->stream = a->stream;
}

static void backward(struct stage *p, int m)
{
    zero_writer *w = p->w;
    const zero_pipeline_place *at = p->at;
    const zero_unit *first = w->model->units;
    resume(p, m);
    if (at->stage < at->n_stages - 1) take(p, ZERO_PIPE_GRADIENT, m);
    for (int u = at->end_unit - 1; u >= at->first_unit; u--) {
        if (!zero_schedule_backs(w->s, u)) continue;
        zero_write_backward(w, u);
        zero_write_complete(w, u);
    }
    for (int k = 0; p->has_first && k < first->n_groups; k++)
        p->alive[m].grad[k] = w->grad[first->groups[k]];
    if (at->stage > 0)
        send(p, ZERO_PIPE_GRADIENT, at->stage - 1, at->first_unit - 1, w->stream);
    else if (at->first_stage > 0)
        send(p, ZERO_PIPE_FIRST, at->first_stage, 0, w->stream);
}

/* BACKWARD of unit 0, whose FORWARD is in another stage. */
static void backward_first(struct stage *p, int m)
{
    zero_writer *w = p->w;
    const zero_unit *first = w->model->units;
    take(p, ZERO_PIPE_FIRST, m);
    resume(p, m);
    w->stream = p->alive[m].first;
    for (int k = 0; k < first->n_groups; k++)
        w->grad[first->groups[k]] = p->alive[m].grad[k];
    zero_write_backward(w, 0);
    zero_write_complete(w, 0);
}

/* A stage of 1F1B first starts one microbatch for each stage after it. Then it starts one
 * before each that it ends. */
static int ahead_of(const struct stage *p)
{
    const int after = p->at->n_stages - 1 - p->at->stage;
    const bool is_gpipe = p->w->in->pp_schedule == ZERO_PIPELINE_GPIPE;
    return is_gpipe || !p->trains ? p->n : (int)zero_min(p->n, after);
}

static void write_passes(struct stage *p)
{
    const int n = p->n, ahead = ahead_of(p);
    const bool is_gpipe = p->w->in->pp_schedule == ZERO_PIPELINE_GPIPE;
    /* As many as pass while a microbatch comes back to stage 0: a BACKWARD takes as long as
     * two FORWARDs, or three with `recompute`. */
    const int back = p->at->first_stage, times = p->w->in->recompute ? 3 : 2;
    const int late =
        (int)zero_min(n, is_gpipe ? back : zero_divide_up(times * back, times + 1));
    for (int m = 0; m < ahead; m++) forward(p, m);
    for (int m = 0; p->trains && m < n; m++) {
        if (ahead + m < n) forward(p, ahead + m);
        backward(p, m);
        if (p->has_first && m >= late) backward_first(p, m - late);
    }
    for (int m = n - late; p->has_first && m < n; m++) backward_first(p, m);
    for (int k = 0; k < ZERO_PIPE_CONTENTS; k++) finish(p, ZERO_OP_SEND_WAIT, &p->sent[k]);
}

void zero_write_stage(zero_writer *w)
{
    const zero_pipeline_place *at = &w->s->pipe;
    struct stage p = {.w = w, .at = at, .trains = w->program == ZERO_PROGRAM_STEP};
    const size_t units = (size_t)w->model->n_units;
    p.n = p.trains ? w->in->accumulation : 1;
    p.has_first = p.trains && at->first_stage > 0 && at->stage == at->first_stage;
    for (int k = 0; k < ZERO_PIPE_CONTENTS; k++) p.sent[k].join = p.coming[k].join = -1;
    ZERO_FREED int *all = NULL;
    ZERO_FREED struct alive *alive = NULL;
    const size_t n = 4 * (size_t)p.n * units;
    w->s->status = zero_new(&all, n, "buffers of a pipeline stage");
    if (w->s->status == ZERO_OK) w->s->status = zero_new(&alive, p.n, "microbatches");
    if (w->s->status != ZERO_OK) return;
    for (size_t k = 0; k < n; k++) all[k] = ZERO_NO_BUFFER;
    for (int m = 0; m < p.n; m++) {
        int *its = all + 4 * (size_t)m * units;
        alive[m].out = its;
        alive[m].saved = its + units;
        alive[m].kept = its + 2 * units;
        /* Microbatches that are not alive together have one place in the file. */
        alive[m].saved_file = alive[m % (ahead_of(&p) + 1)].out + 3 * units;
    }
    p.alive = alive;
    const struct alive own = {
        .out = w->out, .saved = w->saved, .kept = w->kept, .saved_file = w->saved_file};
    if (p.trains && w->in->offload == ZERO_OFFLOAD_LAZY) {
        zero_write_due_of_unit(w, 0, false);
        zero_write_copies(w);
    }
    write_passes(&p);
    name_buffers(w, &own);
}

void zero_write_copies(zero_writer *w)
{
    const zero_pipeline_place *at = &w->s->pipe;
    const zero_unit *first = w->model->units;
    const bool sends = at->stage == at->first_stage;
    if (at->first_stage == 0 || (!sends && at->stage > 0)) return;
    for (int k = 0; k < first->n_groups; k++) {
        const int g = first->groups[k];
        const zero_group_state *state = &w->groups[g];
        const zero_range whole = {0, state->partition.padded};
        /* The last GATHER of what is overwritten. */
        if (!sends && w->program != ZERO_PROGRAM_PROLOGUE) zero_write_await(w, g);
        zero_instruction *i =
            write_message(w, sends ? ZERO_OP_SEND : ZERO_OP_RECEIVE, ZERO_PIPE_PARAMETERS,
                          sends ? 0 : at->first_stage, state->param, w->in->type,
                          state->optimizer_held == ZERO_HOLD_PIECE
                              ? zero_partition_piece(&state->partition, w->s->shard.rank)
                              : whole);
        i->group = g;
        const zero_instruction begun = *i;
        zero_write_wait(w, sends ? ZERO_OP_SEND_WAIT : ZERO_OP_RECEIVE_WAIT, &begun);
        if (sends || !zero_is_published(w->s, g)) continue;
        zero_write_gather(w, g, state->param, state->param);
        w->arrived[g] = w->in->serial;
    }
}

/* ---- messages ---- */

int zero_schedule_add_message(zero_schedule *s, zero_pipe_message form)
{
    for (int k = 0; k < s->n_messages; k++) {
        const zero_pipe_message *m = &s->messages[k];
        if (m->content == form.content && m->from == form.from && m->to == form.to &&
            m->type == form.type && m->count == form.count)
            return k;
    }
    if (!zero_grow(s->messages, s->n_messages, &s->message_capacity)) {
        s->status =
            zero_fail(ZERO_ERR_NOMEM, "no memory for message %d of a plan", s->n_messages);
        return -1;
    }
    s->messages[s->n_messages] = form;
    return s->n_messages++;
}
