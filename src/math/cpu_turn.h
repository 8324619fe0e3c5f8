/* cpu_turn.h - sines and cosines, and the pairs of a head that turn by them: included by
 * files that are compiled once per instruction set. */
#pragma once

#include "base/elementary.h"

static void angles(int64_t pairs, float t, const float *frequency, float *cosine,
                   float *sine)
{
#pragma omp simd
    for (int64_t i = 0; i < pairs; i++) {
        double s, c;
        zero_sine_cosine((double)(t * frequency[i]), &s, &c);
        sine[i] = (float)s, cosine[i] = (float)c;
    }
}

static void turn(int64_t pairs, const float *cosine, const float *sine, float *x)
{
#pragma omp simd
    for (int64_t i = 0; i < pairs; i++) {
        const float a = x[i], b = x[i + pairs];
        x[i] = a * cosine[i] - b * sine[i];
        x[i + pairs] = b * cosine[i] + a * sine[i];
    }
}
