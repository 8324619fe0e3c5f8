#include "plan/pipeline_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "plan/pipeline.h"

/* Messages from a stage to a neighbour, in their order. */
struct wire {
    int sent, taken;  /* messages so far */
    int *microbatch;  /* [accumulation] */
    double *arrives;  /* [accumulation] when message k arrives */
    double *taken_at; /* [accumulation] when it is received */
    double idle_from; /* when the wire is idle again */
};

struct clock {
    int at; /* the instruction */
    double now, computed, last_pass;
};

/* A collective of a group over the stages that have it. */
struct meeting {
    int n;       /* stages that have arrived */
    double last; /* the latest arrival */
};

struct walk {
    const zero_pipeline *p;
    const zero_pipe_cost *costs;
    const zero_plan_machine *machine;
    int room;
    struct clock *clocks;     /* [n_stages] */
    struct wire *down, *up;   /* [n_stages]: from stage s to s+1; from s to s-1 */
    struct meeting *meetings; /* [n_groups] */
    bool *has_come; /* [n_stages]: the stage has arrived at its TIE, and waits there */
    int *numbers;   /* memory of all wires: microbatches */
    double *times;  /* and times */
};

/* ---- costs ---- */

void zero_pipeline_costs(const zero_pipeline *p, double flops, zero_pipe_cost *costs)
{
    const zero_plan_input *in = &p->input.plan;
    for (int s = 0; s < p->input.n_stages; s++) {
        double forward = 0.0, again = 0.0;
        for (int u = p->stages[s].first_unit; u < p->stages[s].end_unit; u++) {
            forward += zero_plan_forward_flops(in, u);
            if (zero_pipeline_recomputes(p, u)) again += zero_plan_recompute_flops(in, u);
        }
        costs[s] = (zero_pipe_cost){forward / flops, (2.0 * forward + again) / flops};
    }
}

/* ---- messages ---- */

static double seconds_for(const struct walk *w, int messages, int64_t bytes)
{
    return messages * w->machine->latency + (double)bytes / w->machine->bandwidth;
}

/* False if there is no room yet. */
static bool send(struct walk *w, struct clock *c, struct wire *wire,
                 const zero_pipe_instruction *i)
{
    int number = wire->sent;
    if (number - wire->taken >= w->room) return false;
    if (number >= w->room) c->now = fmax(c->now, wire->taken_at[number - w->room]);
    wire->idle_from = fmax(wire->idle_from, c->now) + seconds_for(w, 1, i->sent);
    wire->arrives[number] = wire->idle_from;
    wire->microbatch[number] = i->microbatch;
    wire->sent++;
    return true;
}

/* False if the message has not been sent yet. */
static bool receive(struct clock *c, struct wire *wire)
{
    if (wire->taken == wire->sent) return false;
    c->now = fmax(c->now, wire->arrives[wire->taken]);
    wire->taken_at[wire->taken++] = c->now;
    return true;
}

static zero_status check_order(const struct wire *wire, int stage,
                               const zero_pipe_instruction *i)
{
    int comes = wire->taken < wire->sent ? wire->microbatch[wire->taken] : i->microbatch;
    if (comes == i->microbatch) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "pipeline stage %d: %s expects microbatch %d, but %d arrives", stage,
                     zero_pipe_op_name(i->op), i->microbatch, comes);
}

/* False while another stage has not arrived. */
static bool meet(struct walk *w, int stage, const zero_pipe_instruction *i)
{
    struct clock *c = &w->clocks[stage];
    struct meeting *m = &w->meetings[i->group];
    int all = w->p->holders[i->group];
    if (!w->has_come[stage]) m->n++;
    m->last = fmax(m->last, c->now);
    w->has_come[stage] = m->n < all;
    if (m->n < all) return false;
    c->now = m->last + seconds_for(w, 2 * (all - 1), i->sent);
    return true;
}

/* ---- the walk ---- */

static void compute(struct clock *c, double seconds)
{
    c->now += seconds;
    c->computed += seconds;
    c->last_pass = c->now;
}

/* The wire on which an instruction receives, or NULL. */
static struct wire *receives_on(const struct walk *w, int s, const zero_pipe_instruction *i)
{
    if (i->op == ZERO_PIPE_RECEIVE_ACTIVATION) return &w->down[s - 1];
    if (i->op == ZERO_PIPE_RECEIVE_GRADIENT) return &w->up[s + 1];
    return NULL;
}

