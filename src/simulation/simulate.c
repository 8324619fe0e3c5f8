#include "simulation/simulate.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "sharding/compile.h"
#include "simulation/limits.h"
#include "simulation/walker.h"

/* ---- programs ---- */

/* Of a pipeline's stage, or of a rank of the ZeRO group. */
static zero_status add_program(zero_walkers *w, int number)
{
    zero_plan_input input = w->s->input;
    const zero_schedule *s = number > 0 ? &w->schedules[number] : w->s;
    const bool is_stage = w->s->pipe.n_stages > 1;
    if (is_stage) {
        const zero_layout *world = zero_schedule_world_layout(w->s);
        const zero_member data =
            zero_member_of(ZERO_DATA_GROUP, &w->groups.division, number * w->per_program);
        ZERO_TRY(zero_member_layout(&data, world, &w->data[number]));
        input.layout = &w->data[number];
        input.pp_layout = zero_schedule_pp_layout(w->s);
        input.world_layout = world;
        input.pp_stage = number;
    } else {
        input.rank = number;
    }
    if (number > 0) ZERO_TRY(zero_schedule_compile(&w->schedules[number], &input));
    w->n_programs++;
    zero_actions *a = &w->actions[number];
    ZERO_TRY(zero_actions_init(a, s, &w->input->machine));
    for (int lane = 0; lane < ZERO_LANES; lane++) {
        int *begins = &w->begins[zero_lane_of_groups(lane)];
        *begins = (int)zero_max(*begins, a->n_begins[lane]);
        /* Ranks begin the same collectives in the same order. */
        assert(is_stage || a->n_calls[lane] == w->actions[0].n_calls[lane]);
    }
    assert(is_stage || a->n_specs == w->actions[0].n_specs);
    return is_stage ? zero_groups_add_stage(&w->groups, s) : ZERO_OK;
}

/* ---- the network ---- */

static zero_link_rate inside_rate(const zero_walkers *w)
{
    const zero_plan_machine *m = &w->input->machine;
    bool is_one_node = zero_schedule_world_layout(w->s)->n_nodes == 1;
    if (is_one_node) return (zero_link_rate){m->latency, m->bandwidth};
    if (m->node_bandwidth > 0.0)
        return (zero_link_rate){m->node_latency, m->node_bandwidth};
    /* A group of the job on one of several nodes: then plan_time.h charges what passes
     * there. */
    for (int64_t k = 0; k < w->groups.n_layouts; k++) {
        const zero_layout *layout = &w->groups.layouts[k].layout;
        if (layout->n_nodes == 1 && layout->size > 1)
            return (zero_link_rate){m->latency, m->bandwidth};
    }
    return (zero_link_rate){0.0, INFINITY};
}

static zero_status open_exchanges(zero_walkers *w)
{
    const zero_simulate_input *in = w->input;
    zero_exchanges_input input = {
        .network = {.layout = zero_schedule_world_layout(w->s),
                    .across = {in->machine.latency, in->machine.bandwidth},
                    .inside = inside_rate(w),
                    .adapter = in->adapter,
                    .switch_nodes = in->switch_nodes,
                    .switch_ratio = in->switch_ratio},
        .memory_bandwidth = in->memory_bandwidth,
        .stir = zero_walkers_stir,
        .ended = in->flight ? zero_walker_exchange_ended : NULL,
        .arrived = zero_walkers_arrived,
        .arg = w};
    ZERO_TRY(zero_exchanges_open(&w->exchanges, &input, &w->events));
    return zero_groups_add(&w->groups, w->actions, w->exchanges);
}

/* ---- ranks ---- */

static int64_t n_joined(const zero_walkers *w, int lane)
{
    return 2 * (int64_t)w->groups.n[lane] * w->begins[lane];
}

/* Bytes of memory that ranks and programs will take. */
static int64_t bytes_of(const zero_walkers *w, int n_programs)
{
    const zero_actions *a = &w->actions[0];
    int64_t bytes =
        w->ranks * (int64_t)(sizeof(zero_walker) + (size_t)a->n_files * sizeof *w->moves);
    for (int lane = 0; lane < ZERO_LANES; lane++)
        bytes += n_joined(w, lane) * (int64_t)sizeof(double);
    if (n_programs > 1)
        bytes += n_programs * (int64_t)a->n *
                 (int64_t)(sizeof(zero_action) + sizeof(zero_instruction));
    return bytes;
}

/* ---- results ---- */

static double waited(const zero_simulated_rank *r)
{
    return r->exposed + r->waiting;
}

#define ALIKE 1e-3 /* of the step */

