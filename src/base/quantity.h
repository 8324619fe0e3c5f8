/* quantity.h - numbers as people write them, wherever text is read: options, --config,
 * --data, benchmarks.
 *
 *     8K 8M 8G 8T, 8KB 8MB 8GB 8TB     powers of 1000, of elements and bytes alike
 *     8KiB 8MiB 8GiB 8TiB              powers of 1024
 *
 * Numbers are decimal: no hexadecimal, no inf, no nan. */
#pragma once

#include "base/fail.h"

/* "64", "-1", "2M", "1.5GiB": a whole number after the suffix is applied, else false. */
bool zero_quantity_whole(const char *text, int64_t *number);

/* "0.5", "3e-4": a finite number without a suffix, else false. */
bool zero_quantity_real(const char *text, double *number);

/* "1e-6", "12.5G": a finite number that may have a suffix, else false. */
bool zero_quantity_rate(const char *text, double *number);

/* "1us", "2ms", "1e-6", "30ns", "5s": seconds, or with the suffixes of a rate; else
 * false. */
bool zero_quantity_seconds(const char *text, double *seconds);
