#include "simulation/simulate.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "sharding/compile.h"
#include "simulation/limits.h"
#include "simulation/walker.h"

/* ---- programs ---- */

/* All ranks begin the same collectives in the same order. */
static zero_status add_program(zero_walkers *w, int rank)
{
    zero_plan_input input = w->s->input;
    input.rank = rank;
    if (rank > 0) ZERO_TRY(zero_schedule_compile(&w->schedules[rank], &input));
    w->n_programs++;
    ZERO_TRY(zero_actions_init(&w->actions[rank], rank > 0 ? &w->schedules[rank] : w->s,
                               &w->input->machine));
    assert(w->actions[rank].n_specs == w->actions[0].n_specs);
    assert(memcmp(w->actions[rank].n_calls, w->actions[0].n_calls,
                  sizeof w->actions[0].n_calls) == 0);
    return ZERO_OK;
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
    return zero_groups_add(&w->groups, &w->actions[0], w->exchanges);
}

/* ---- ranks ---- */

static int64_t n_joined(const zero_walkers *w, int part)
{
    return 2 * (int64_t)w->groups.n[part] * w->actions[0].n_begins[part];
}

/* Bytes of memory that ranks and programs will take. */
static int64_t bytes_of(const zero_walkers *w, int n_programs)
{
    const zero_actions *a = &w->actions[0];
    int64_t bytes =
        w->ranks * (int64_t)(sizeof(zero_walker) + (size_t)a->n_files * sizeof *w->moves);
    for (int part = 0; part < ZERO_FAMILY_PARTS; part++)
        bytes += n_joined(w, part) * (int64_t)sizeof(double);
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
    for (int part = 0; part < ZERO_FAMILY_PARTS; part++) free(w->joined[part]);
    free(w->list);
    zero_exchanges_close(w->exchanges);
    zero_events_destroy(&w->events);
    for (int k = 0; k < w->n_programs; k++) zero_actions_destroy(&w->actions[k]);
    for (int k = 1; k < w->n_programs; k++) zero_schedule_destroy(&w->schedules[k]);
    free(w->actions);
    free(w->schedules);
    zero_groups_destroy(&w->groups);
}

zero_status zero_simulate(const zero_schedule *s, const zero_simulate_input *input,
                          zero_simulated *result)
{
    ZERO_AT_END(destroy) zero_walkers w = {.s = s, .input = input};
    /* Pieces of --partition owner differ in length, so a file has more blocks of one rank
     * than of another. All other programs differ only in what takes no time. */
    int n = s->input.partition == ZERO_PARTITION_OWNER && zero_plan_uses_file(&s->input) &&
                    s->input.n_ranks > 1
                ? s->input.n_ranks
                : 1;
    zero_simulation_cost cost;
    ZERO_TRY(zero_simulation_check(s, input));
    ZERO_TRY(zero_groups_init(&w.groups, s));
    w.ranks = w.groups.ranks;
    ZERO_TRY(zero_new(&w.actions, n, "programs of simulated ranks"));
    ZERO_TRY(zero_new(&w.schedules, n, "programs of simulated ranks"));
    ZERO_TRY(add_program(&w, 0));
    ZERO_TRY(zero_simulation_cost_of(&w.actions[0], &w.groups, input->steps, &cost));
    cost.bytes += bytes_of(&w, n);
    ZERO_TRY(zero_simulation_check_cost(s, input, &cost));
    for (int rank = 1; rank < n; rank++) ZERO_TRY(add_program(&w, rank));
    ZERO_TRY(open_exchanges(&w));
    ZERO_TRY(zero_new(&w.list, w.ranks, "simulated ranks"));
    for (int part = 0; part < ZERO_FAMILY_PARTS; part++)
        ZERO_TRY(zero_new(&w.joined[part], n_joined(&w, part), "simulated ranks"));
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