static zero_simulated results_of(const zero_walkers *w)
{
    const zero_network *network = zero_exchanges_network(w->exchanges);
    zero_simulated out = {.busiest = w->busiest,
                          .messages = zero_network_messages(network),
                          .bytes = zero_network_bytes(network),
                          .events = w->events.added};
    double times = 1.0 / w->ranks;
    for (int r = 0; r < w->ranks; r++) {
        const zero_simulated_rank *rank = &w->list[r].spent;
        out.mean.step += times * rank->step;
        out.mean.compute += times * rank->compute;
        out.mean.sums += times * rank->sums;
        out.mean.exposed += times * rank->exposed;
        out.mean.waiting += times * rank->waiting;
        out.mean.disk += times * rank->disk;
        if (waited(rank) < waited(&w->list[out.slowest].spent)) out.slowest = r;
    }
    out.of_slowest = w->list[out.slowest].spent;
    out.step = out.of_slowest.step;
    out.idle = 1.0 - out.mean.compute / (w->last_pass - w->origin);
    for (int r = 0; r < w->ranks; r++)
        out.as_slow +=
            waited(&w->list[r].spent) - waited(&out.of_slowest) < ALIKE * out.step;
    return out;
}

/* ---- all ---- */

static void destroy(zero_walkers *w)
{
    zero_agreements_close(w->agreements);
    free(w->moves);
    for (int lane = 0; lane < ZERO_LANES; lane++) free(w->joined[lane]);
    free(w->list);
    zero_exchanges_close(w->exchanges);
    zero_events_destroy(&w->events);
    for (int k = 0; k < w->n_programs; k++) zero_actions_destroy(&w->actions[k]);
    for (int k = 1; k < w->n_programs; k++) zero_schedule_destroy(&w->schedules[k]);
    free(w->actions);
    free(w->schedules);
    for (int k = 0; w->data && k < w->s->pipe.n_stages; k++)
        zero_layout_destroy(&w->data[k]);
    free(w->data);
    zero_groups_destroy(&w->groups);
}

zero_status zero_simulate(const zero_schedule *s, const zero_simulate_input *input,
                          zero_simulated *result)
{
    ZERO_AT_END(destroy) zero_walkers w = {.s = s, .input = input};
    zero_simulation_cost cost;
    ZERO_TRY(zero_simulation_check(s, input));
    ZERO_TRY(zero_groups_init(&w.groups, s));
    w.ranks = w.groups.ranks;
    /* Pieces of --partition owner differ in length, so a file has more blocks of one rank
     * than of another. But for the stages of a pipeline all other programs differ only in
     * what takes no time. */
    w.per_program =
        s->input.partition == ZERO_PARTITION_OWNER && zero_plan_uses_file(&s->input)
            ? w.ranks / s->input.n_ranks
            : w.groups.per_stage;
    const int n = w.ranks / w.per_program, stages = s->pipe.n_stages;
    ZERO_TRY(zero_new(&w.actions, n, "programs of simulated ranks"));
    ZERO_TRY(zero_new(&w.schedules, n, "programs of simulated ranks"));
    ZERO_TRY(zero_new(&w.data, stages, "nodes of stages"));
    for (int k = 0; k < stages; k++) ZERO_TRY(add_program(&w, k));
    ZERO_TRY(zero_simulation_cost_of(w.actions, &w.groups, input->steps, &cost));
    cost.bytes += bytes_of(&w, n);
    ZERO_TRY(zero_simulation_check_cost(s, input, &cost));
    for (int k = stages; k < n; k++) ZERO_TRY(add_program(&w, k));
    ZERO_TRY(open_exchanges(&w));
    ZERO_TRY(zero_new(&w.list, w.ranks, "simulated ranks"));
    for (int lane = 0; lane < ZERO_LANES; lane++)
        ZERO_TRY(zero_new(&w.joined[lane], n_joined(&w, lane), "simulated ranks"));
    for (int r = 0; r < w.ranks; r++)
        w.list[r] = (zero_walker){.pace = 1.0, .look_at = -1.0};
    for (int k = 0; k < w.input->n_slow; k++)
        w.list[w.input->slow[k].rank].pace = 1.0 / w.input->slow[k].factor;
    for (int k = 0; k < w.n_programs; k++)
        w.files = (int)zero_max(w.files, w.actions[k].n_files);
    if (w.files > 0 && w.input->machine.disk_read > 0.0)
        ZERO_TRY(zero_new(&w.moves, (int64_t)w.ranks * w.files, "transfers of ranks"));
    ZERO_TRY(zero_agreements_open(&w.agreements, &w));
    ZERO_TRY(zero_walkers_run(&w));
    *result = results_of(&w);
    return zero_plan_time_step(s, &input->machine, &result->plan);
}
