#include "plan/plan_time.h"

#include <math.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"
#include "sharding/work.h"

/* A group that lies on one node of several uses that node's wire. All other groups use the
 * network: also those of a job on a single node. */
enum wire { NETWORK, WITHIN_NODE, WIRES };

struct clocks {
    const zero_schedule *s;
    const zero_plan_machine *machine;
    double sharers;             /* of the disk: ranks of the node */
    double work;                /* tokens of a step, in those of the plan */
    double now;                 /* the rank's clock */
    double idle[WIRES];         /* when a wire is idle again */
    double joined, collected;   /* when the last JOIN, the last COLLECT ends */
    double part;                /* of a pass: the share of one of its parts that compute */
    double disk;                /* when the rank's share of the disk is */
    double *reduced, *gathered; /* [n_groups] when a group's last REDUCE, GATHER ends */
    double *all_reduced;        /* [n_groups] when its last ALL_REDUCE ends */
    double *fetched;            /* [n_groups] when a group's last FETCH_PARAM ends */
    double *moved;              /* [n_buffers] when the last transfer of a buffer ends */
    double *done;               /* [length of the step] when an instruction is over */
    double start;               /* of the step */
    double stream;              /* the clock of the stream of optimizer states */
    int ahead;                  /* its next instruction */
    bool has_computed;
    zero_plan_time spent;
};

/* ---- exchanges ---- */

static zero_volume volume_of(const zero_traffic *t, const zero_layout *layout)
{
    if (layout->n_nodes == 1) return zero_traffic_total(t);
    return (zero_volume){t->bytes_sent[ZERO_ACROSS], t->bytes_received[ZERO_ACROSS],
                         t->messages_sent[ZERO_ACROSS], t->messages_received[ZERO_ACROSS]};
}

static double seconds_for(const zero_volume *v, double latency, double bandwidth)
{
    double messages = (double)zero_max(v->messages_sent, v->messages_received);
    double bytes = (double)zero_max(v->bytes_sent, v->bytes_received);
    return messages * latency + bytes / bandwidth;
}

/* A node's wire needs a rate of its own only where other groups use the network. */
static enum wire wire_of(const zero_schedule *s, const zero_layout *layout)
{
    bool is_within = layout->n_nodes == 1 && zero_schedule_data_layout(s)->n_nodes > 1;
    return is_within ? WITHIN_NODE : NETWORK;
}

/* The time of an instruction that communicates in a group with this layout. Its bytes are
 * multiplied by `times`. */
static double seconds_of(const struct clocks *c, const zero_instruction *i,
                         const zero_layout *layout, double times)
{
    const zero_plan_machine *m = c->machine;
    zero_traffic t = zero_instruction_traffic(c->s, i);
    zero_volume v = volume_of(&t, layout);
    bool has_rate = wire_of(c->s, layout) == WITHIN_NODE && m->node_bandwidth > 0.0;
    double bandwidth = has_rate ? m->node_bandwidth : m->bandwidth;
    double seconds =
        seconds_for(&v, has_rate ? m->node_latency : m->latency, bandwidth / times);
    double copied = (double)zero_max(t.bytes_fetched, t.bytes_stored);
    return m->host_bandwidth > 0.0 ? fmax(seconds, copied / m->host_bandwidth) : seconds;
}

static void delay_those(const struct clocks *c, double *ends, double seconds)
{
    for (int g = 0; g < c->s->input.model->n_groups; g++)
        if (ends[g] > c->now) ends[g] += seconds;
}

/* Exchanges in flight on a wire end `seconds` later. */
static void delay(struct clocks *c, enum wire wire, double seconds)
{
    bool is_idle = c->idle[wire] <= c->now;
    if (!is_idle && wire_of(c->s, zero_schedule_layout(c->s)) == wire) {
        delay_those(c, c->reduced, seconds);
        delay_those(c, c->gathered, seconds);
    }
    if (!is_idle && wire_of(c->s, &c->s->replica_layout) == wire)
        delay_those(c, c->all_reduced, seconds);
    c->idle[wire] = fmax(c->idle[wire], c->now) + seconds;
}

/* The bytes of JOINs and COLLECTs grow with the tokens. */
static void begin_join(struct clocks *c, const zero_instruction *i)
{
    const zero_layout *tp = zero_schedule_tp_layout(c->s);
    double seconds = seconds_of(c, i, tp, c->work);
    c->joined = c->now + seconds;
    delay(c, wire_of(c->s, tp), seconds);
    if (c->collected > c->now) c->collected += seconds;
    c->spent.communication += seconds;
    c->spent.joins += seconds;
}

