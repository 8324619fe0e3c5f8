/* exact.h - sums of squares without rounding: any order, cut or partition gives the same
 * sum.
 *
 * The sum is one long number in words of 32 bits, from 2^-320 up to beyond 2^316. The
 * square of a float lies between 2^-298 and 2^256, so 2^40 of them on each of 2^20 ranks
 * find room.
 *
 *     word        0          1        ...      19          20           21
 *     counts   2^-320     2^-288      ...     2^288    infinities      NaNs
 *
 * Words are int64_t, and hold less than 2^32 whenever a function here returns. So ranks may
 * add their words, each for itself, by any sum of integers, and have the sum of all.
 *
 * Nothing here allocates. */
#pragma once

#include "zero/type.h"

#define ZERO_EXACT_DIGITS 20
#define ZERO_EXACT_WORDS  (ZERO_EXACT_DIGITS + 2)

/* All zeros: no numbers. It has no pointers: it may travel as integers. */
typedef struct {
    int64_t word[ZERO_EXACT_WORDS];
} zero_exact;

/* *sum += x^2: the definition. */
void zero_exact_add_square(zero_exact *sum, float x);

/* *sum += the squares of n >= 0 numbers. Fast where neighbours differ by less than 2^36. */
void zero_exact_add_squares(zero_exact *sum, zero_type type, int64_t n, const void *x);

/* *sum += more. The words of either may be sums over at most 2^20 ranks. */
void zero_exact_merge(zero_exact *sum, const zero_exact *more);

/* The sum rounded once, to nearest, ties to even. NaN if a number was NaN, else infinity if
 * one was infinite. Words may be sums over ranks. */
double zero_exact_value(const zero_exact *sum);
