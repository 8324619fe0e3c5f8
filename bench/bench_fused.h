/* bench_fused.h - the products of a block that a backend may make with what follows them (zero_fused):
 * qkv, the ends of both branches, GELU and its gradient. */
#pragma once

#include "bench_lanes.h"

typedef struct {
    bench_lanes *lanes; /* borrowed; at least 4 C * C elements long */
    bool by_two_calls;
} bench_fused;

/* All five once; the argument is a bench_fused. Local. */
zero_status bench_fused_run(void *fused);
