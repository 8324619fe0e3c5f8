#include "plan/plan_time.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "plan/pipeline.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"

/* A group that lies on one node of several uses that node's wire. All other groups use the
 * network: also those of a job on a single node. */
enum wire { NETWORK, WITHIN_NODE, WIRES };

struct clocks {
    const zero_schedule *s;
    const zero_plan_machine *machine;
    double sharers;     /* of the disk: ranks of the node */
    double work;        /* tokens of a step, in those of the plan */
    double now;         /* the rank's clock */
    double idle[WIRES]; /* when a wire is idle again */
    double part;        /* of a pass: the share of one of its parts that compute */
    double disk;        /* when the rank's share of the disk is */
    size_t most;        /* exchanges of a kind */
    double *ends;       /* [ZERO_OP_KINDS][most] when the last of each ends */
    double *moved; /* [n_buffers + n_groups] the same of transfers of a block, a group */
    double *done;  /* [length of the step] when an instruction is over */
    double start;  /* of the step */
    double stream; /* the clock of the stream of optimizer states */
    int ahead;     /* its next instruction */
    bool has_computed;
    int at;           /* the instruction, of a pipeline stage */
    double last_pass; /* of a pipeline stage: when its last pass ended */
    zero_plan_time spent;
};

/* ---- exchanges ---- */

static double seconds_for(const zero_volume *v, double latency, double bandwidth)
{
    double messages = (double)zero_max(v->messages_sent, v->messages_received);
    return messages * latency + (double)zero_volume_duplex(v) / bandwidth;
}

/* A node's wire needs a rate of its own only where other groups use the network. */
static enum wire wire_of(const zero_schedule *s, const zero_layout *layout)
{
    bool is_within = layout->n_nodes == 1 && zero_schedule_data_layout(s)->n_nodes > 1;
    return is_within ? WITHIN_NODE : NETWORK;
}

/* The time of an instruction that communicates. The bytes of JOINs and COLLECTs grow with
 * the tokens. */
static double seconds_of(const struct clocks *c, const zero_instruction *i,
                         const zero_layout *layout)
{
    const zero_plan_machine *m = c->machine;
    zero_traffic t = zero_instruction_traffic(c->s, i);
    const zero_volume v =
        layout->n_nodes > 1 ? zero_traffic_to(&t, ZERO_ACROSS) : zero_traffic_total(&t);
    double times = zero_ops[i->op].among == ZERO_TP_GROUP ? c->work : 1.0;
    bool has_rate = wire_of(c->s, layout) == WITHIN_NODE && m->node_bandwidth > 0.0;
    double bandwidth = has_rate ? m->node_bandwidth : m->bandwidth;
    double seconds =
        seconds_for(&v, has_rate ? m->node_latency : m->latency, bandwidth / times);
    double copied = (double)zero_max(t.bytes_fetched, t.bytes_stored);
    return m->host_bandwidth > 0.0 ? fmax(seconds, copied / m->host_bandwidth) : seconds;
}

static double *end_of(const struct clocks *c, zero_op begun_by, int number)
{
    return &c->ends[(size_t)begun_by * c->most + (size_t)number];
}

static void begin_exchange(struct clocks *c, const zero_instruction *i)
{
    const zero_layout *layout = zero_exchange_layout(c->s, i->op);
    enum wire wire = wire_of(c->s, layout);
    double seconds = seconds_of(c, i, layout);
    bool is_join = i->op == ZERO_OP_JOIN;
    if (is_join) {
        /* Exchanges in flight on a wire end `seconds` later: a JOIN begins at once. */
        for (int k = 0; k < ZERO_EXCHANGES && c->idle[wire] > c->now; k++) {
            zero_op op = zero_exchange_ops[k];
            bool waits =
                op != ZERO_OP_JOIN && wire_of(c->s, zero_exchange_layout(c->s, op)) == wire;
            for (int x = 0; waits && x < zero_exchange_count(c->s, op); x++)
                if (*end_of(c, op, x) > c->now) *end_of(c, op, x) += seconds;
        }
    }
    c->idle[wire] = fmax(c->idle[wire], c->now) + seconds;
    *end_of(c, i->op, zero_exchange_number(i)) = is_join ? c->now + seconds : c->idle[wire];
    c->spent.communication += seconds;
    if (is_join) c->spent.joins += seconds;
    if (i->op == ZERO_OP_COLLECT) c->spent.collects += seconds;
}

/* ---- the disk ---- */

/* When the last transfer of an instruction's block, or of its group's parameters, ends. */
static double *moved_at(const struct clocks *c, const zero_instruction *i)
{
    return &c->moved[i->file != ZERO_NO_BUFFER ? i->file : c->s->n_buffers + i->group];
}