static void begin_collect(struct clocks *c, const zero_instruction *i)
{
    const zero_layout *tp = zero_schedule_tp_layout(c->s);
    double seconds = seconds_of(c, i, tp, c->work), *idle = &c->idle[wire_of(c->s, tp)];
    *idle = fmax(*idle, c->now) + seconds;
    c->collected = *idle;
    c->spent.communication += seconds;
    c->spent.collects += seconds;
}

static void begin(struct clocks *c, const zero_instruction *i, const zero_layout *layout,
                  double *ends)
{
    double seconds = seconds_of(c, i, layout, 1.0), *idle = &c->idle[wire_of(c->s, layout)];
    *idle = fmax(*idle, c->now) + seconds;
    ends[i->group] = *idle;
    c->spent.communication += seconds;
}

static void wait_until(struct clocks *c, double end)
{
    if (end <= c->now) return;
    c->spent.exposed += end - c->now;
    c->now = end;
}

/* Waits for a JOIN or COLLECT that ends at `end`. */
static void wait_for_part(struct clocks *c, double end, double *exposed)
{
    double before = c->spent.exposed;
    wait_until(c, end);
    *exposed += c->spent.exposed - before;
}

/* ---- the disk ---- */

static double disk_seconds(const struct clocks *c, const zero_instruction *i)
{
    const zero_plan_machine *m = c->machine;
    bool grows = i->op == ZERO_OP_SAVE || i->op == ZERO_OP_RESTORE;
    return (grows ? c->work : 1.0) * c->sharers *
           zero_work_disk_seconds(c->s, i, m->disk_read, m->disk_write);
}

/* A transfer that begins at a time, after those before it. */
static double transfer(struct clocks *c, const zero_instruction *i, double from)
{
    double seconds = disk_seconds(c, i);
    c->disk = fmax(c->disk, from) + seconds;
    c->spent.disk += seconds;
    return c->disk;
}

static void wait_for_disk(struct clocks *c, double end)
{
    if (end <= c->now) return;
    c->spent.disk_exposed += end - c->now;
    if (!c->has_computed) c->spent.disk_first += end - c->now;
    c->now = end;
}

/* When the stream's next instruction can be over, if it begins as soon as it may. */
static double ready(const struct clocks *c, const zero_instruction *i)
{
    double from = i->after < 0 ? c->start : c->done[i->after];
    bool waits = i->op == ZERO_OP_FETCH_WAIT || i->op == ZERO_OP_STORE_WAIT;
    if (waits) from = fmax(from, c->moved[i->file]);
    return fmax(from, c->stream);
}

static void advance(struct clocks *c, const zero_instruction *i)
{
    c->stream = ready(c, i);
    if (i->op == ZERO_OP_FETCH || i->op == ZERO_OP_STORE)
        c->moved[i->file] = transfer(c, i, c->stream);
}

/* The stream executes all that it can before the walk executes instruction `at`. */
static void run_ahead(struct clocks *c, int at)
{
    const zero_program *p = &c->s->programs[ZERO_PROGRAM_STEP];
    if (c->s->input.offload == ZERO_OFFLOAD_OFF) return;
    for (; c->ahead < p->length; c->ahead++) {
        const zero_instruction *i = &p->code[c->ahead];
        if (!zero_offload_is_of_stream(i)) continue;
        if (i->after >= at || ready(c, i) > c->now) return;
        advance(c, i);
    }
}

/* The walk has arrived at an instruction of the stream, which must be over now. */
static void join_stream(struct clocks *c, int at)
{
    if (c->ahead > at) return;
    advance(c, &c->s->programs[ZERO_PROGRAM_STEP].code[at]);
    c->ahead = at + 1;
    wait_for_disk(c, c->stream);
}

static void use_disk(struct clocks *c, const zero_instruction *i)
{
    switch (i->op) {
    case ZERO_OP_FETCH_PARAM: c->fetched[i->group] = transfer(c, i, c->now); break;
    case ZERO_OP_FETCH_PARAM_WAIT: wait_for_disk(c, c->fetched[i->group]); break;
    case ZERO_OP_SAVE:
    case ZERO_OP_RESTORE: c->moved[i->file] = transfer(c, i, c->now); break;
    case ZERO_OP_SAVE_WAIT:
    case ZERO_OP_RESTORE_WAIT: wait_for_disk(c, c->moved[i->file]); break;
    default: break;
    }
}

/* ---- a step ---- */

static void compute(struct clocks *c, const zero_instruction *i)
{
    double seconds = c->work * zero_work_flops(c->s, i, &c->part) / c->machine->flops;
    c->now += seconds;
    c->spent.compute += seconds;
    c->has_computed = c->has_computed || i->op == ZERO_OP_FORWARD;
}

