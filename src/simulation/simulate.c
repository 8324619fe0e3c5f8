#include "simulation/simulate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "simulation/limits.h"
#include "simulation/walkers.h"

/* All that a simulation holds. */
typedef struct {
    const zero_schedule *s;
    const zero_simulate_input *input;
    zero_groups groups;
    zero_schedule *schedules; /* [n_programs]; owned. The first is empty: it is `s` */
    zero_actions *actions;    /* [n_programs] */
    int *program_of;          /* [n_ranks]; NULL: all have the first */
    int n_programs;
    zero_events events;
    zero_exchanges *exchanges;
    zero_walkers *walkers;
} simulation;

/* ---- programs ---- */

/* Pieces of --partition owner differ in length, so a file has more blocks of one rank than
 * of another. All other programs differ only in what takes no time. */
static bool has_own_programs(const zero_schedule *s)
{
    return s->input.partition == ZERO_PARTITION_OWNER && zero_plan_uses_file(&s->input) &&
           s->input.n_ranks > 1;
}

static zero_status add_program(simulation *x, int rank)
{
    zero_plan_input input = x->s->input;
    input.rank = rank;
    ZERO_TRY(zero_schedule_compile(&x->schedules[rank], &input));
    x->program_of[rank] = rank;
    x->n_programs++;
    ZERO_TRY(zero_actions_init(&x->actions[rank], &x->schedules[rank], &x->input->machine));
    /* All ranks begin the same collectives in the same order. */
    assert(x->actions[rank].n_specs == x->actions[0].n_specs);
    assert(memcmp(x->actions[rank].n_calls, x->actions[0].n_calls,
                  sizeof x->actions[0].n_calls) == 0);
    return ZERO_OK;
}

static zero_status make_first_program(simulation *x)
{
    int n = has_own_programs(x->s) ? x->s->input.n_ranks : 1;
    x->actions = calloc((size_t)n, sizeof *x->actions);
    x->schedules = calloc((size_t)n, sizeof *x->schedules);
    if (n > 1) x->program_of = calloc((size_t)n, sizeof *x->program_of);
    if (!x->actions || !x->schedules || (n > 1 && !x->program_of))
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the programs of %d ranks", n);
    x->n_programs = 1;
    return zero_actions_init(&x->actions[0], x->s, &x->input->machine);
}

/* ---- the network ---- */

static zero_link_rate inside_rate(const simulation *x)
{
    const zero_plan_machine *m = &x->input->machine;
    bool is_one_node = zero_schedule_world_layout(x->s)->n_nodes == 1;
    if (is_one_node) return (zero_link_rate){m->latency, m->bandwidth};
    if (m->node_bandwidth > 0.0)
        return (zero_link_rate){m->node_latency, m->node_bandwidth};
    /* A group of the job on one of several nodes: then plan_time.h charges what passes
     * there. */
    for (int k = 0; k < x->groups.n_layouts; k++)
        if (x->groups.layouts[k]->n_nodes == 1 && x->groups.layouts[k]->size > 1)
            return (zero_link_rate){m->latency, m->bandwidth};
    return (zero_link_rate){0.0, INFINITY};
}

static void stir(void *arg, int rank)
{
    simulation *x = arg;
    zero_walkers_stir(x->walkers, rank);
}

static void ended(void *arg, const zero_exchange_end *end)
{
    simulation *x = arg;
    zero_walker_exchange_ended(x->walkers, end);
}

static zero_status open_exchanges(simulation *x)
{
    const zero_simulate_input *in = x->input;
    zero_exchanges_input input = {
        .network = {.layout = zero_schedule_world_layout(x->s),
                    .across = {in->machine.latency, in->machine.bandwidth},
                    .inside = inside_rate(x),
                    .adapter = in->adapter,
                    .switch_nodes = in->switch_nodes,
                    .switch_ratio = in->switch_ratio},
        .memory_bandwidth = in->memory_bandwidth,
        .stir = stir,
        .ended = in->flight ? ended : NULL,
        .arg = x};
    ZERO_TRY(zero_exchanges_open(&x->exchanges, &input, &x->events));
    return zero_groups_add(&x->groups, &x->actions[0], x->exchanges);
}

