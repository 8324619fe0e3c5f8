/* sweep.h - `zero sweep`: its options and its study. */
#pragma once

#include "cli/job_options.h"
#include "cli/words.h"
#include "pages/study.h"
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
    zero_job_options job; /* network and rates; its ranks and stage mean nothing */

    /* The configuration of a point but for its stage, and the machine. */
    zero_plan_request request;
    /* But for the machine; of no messages: nothing is simulated. */
    zero_simulate_input simulation;
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
zero_status zero_sweep_point_words(const zero_sweep_options *options, int stage,
                                   zero_words *words);

/* ---- the directory of a study ----
 *
 *     DIR/study.json           settings, and all points with what they were and took
 *         study.csv            the same points, a row each
 *         points/NAME.jsonl    the metrics of a point's run
 *                NAME.log      what it printed
 *
 * study.json and study.csv are replaced as a whole. A point is measured if its metrics are
 * complete and its options are those of this study; anything else is run again. One process
 * works on a study at a time. Errors name the path. */
typedef struct {
    zero_storage_dir dir, points;
    json_t *before; /* study.json as it was found; NULL: a new study; owned */
    json_t *tree;   /* as it is now; owned */
} zero_sweep_study;

/* Opens or makes the study and takes from it what is measured. ZERO_ERR_INVALID, naming
 * what differs, if the directory holds something else, or measurements under other options.
 * The options outlive the study. */
zero_status zero_sweep_study_open(zero_sweep_study *study,
                                  const zero_sweep_options *options);
void zero_sweep_study_close(zero_sweep_study *study); /* accepts all zeros */

/* Replaces both files. */
zero_status zero_sweep_study_write(zero_sweep_study *study);

/* Measures a point from its metrics. ZERO_ERR_FORMAT or ZERO_ERR_IO if they are not
 * complete or are another run's; *steps is the number of steps that they have. */
zero_status zero_sweep_study_measure(const zero_sweep_study *study,
                                     const zero_sweep_options *options, json_t *point,
                                     int64_t *steps);

/* "DIR/points/NAME.jsonl", with another ending. */
void zero_sweep_study_path(const zero_sweep_study *study, const json_t *point,
                           const char *ending, char path[ZERO_STORAGE_FILE_PATH]);
