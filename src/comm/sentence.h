/* report.h - how an error names ranks: those alike together, and no more than fits. Local. */
#pragma once

#include <stddef.h>

typedef struct {
    char chars[960]; /* zero_last_error() holds 1023, with a rank's name before it */
    size_t used;
} zero_sentence;

/* What does not fit is cut off. */
void zero_sentence_add(zero_sentence *report, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Sorts records, `apart` bytes from each other, into classes with equal first `bytes`:
 * class_of[r] is the lowest rank of r's class. Time: ranks x classes. */
void zero_ranks_classes(int size, const void *records, size_t apart, size_t bytes,
                        int class_of[]);

/* The largest class; among equals that of the lowest rank. */
int zero_ranks_majority(int size, const int class_of[]);

int zero_ranks_count(int size, const int class_of[], int class);

/* Adds "rank 4" or "ranks 0-2,5" for the ranks of a class, the first few of them by number. */
void zero_sentence_add_ranks(zero_sentence *report, int size, const int class_of[],
                             int class);
