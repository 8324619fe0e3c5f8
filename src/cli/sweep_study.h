/* sweep_study.h - the directory of a study.
 *
 *     DIR/study.json           settings, and all points with what they were and took
 *         study.csv            the same points, a row each
 *         points/NAME.jsonl    the metrics of a point's run
 *                NAME.log      what it printed
 *
 * study.json and study.csv are replaced as a whole. A point is measured if its metrics are
 * complete and its options are those of this study; anything else is run again. One process
 * works on a study at a time. Errors name the path. */
#pragma once

#include "cli/sweep_options.h"
#include "io/storage.h"
#include "pages/study.h"

typedef struct {
    zero_storage_dir dir, points;
    json_t *before; /* study.json as it was found; NULL: a new study; owned */
    json_t *tree;   /* as it is now; owned */
} zero_sweep_study;

/* Opens or makes the study and takes from it what is measured. ZERO_ERR_INVALID, naming
 * what differs, if the directory holds something else, or measurements under other options.
 * The options outlive the study. */
ZERO_NODISCARD zero_status zero_sweep_study_open(zero_sweep_study *study,
                                                 const zero_sweep_options *options);
void zero_sweep_study_close(zero_sweep_study *study); /* accepts all zeros */

/* Replaces both files. */
ZERO_NODISCARD zero_status zero_sweep_study_write(zero_sweep_study *study);

/* Measures a point from its metrics. ZERO_ERR_FORMAT or ZERO_ERR_IO if they are not
 * complete or are another run's; *steps is the number of steps that they have. */
ZERO_NODISCARD zero_status zero_sweep_study_measure(const zero_sweep_study *study,
                                                    const zero_sweep_options *options,
                                                    json_t *point, int64_t *steps);

/* "DIR/points/NAME.jsonl", with another ending. */
void zero_sweep_study_path(const zero_sweep_study *study, const json_t *point,
                           const char *ending, char path[ZERO_STORAGE_FILE_PATH]);