/* ---- results ---- */

static double waited(const zero_simulated_rank *r)
{
    return r->exposed + r->waiting;
}

#define ALIKE 1e-3 /* of the step */

static zero_simulated results_of(const simulation *x)
{
    const zero_network *network = zero_exchanges_network(x->exchanges);
    int n = x->groups.ranks;
    zero_simulated out = {.busiest = zero_walkers_busiest(x->walkers),
                          .messages = zero_network_messages(network),
                          .bytes = zero_network_bytes(network),
                          .events = x->events.added};
    for (int r = 0; r < n; r++) {
        const zero_simulated_rank *rank = zero_walkers_rank(x->walkers, r);
        double times = 1.0 / n;
        out.mean.step += times * rank->step;
        out.mean.compute += times * rank->compute;
        out.mean.sums += times * rank->sums;
        out.mean.exposed += times * rank->exposed;
        out.mean.waiting += times * rank->waiting;
        out.mean.disk += times * rank->disk;
        if (waited(rank) < waited(zero_walkers_rank(x->walkers, out.slowest)))
            out.slowest = r;
    }
    out.of_slowest = *zero_walkers_rank(x->walkers, out.slowest);
    out.step = out.of_slowest.step;
    for (int r = 0; r < n; r++) {
        double more = waited(zero_walkers_rank(x->walkers, r)) - waited(&out.of_slowest);
        out.as_slow += more < ALIKE * out.step;
    }
    return out;
}

/* ---- all ---- */

static zero_status simulate(simulation *x, zero_simulated *result)
{
    ZERO_TRY(zero_simulation_check(x->s, x->input));
    ZERO_TRY(zero_groups_init(&x->groups, x->s));
    ZERO_TRY(make_first_program(x));
    int n = has_own_programs(x->s) ? x->s->input.n_ranks : 1;
    zero_simulation_cost cost;
    ZERO_TRY(zero_simulation_cost_of(&x->actions[0], &x->groups, x->input->steps, &cost));
    cost.bytes += zero_walkers_bytes(&x->groups, &x->actions[0]);
    if (n > 1)
        cost.bytes += n * (int64_t)x->actions[0].n *
                      (int64_t)(sizeof(zero_action) + sizeof(zero_instruction));
    ZERO_TRY(zero_simulation_check_cost(x->s, x->input, &cost));
    for (int rank = 1; rank < n; rank++) ZERO_TRY(add_program(x, rank));
    ZERO_TRY(open_exchanges(x));
    zero_walkers_input input = {.input = x->input,
                                .world = zero_schedule_world_layout(x->s),
                                .actions = x->actions,
                                .n_programs = x->n_programs,
                                .program_of = x->program_of,
                                .groups = &x->groups,
                                .exchanges = x->exchanges,
                                .events = &x->events};
    ZERO_TRY(zero_walkers_open(&x->walkers, &input));
    ZERO_TRY(zero_walkers_run(x->walkers));
    *result = results_of(x);
    return zero_plan_time_step(x->s, &x->input->machine, &result->plan);
}

zero_status zero_simulate(const zero_schedule *s, const zero_simulate_input *input,
                          zero_simulated *result)
{
    simulation x = {.s = s, .input = input};
    zero_status st = simulate(&x, result);
    zero_walkers_close(x.walkers);
    zero_exchanges_close(x.exchanges);
    zero_events_destroy(&x.events);
    for (int k = 0; k < x.n_programs; k++) zero_actions_destroy(&x.actions[k]);
    for (int k = 1; k < x.n_programs; k++) zero_schedule_destroy(&x.schedules[k]);
    free(x.actions);
    free(x.schedules);
    free(x.program_of);
    zero_groups_destroy(&x.groups);
    return st;
}