static void begin_exchange(struct clocks *c, const zero_instruction *i)
{
    const zero_layout *layout = zero_work_layout(c->s, i->op);
    switch (i->op) {
    case ZERO_OP_REDUCE: begin(c, i, layout, c->reduced); break;
    case ZERO_OP_GATHER: begin(c, i, layout, c->gathered); break;
    case ZERO_OP_ALL_REDUCE: begin(c, i, layout, c->all_reduced); break;
    case ZERO_OP_JOIN: begin_join(c, i); break;
    default: begin_collect(c, i);
    }
}

static void end_exchange(struct clocks *c, const zero_instruction *i)
{
    switch (zero_work_of(i->op).begun_by) {
    case ZERO_OP_REDUCE: wait_until(c, c->reduced[i->group]); break;
    case ZERO_OP_GATHER: wait_until(c, c->gathered[i->group]); break;
    case ZERO_OP_ALL_REDUCE: wait_until(c, c->all_reduced[i->group]); break;
    case ZERO_OP_JOIN: wait_for_part(c, c->joined, &c->spent.join_exposed); break;
    default: wait_for_part(c, c->collected, &c->spent.collect_exposed);
    }
}

static void execute(struct clocks *c, const zero_instruction *i)
{
    switch (zero_work_of(i->op).kind) {
    case ZERO_WORK_COMPUTE: compute(c, i); break;
    case ZERO_WORK_EXCHANGE: begin_exchange(c, i); break;
    case ZERO_WORK_EXCHANGE_WAIT: end_exchange(c, i); break;
    case ZERO_WORK_TRANSFER:
    case ZERO_WORK_TRANSFER_WAIT: use_disk(c, i); break;
    case ZERO_WORK_AGREE: /* too small for this model */
    case ZERO_WORK_COPY:
    case ZERO_WORK_FREE: break;
    }
}

static void step(struct clocks *c)
{
    const zero_program *p = &c->s->programs[ZERO_PROGRAM_STEP];
    c->spent = (zero_plan_time){0};
    c->start = c->stream = c->now;
    c->ahead = 0;
    c->has_computed = false;
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        run_ahead(c, at);
        if (zero_offload_is_of_stream(i))
            join_stream(c, at);
        else
            execute(c, i);
        c->done[at] = c->now;
    }
    c->spent.step = c->now - c->start;
}

/* Only the first step begins with an idle network; the second is like all others. */
static zero_status time_step(const zero_schedule *s, const zero_plan_machine *machine,
                             double work, zero_plan_time *time)
{
    size_t groups = (size_t)s->input.model->n_groups, buffers = (size_t)s->n_buffers;
    size_t length = (size_t)s->programs[ZERO_PROGRAM_STEP].length;
    double *ends = calloc(4 * groups + buffers + length + 1, sizeof *ends);
    if (!ends)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the clocks of %zu groups", groups);
    struct clocks c = {
        .s = s,
        .machine = machine,
        .sharers = zero_layout_local_size(zero_schedule_data_layout(s), s->input.rank),
        .work = work,
        .reduced = ends,
        .gathered = ends + groups,
        .all_reduced = ends + 2 * groups,
        .fetched = ends + 3 * groups,
        .moved = ends + 4 * groups,
        .done = ends + 4 * groups + buffers};
    step(&c);
    step(&c);
    *time = c.spent;
    free(ends);
    return ZERO_OK;
}

zero_status zero_plan_time_step(const zero_schedule *s, const zero_plan_machine *machine,
                                zero_plan_time *time)
{
    return time_step(s, machine, 1.0, time);
}

/* ---- more tokens ---- */

static zero_status ratio_at(const zero_schedule *s, const zero_schedule *resident,
                            const zero_plan_machine *machine, double work, double *ratio)
{
    zero_plan_time with, without;
    ZERO_TRY(time_step(s, machine, work, &with));
    ZERO_TRY(time_step(resident, machine, work, &without));
    *ratio = with.step / without.step;
    return ZERO_OK;
}

/* Doubles, then halves the interval; the share of the disk falls as work grows. */
zero_status zero_plan_time_hidden(const zero_schedule *s, const zero_schedule *resident,
                                  const zero_plan_machine *machine, double most,
                                  double *times)
{
    double low = 0x1p-20, high = low, ratio;
    ZERO_TRY(ratio_at(s, resident, machine, high, &ratio));
    for (; ratio > most && high < 0x1p20; high *= 2.0) {
        low = high;
        ZERO_TRY(ratio_at(s, resident, machine, 2.0 * high, &ratio));
    }
    *times = ratio > most ? INFINITY : high;
    for (int k = 0; k < 16 && ratio <= most && high > low; k++) {
        double middle = sqrt(low * high), at;
        ZERO_TRY(ratio_at(s, resident, machine, middle, &at));
        if (at > most)
            low = middle;
        else
            *times = high = middle;
    }
    return ZERO_OK;
}
