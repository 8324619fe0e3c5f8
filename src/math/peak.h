/* peak.h - what this machine's cores can do: the rates beside which speeds are seen.
 *
 * Nothing computes as fast: products load their factors, too. A share of the peak says how
 * much is left to gain, on any machine. */
#pragma once

#include "zero/status.h"
#include "zero/type.h"

typedef struct {
    double flops;   /* per second, of all threads; a multiply-add is two; 0: unknown */
    const char *by; /* instructions: "AVX-512", "AMX-BF16" */
} zero_cpu_rate;

/* Multiply-adds between registers, by the fastest instructions for factors of this type
 * that the CPU has, whatever bits they give. All `threads` compute at once, for 1 to 3 ms.
 * The time is their own, so that others on their cores do not count. */
zero_cpu_rate zero_cpu_peak(zero_type factors, int threads);

/* Bytes per second that all threads read at once, each from `bytes` of its own, a multiple
 * of 512: what fits into a cache comes from there. ZERO_ERR_NOMEM. */
zero_status zero_cpu_read_rate(size_t bytes, int threads, double *rate);
