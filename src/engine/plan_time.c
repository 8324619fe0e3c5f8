#include "engine/plan_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "sharding/schedule_exchange.h"

struct clocks {
    const zero_schedule *s;
    const zero_plan_machine *machine;
    double now;                 /* the rank's clock */
    double network;             /* when the network is idle again */
    double *reduced, *gathered; /* [n_groups] when a group's last REDUCE, GATHER ends */
    zero_plan_time spent;
};

static double forward_flops(const zero_schedule *s, int u)
{
    const zero_plan_input *in = &s->input;
    const zero_unit *unit = &in->model->units[u];
    double flops = unit->sizes(unit, in->micro_batch, in->seq).flops;
    double positions = (double)(in->micro_batch * in->seq);
    if (flops > 0.0) return flops;
    for (int k = 0; k < unit->n_groups; k++)
        flops += 2.0 * positions * (double)in->model->groups[unit->groups[k]].n_params;
    return flops;
}

static double recompute_flops(const zero_schedule *s, const zero_instruction *i)
{
    const zero_plan_input *in = &s->input;
    const zero_unit *unit = &in->model->units[i->unit];
    double flops = unit->sizes(unit, in->micro_batch, in->seq).recompute_flops;
    bool is_shorter = i->out == ZERO_NO_BUFFER && flops > 0.0;
    return is_shorter ? flops : forward_flops(s, i->unit);
}

static double flops_of(const zero_schedule *s, const zero_instruction *i)
{
    switch (i->op) {
    case ZERO_OP_FORWARD: return forward_flops(s, i->unit);
    case ZERO_OP_RECOMPUTE: return recompute_flops(s, i);
    case ZERO_OP_BACKWARD: return 2.0 * forward_flops(s, i->unit);
    default: return 0.0;
    }
}

static double seconds_of(const struct clocks *c, const zero_instruction *i)
{
    zero_traffic t = zero_instruction_traffic(c->s, i);
    zero_volume v = zero_traffic_total(&t);
    if (zero_schedule_layout(c->s)->n_nodes > 1)
        v = (zero_volume){t.bytes_sent[ZERO_ACROSS], t.bytes_received[ZERO_ACROSS],
                          t.messages_sent[ZERO_ACROSS], t.messages_received[ZERO_ACROSS]};
    double messages = (double)zero_max(v.messages_sent, v.messages_received);
    double bytes = (double)zero_max(v.bytes_sent, v.bytes_received);
    return messages * c->machine->latency + bytes / c->machine->bandwidth;
}

static void begin(struct clocks *c, const zero_instruction *i, double *ends)
{
    double seconds = seconds_of(c, i);
    c->network = fmax(c->network, c->now) + seconds;
    ends[i->group] = c->network;
    c->spent.communication += seconds;
}

static void wait_until(struct clocks *c, double end)
{
    if (end <= c->now) return;
    c->spent.exposed += end - c->now;
    c->now = end;
}

static void step(struct clocks *c)
{
    const zero_program *p = &c->s->programs[ZERO_PROGRAM_STEP];
    c->spent = (zero_plan_time){0};
    double start = c->now;
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        double seconds = flops_of(c->s, i) / c->machine->flops;
        c->now += seconds;
        c->spent.compute += seconds;
        if (i->op == ZERO_OP_REDUCE) begin(c, i, c->reduced);
        if (i->op == ZERO_OP_GATHER) begin(c, i, c->gathered);
        if (i->op == ZERO_OP_REDUCE_WAIT) wait_until(c, c->reduced[i->group]);
        if (i->op == ZERO_OP_GATHER_WAIT) wait_until(c, c->gathered[i->group]);
    }
    c->spent.step = c->now - start;
}

/* Only the first step begins with an idle network; the second is like all others. */
zero_status zero_plan_time_step(const zero_schedule *s, const zero_plan_machine *machine,
                                zero_plan_time *time)
{
    size_t n = (size_t)s->input.model->n_groups;
    double *ends = calloc(2 * n, sizeof *ends);
    if (!ends)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the clocks of %zu groups", n);
    struct clocks c = {.s = s, .machine = machine, .reduced = ends, .gathered = ends + n};
    step(&c);
    step(&c);
    *time = c.spent;
    free(ends);
    return ZERO_OK;
}
