/* sweep_options.h - the options of `zero sweep`: its own, those of a job, and those of a
 * run. */
#pragma once

#include "cli/job_options.h"
#include "cli/words.h"
#include "sharding/stages.h"
#include "simulation/simulate.h"

#define ZERO_SWEEP_RANKS 64 /* different numbers of ranks, at most */

typedef struct {
    const char *ranks_list, *stage_list;
    bool weak, strong, keep_going;
    const char *launch; /* NULL: none, one rank alone */
    const char *out;
    int64_t warm_up, steps;
    const char *poll;
    double adapter, memory_bandwidth; /* 0: not given */
    int64_t most_messages;            /* of a simulated point; 0: nothing is simulated */
    zero_job_options job; /* network and rates; its ranks and stage mean nothing */

    /* The configuration of a point but for its stage, and the machine. */
    zero_plan_request request;
    zero_simulate_input simulation;       /* but for the machine */
    int ranks[ZERO_SWEEP_RANKS], n_ranks; /* ascending */
    int stages[ZERO_STAGE_COUNT], n_stages;
    const zero_options *given;
} zero_sweep_options;

#define ZERO_SWEEP_TABLES 3
extern const zero_option_table zero_sweep_tables[ZERO_SWEEP_TABLES];

/* The command's check(), of each point's configuration, too: what would be refused for the
 * last point is refused before the first one runs. */
zero_status zero_sweep_options_check(void *options, const zero_options *given);
/* True if times are asked for from the plan, and from a simulation. */
bool zero_sweep_has_plan(const zero_sweep_options *options);
bool zero_sweep_has_simulation(const zero_sweep_options *options);

/* Adds the options of zero train for a point, as --name=value, without --metrics.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_sweep_point_words(const zero_sweep_options *options,
                                                  int stage, zero_words *words);
