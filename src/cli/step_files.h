/* step_files.h - one step file that is verified, or two that are compared. */
#pragma once

#include "cli/run_options.h"

typedef struct {
    zero_config config;
    bool json;
} zero_verify_options;

/* Refuses options that are the file's. */
zero_status zero_step_files_check(const zero_options *given);
/* Starts and ends MPI. */
zero_status zero_step_files_run(const zero_verify_options *o, const zero_options *given);
