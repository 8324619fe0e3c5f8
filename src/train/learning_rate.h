/* learning_rate.h - linear warm-up, then a decay.
 *
 *     lr |   ____
 *        |  /    \__          step < warmup:  peak (step + 1) / warmup
 *        | /        \___      after:          from peak down to least at the last step,
 *                                             along half
 *        |/             least                 a cosine or a line; or peak to the end */
#pragma once

#include "train/config.h"
#include "zero/train.h"

typedef enum {
    ZERO_DECAY_COSINE,
    ZERO_DECAY_LINEAR,
    ZERO_DECAY_NONE,
} zero_decay;

typedef struct {
    double peak, least;
    int64_t warmup, steps;
    zero_decay decay;
} zero_learning_rate;

/* The rate of step 0 <= step < steps. */
double zero_learning_rate_at(const zero_learning_rate *lr, int64_t step);

/* "cosine", "linear", "none"; NULL past the last one. */
const char *zero_decay_name_at(int i);
zero_decay zero_decay_find(const char *name); /* one of these names */

/* The input of step `step`, from 0, after `updates` updates were made: the rate follows
 * these, so a skipped step does not change it. */
zero_step_input zero_config_step_input(const zero_config *config, int64_t step,
                                       int64_t updates);