/* A transfer that begins at a time, after those before it. */
static void transfer(struct clocks *c, const zero_instruction *i, double from)
{
    const zero_plan_machine *m = c->machine;
    bool grows = zero_ops[i->op].moves == ZERO_MOVES_ACTIVATIONS;
    double seconds = (grows ? c->work : 1.0) * c->sharers *
                     zero_work_disk_seconds(c->s, i, m->disk_read, m->disk_write);
    c->disk = fmax(c->disk, from) + seconds;
    c->spent.disk += seconds;
    *moved_at(c, i) = c->disk;
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
    if (zero_ops[i->op].kind == ZERO_WORK_TRANSFER_WAIT) from = fmax(from, *moved_at(c, i));
    return fmax(from, c->stream);
}

static void advance(struct clocks *c, const zero_instruction *i)
{
    c->stream = ready(c, i);
    if (zero_ops[i->op].kind == ZERO_WORK_TRANSFER) transfer(c, i, c->stream);
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

/* ---- a step ---- */

static void execute(struct clocks *c, const zero_instruction *i)
{
    double seconds;
    zero_op begun_by;
    switch (zero_ops[i->op].kind) {
    case ZERO_WORK_COMPUTE:
        seconds = c->work * zero_work_flops(c->s, i, &c->part) / c->machine->flops;
        c->now += seconds;
        c->last_pass = c->now;
        c->spent.compute += seconds;
        c->has_computed = c->has_computed || i->op == ZERO_OP_FORWARD;
        break;
    case ZERO_WORK_EXCHANGE: begin_exchange(c, i); break;
    case ZERO_WORK_EXCHANGE_WAIT:
        begun_by = zero_ops[i->op].begun_by;
        seconds = fmax(*end_of(c, begun_by, zero_exchange_number(i)) - c->now, 0.0);
        c->spent.exposed += seconds;
        if (begun_by == ZERO_OP_JOIN) c->spent.join_exposed += seconds;
        if (begun_by == ZERO_OP_COLLECT) c->spent.collect_exposed += seconds;
        c->now = fmax(*end_of(c, begun_by, zero_exchange_number(i)), c->now);
        break;
    case ZERO_WORK_TRANSFER: transfer(c, i, c->now); break;
    case ZERO_WORK_TRANSFER_WAIT: wait_for_disk(c, *moved_at(c, i)); break;
    case ZERO_WORK_AGREE: /* too small for this model */
    case ZERO_WORK_COPY:
    case ZERO_WORK_FREE: break;
    }
}

/* Instruction `at` of the step, unless the stream has executed it. */
static void walk_to(struct clocks *c, int at)
{
    const zero_instruction *i = &c->s->programs[ZERO_PROGRAM_STEP].code[at];
    run_ahead(c, at);
    if (!zero_offload_is_of_stream(i)) {
        execute(c, i);
    } else if (c->ahead <= at) {
        /* The walk has arrived at an instruction of the stream, which must be over now. */
        advance(c, i);
        c->ahead = at + 1;
        wait_for_disk(c, c->stream);
    }
    c->done[at] = c->now;
}

static void step(struct clocks *c)
{
    c->spent = (zero_plan_time){0};
    c->start = c->stream = c->now;
    c->ahead = 0;
    c->has_computed = false;
    for (int at = 0; at < c->s->programs[ZERO_PROGRAM_STEP].length; at++) walk_to(c, at);
    c->spent.step = c->now - c->start;
}

/* Release c->ends. */
static zero_status open_clocks(struct clocks *c, const zero_schedule *s,
                               const zero_plan_machine *machine, double work)
{
    size_t most =
        (size_t)zero_max(s->input.model->n_groups, zero_max(s->n_joins, s->n_messages));
    size_t exchanges = ZERO_OP_KINDS * most;
    size_t transfers = (size_t)s->n_buffers + (size_t)s->input.model->n_groups;
    size_t length = (size_t)s->programs[ZERO_PROGRAM_STEP].length;
    double *ends;
    ZERO_TRY(zero_new(&ends, exchanges + transfers + length, "clocks"));
    *c = (struct clocks){
        .s = s,
        .machine = machine,
        .sharers = zero_layout_local_size(zero_schedule_data_layout(s), s->input.rank),
        .work = work,
        .most = most,
        .ends = ends,
        .moved = ends + exchanges,
        .done = ends + exchanges + transfers};
    return ZERO_OK;
}

/* Only the first step begins with an idle network; the second is like all others. */
static zero_status time_step(const zero_schedule *s, const zero_plan_machine *machine,
                             double work, zero_plan_time *time)
{
    struct clocks c;
    ZERO_TRY(open_clocks(&c, s, machine, work));
    step(&c);
    step(&c);
    *time = c.spent;
    free(c.ends);
    return ZERO_OK;
}
zero_status zero_plan_time_step(const zero_schedule *s, const zero_plan_machine *machine,
                                zero_plan_time *time)
{
    if (s->pipe.n_stages == 1) return time_step(s, machine, 1.0, time);
    ZERO_AT_END(zero_pipeline_destroy) zero_pipeline p;
    zero_pipeline_time all;
    ZERO_TRY(zero_pipeline_make(&p, &s->input));
    ZERO_TRY(zero_pipeline_walk(&p, machine, &all));
    *time = p.stages[s->pipe.stage].spent;
    time->step = all.step;
    time->exposed = all.step - time->compute;
    time->idle = all.idle;
    return ZERO_OK;
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

/* ---- pipelines ---- */

/* The messages of a content from a stage: one at most is under way. */
struct link {
    int sent, awaited, taken; /* so far: begun by each side, and over */
    int microbatch;           /* of the last one */
    double from, arrives;     /* when both sides had begun, and it came */
};

struct stages {
    int n;
    struct clocks *clocks;                    /* [n] */
    struct link (*links)[ZERO_PIPE_CONTENTS]; /* [n] */
};

/* False if the instruction has to wait for another stage. */
static zero_status execute_with_others(struct stages *all, int stage,
                                       const zero_instruction *i, bool *is_over)
{
    struct clocks *c = &all->clocks[stage];
    *is_over = true;
    if (zero_ops[i->op].among != ZERO_PIPE_GROUP) {
        walk_to(c, c->at);
        return ZERO_OK;
    }
    const zero_pipe_message *m = &c->s->messages[i->join];
    struct link *link = &all->links[m->from][m->content];
    const bool is_wait = zero_ops[i->op].kind == ZERO_WORK_EXCHANGE_WAIT;
    const bool receives = zero_ops[i->op].begun_by == ZERO_OP_RECEIVE;
    if (!is_wait) {
        const int other = receives ? link->sent : link->awaited;
        ZERO_FAIL_IF(other > link->taken && link->microbatch != i->microbatch,
                     ZERO_ERR_INVALID,
                     "pipeline stage %d: %s of microbatch %d meets microbatch %d", stage,
                     zero_op_name(i->op), i->microbatch, link->microbatch);
        *(receives ? &link->awaited : &link->sent) += 1;
        link->microbatch = i->microbatch;
        link->from = fmax(link->from, c->now);
        if (link->sent == link->awaited) {
            link->arrives =
                link->from + seconds_of(c, i, zero_exchange_layout(c->s, i->op));
            link->from = 0.0;
            link->taken++;
        }
        c->done[c->at] = c->now;
        return ZERO_OK;
    }
    *is_over = link->taken == (receives ? link->awaited : link->sent);
    if (*is_over) {
        c->spent.exposed += fmax(link->arrives - c->now, 0.0);
        c->done[c->at] = c->now = fmax(c->now, link->arrives);
    }
    return ZERO_OK;
}

/* Each stage walks until it has to wait, as long as any moves. */
static zero_status walk_stages(struct stages *all)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int k = 0; k < all->n; k++) {
            struct clocks *c = &all->clocks[k];
            const zero_program *p = &c->s->programs[ZERO_PROGRAM_STEP];
            for (bool is_over = true; is_over && c->at < p->length;) {
                ZERO_TRY(execute_with_others(all, k, &p->code[c->at], &is_over));
                c->at += is_over;
                moved = moved || is_over;
            }
        }
    }
    for (int k = 0; k < all->n; k++) {
        const zero_program *p = &all->clocks[k].s->programs[ZERO_PROGRAM_STEP];
        int at = all->clocks[k].at;
        if (at < p->length)
            return zero_fail(
                ZERO_ERR_INVALID,
                "pipeline stage %d waits for ever at instruction %d, %s of microbatch %d",
                k, at + 1, zero_op_name(p->code[at].op), p->code[at].microbatch);
    }
    return ZERO_OK;
}

