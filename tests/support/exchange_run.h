/* exchange_run.h - simulated collectives of all ranks, which do nothing else: each looks as soon as it
 * could go on, and again after its arithmetic. */
#pragma once

#include "support/test.h"

#include "simulation/exchange.h"

typedef struct {
    zero_events events;
    zero_exchanges *x;
    double *free_at; /* [ranks]: until then the rank does arithmetic */
    double end;      /* of the last look */
} exchange_run;

static inline void run_stirs(void *arg, int rank)
{
    exchange_run *run = arg;
    zero_events_add(&run->events, run->events.now, ZERO_EVENT_RANK, rank);
}

/* The ranks of the layout; rates other than those of input.network are infinite. */
static inline void run_open(exchange_run *run, const zero_network_input *network,
                            double memory_bandwidth)
{
    *run = (exchange_run){0};
    zero_exchanges_input input = {.network = *network,
                                  .memory_bandwidth = memory_bandwidth,
                                  .stir = run_stirs,
                                  .arg = run};
    assert_ok(zero_exchanges_open(&run->x, &input, &run->events));
    run->free_at = calloc((size_t)network->layout->size, sizeof *run->free_at);
    assert_non_null(run->free_at);
}

static inline void run_close(exchange_run *run)
{
    zero_exchanges_close(run->x);
    zero_events_destroy(&run->events);
    free(run->free_at);
}

static inline void run_note(exchange_run *run, int rank, double seconds)
{
    run->free_at[rank] = run->events.now + seconds;
    if (run->free_at[rank] > run->end) run->end = run->free_at[rank];
}

static inline void run_look(exchange_run *run, int rank)
{
    if (run->free_at[rank] > run->events.now)
        zero_events_add(&run->events, run->free_at[rank], ZERO_EVENT_RANK, rank);
    else
        run_note(run, rank, zero_exchange_look(run->x, rank));
}

/* Until nothing happens any more. Returns the time of the last look. */
static inline double run_all(exchange_run *run)
{
    zero_event event;
    while (zero_events_next(&run->events, &event)) {
        if (event.kind == ZERO_EVENT_NETWORK)
            zero_network_happens(zero_exchanges_network(run->x), &event);
        if (event.kind == ZERO_EVENT_RANK) run_look(run, event.which);
    }
    assert_ok(zero_exchanges_status(run->x));
    return run->end;
}

/* All ranks of the layout as one group: its number. */
static inline int run_group(exchange_run *run, const zero_layout *layout)
{
    int *ranks = calloc((size_t)layout->size, sizeof *ranks), group;
    assert_non_null(ranks);
    for (int r = 0; r < layout->size; r++) ranks[r] = r;
    assert_ok(zero_exchanges_add_group(run->x, ranks, layout, &group));
    free(ranks);
    return group;
}

static inline void run_begin(exchange_run *run, int group, int64_t call, int lists,
                             int member)
{
    run_note(run, member, zero_exchanges_begin(run->x, group, call, lists, member, NULL));
}

/* One collective of all ranks, alone. Returns its seconds. */
static inline double run_alone(const zero_network_input *network, double memory_bandwidth,
                               const zero_collective_spec *spec)
{
    exchange_run run;
    const zero_layout *layout = network->layout;
    int lists;
    run_open(&run, network, memory_bandwidth);
    int group = run_group(&run, layout);
    assert_ok(zero_exchanges_add_lists(run.x, group, spec, &lists));
    for (int r = 0; r < layout->size; r++) run_begin(&run, group, 0, lists, r);
    double seconds = run_all(&run);
    for (int r = 0; r < layout->size; r++)
        assert_true(zero_exchange_is_over(run.x, group, 0, r));
    run_close(&run);
    return seconds;
}