/* False if the instruction has to wait for another stage. */
static bool execute(struct walk *w, int s, const zero_pipe_instruction *i)
{
    struct clock *c = &w->clocks[s];
    switch (i->op) {
    case ZERO_PIPE_FORWARD: compute(c, w->costs[s].forward); return true;
    case ZERO_PIPE_BACKWARD: compute(c, w->costs[s].backward); return true;
    case ZERO_PIPE_SEND_ACTIVATION: return send(w, c, &w->down[s], i);
    case ZERO_PIPE_SEND_GRADIENT: return send(w, c, &w->up[s], i);
    case ZERO_PIPE_RECEIVE_ACTIVATION:
    case ZERO_PIPE_RECEIVE_GRADIENT: return receive(c, receives_on(w, s, i));
    case ZERO_PIPE_TIE: return meet(w, s, i);
    case ZERO_PIPE_REDUCE:
        c->now += seconds_for(w, 2 * (w->p->input.plan.n_ranks - 1), i->sent);
        return true;
    default: return true;
    }
}

/* Walks a stage until it has to wait. *moved becomes true if it executed any instruction. */
static zero_status advance(struct walk *w, int s, bool *moved)
{
    const zero_pipe_stage *stage = &w->p->stages[s];
    struct clock *c = &w->clocks[s];
    for (; c->at < stage->length; c->at++) {
        const zero_pipe_instruction *i = &stage->code[c->at];
        const struct wire *wire = receives_on(w, s, i);
        if (wire) ZERO_TRY(check_order(wire, s, i));
        if (!execute(w, s, i)) return ZERO_OK;
        *moved = true;
    }
    return ZERO_OK;
}

static zero_status check_ends(const struct walk *w)
{
    for (int s = 0; s < w->p->input.n_stages; s++) {
        const zero_pipe_stage *stage = &w->p->stages[s];
        int at = w->clocks[s].at;
        if (at == stage->length) continue;
        return zero_fail(ZERO_ERR_INVALID,
                         "pipeline stage %d waits for ever at instruction %d, %s of "
                         "microbatch %d, with room for %d under way in each direction",
                         s, at + 1, zero_pipe_op_name(stage->code[at].op),
                         stage->code[at].microbatch, w->room);
    }
    return ZERO_OK;
}

static zero_status walk_all(struct walk *w)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < w->p->input.n_stages; s++) ZERO_TRY(advance(w, s, &moved));
    }
    return check_ends(w);
}

static zero_pipeline_time sum_of(const struct walk *w)
{
    zero_pipeline_time t = {0};
    double computed = 0.0;
    int n = w->p->input.n_stages;
    for (int s = 0; s < n; s++) {
        t.step = fmax(t.step, w->clocks[s].now);
        t.passes = fmax(t.passes, w->clocks[s].last_pass);
        t.compute = fmax(t.compute, w->clocks[s].computed);
        computed += w->clocks[s].computed;
    }
    t.idle = 1.0 - computed / (n * t.passes);
    return t;
}

/* ---- memory ---- */

static bool open_walk(struct walk *w)
{
    size_t n = (size_t)w->p->input.n_stages, m = (size_t)w->p->input.plan.accumulation;
    w->clocks = calloc(n, sizeof *w->clocks);
    w->down = calloc(2 * n, sizeof *w->down);
    w->meetings = calloc((size_t)w->p->input.plan.model->n_groups, sizeof *w->meetings);
    w->has_come = calloc(n, sizeof *w->has_come);
    w->numbers = calloc(2 * n * m, sizeof *w->numbers);
    w->times = calloc(4 * n * m, sizeof *w->times);
    if (!w->clocks || !w->down || !w->meetings || !w->has_come || !w->numbers || !w->times)
        return false;
    w->up = w->down + n;
    for (size_t k = 0; k < 2 * n; k++)
        w->down[k] = (struct wire){.microbatch = w->numbers + k * m,
                                   .arrives = w->times + 2 * k * m,
                                   .taken_at = w->times + (2 * k + 1) * m};
    return true;
}

static void close_walk(struct walk *w)
{
    free(w->clocks);
    free(w->down);
    free(w->meetings);
    free(w->has_come);
    free(w->numbers);
    free(w->times);
}

zero_status zero_pipeline_walk(const zero_pipeline *p, const zero_pipe_cost *costs,
                               const zero_plan_machine *machine, int room,
                               zero_pipeline_time *time)
{
    struct walk w = {.p = p, .costs = costs, .machine = machine, .room = room};
    zero_status st = ZERO_OK;
    if (!open_walk(&w))
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for the clocks of %d pipeline stages",
                       p->input.n_stages);
    if (st == ZERO_OK) st = walk_all(&w);
    if (st == ZERO_OK) *time = sum_of(&w);
    close_walk(&w);
    return st;
}
