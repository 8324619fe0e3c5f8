/* bench_lists.h - lists in options: words with commas between them, each once. */
#pragma once

#include <stddef.h>

#include "zero/status.h"

#define BENCH_LIST 16 /* words at most */

/* Reads "a,b,c": words that name_at(i) lists (NULL past the last one). which[n] are their
 * numbers. ZERO_ERR_INVALID, naming the option and all words, for anything else. */
zero_status bench_list_read(const char *option, const char *list,
                            const char *(*name_at)(int i), int which[BENCH_LIST], int *n);

/* Reads sizes in bytes, 1 to 2^31 - 1, each with or without a suffix. */
zero_status bench_list_read_sizes(const char *option, const char *list,
                                  size_t sizes[BENCH_LIST], int *n);
