/* past.h - how many positions of each text came before, as an argument of a kernel: the host may change
 * its own numbers as soon as the launcher returns. */
#pragma once

#include "gpu/device_code.h"

typedef struct {
    bool is_given;
    int32_t at[ZERO_CACHED_TEXTS];
} zero_cuda_past;

static inline zero_cuda_past zero_cuda_past_of(const int64_t *past, int64_t B)
{
    zero_cuda_past p = {};
    assert((!past || B <= ZERO_CACHED_TEXTS) && "more texts than a call takes");
    p.is_given = past != NULL;
    for (int64_t b = 0; past && b < B; b++) p.at[b] = (int32_t)past[b];
    return p;
}

static inline __device__ int64_t zero_cuda_past_at(const zero_cuda_past &p, int64_t b)
{
    return p.is_given ? p.at[b] : 0;
}
