/* step_input.h - the numbers of a step, from a completed configuration. */
#pragma once

#include "train/config.h"
#include "zero/train.h"

/* The input of step `step`, from 0, after `updates` updates were made: the rate follows these, so a
 * skipped step does not change it. */
zero_step_input zero_config_step_input(const zero_config *config, int64_t step,
                                       int64_t updates);
