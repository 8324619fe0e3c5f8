/* learning_rate.h - linear warm-up, then half a cosine.
 *
 *     lr |   ____
 *        |  /    \__          step < warmup:  peak (step + 1) / warmup
 *        | /        \___      after:          from peak down to least at the last step
 *        |/             least */
#pragma once

#include <stdint.h>

typedef struct {
    double peak, least;
    int64_t warmup, steps;
} zero_learning_rate;

/* The rate of step 0 <= step < steps. */
double zero_learning_rate_at(const zero_learning_rate *lr, int64_t step);
