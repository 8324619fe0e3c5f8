/* sweep_run.h - one point of a study: its run, as a child of this process. */
#pragma once

#include "cli/sweep_study.h"

/* ZERO_ERR_ENV if the launch line is an srun's inside a Slurm job, and the job has fewer
 * tasks than a point that is still to be run. */
ZERO_NODISCARD zero_status zero_sweep_run_check(const zero_sweep_study *study,
                                                const zero_sweep_options *options);

/* Runs the point and measures it; the study's files have it before and after. A run that
 * fails is the point's failure and ours, with the last lines that it printed on stderr.
 * ZERO_STOPPED if we, or the run, were asked to stop. */
ZERO_NODISCARD zero_status zero_sweep_run_point(zero_sweep_study *study,
                                                const zero_sweep_options *options,
                                                json_t *point);
