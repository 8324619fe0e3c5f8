/* bench_median.h - the median of measurements. */
#pragma once

/* Sorts x[n] and returns its median; NaN if n is 0. */
double bench_median(double *x, int n);