static void destroy(struct stages *all)
{
    for (int k = 0; all->clocks && k < all->n; k++) free(all->clocks[k].ends);
    free(all->clocks);
    free(all->links);
}

zero_status zero_pipeline_walk(zero_pipeline *p, const zero_plan_machine *machine,
                               zero_pipeline_time *time)
{
    static const char what[] = "clocks of pipeline stages";
    size_t n = (size_t)p->n_stages;
    ZERO_AT_END(destroy) struct stages all = {.n = p->n_stages};
    ZERO_TRY(zero_new(&all.clocks, n, what));
    ZERO_TRY(zero_new(&all.links, n, what));
    for (size_t k = 0; k < n; k++)
        ZERO_TRY(open_clocks(&all.clocks[k], &p->stages[k].schedule, machine, 1.0));
    ZERO_TRY(walk_stages(&all));
    zero_pipeline_time t = {0};
    double computed = 0.0;
    for (size_t k = 0; k < n; k++) {
        const struct clocks *c = &all.clocks[k];
        t.step = fmax(t.step, c->now);
        t.passes = fmax(t.passes, c->last_pass);
        t.compute = fmax(t.compute, c->spent.compute);
        computed += c->spent.compute;
        p->stages[k].spent = c->spent;
    }
    t.idle = 1.0 - computed / ((double)n * t.passes);
    *time = t;
    return ZERO_OK;
}
