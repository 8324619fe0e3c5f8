/* plan_fit.h - the largest model that fits a given memory. */
#pragma once

#include "nn/gpt2.h"
#include "sharding/schedule.h"

typedef struct {
    int64_t layers, n_params;
    size_t needed; /* bytes per rank, as zero_plan_needed() counts */
} zero_plan_fitted;

/* The deepest model of this shape, whose own layers do not matter, that `input`, whose model
 * does not matter, can train in `bytes` per rank; at most as deep as zero_gpt2_check() allows.
 * The status of zero_schedule_compile(); ZERO_ERR_INVALID, with what it needs, if not even one
 * layer fits. */
ZERO_NODISCARD zero_status zero_plan_fit(const zero_gpt2_shape *shape,
                                         const zero_plan_input *input, size_t bytes,
                                         zero_plan_fitted *fitted);
