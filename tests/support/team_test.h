/* team_test.h - teams of several sizes (math/team.h). */
#pragma once

#include "support/math_test.h"
#include <pthread.h>
#include <stdatomic.h>

#include "math/backends.h"
#include "math/cpu_state.h"
#include "math/team.h"

static const int teams[] = {2, 3, 4, 7};
#define MOST 7

/* The scratch starts as NaN. */
static inline zero_math team_of(test_pool *pool, int threads)
{
    const int64_t bytes = threads * zero_math_scratch() * (int64_t)sizeof(float);
    zero_math math = {.threads = threads, .scratch = test_bytes(pool, bytes)};
    memset(math.scratch, 0xff, (size_t)bytes);
    assert_ok(zero_backend_cpu.open(&math));
    return math;
}
