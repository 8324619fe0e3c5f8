/* sentence.h - a text of bounded length, and how it names ranks: equal ones together.
 * Local. */
#pragma once

#include "lists/member.h"

typedef struct {
    char chars[960]; /* an error holds 1023, and may begin with a rank */
    size_t used;
} zero_sentence;

/* Appends; a text that does not fit is cut off. */
void zero_sentence_add(zero_sentence *report, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Sorts records, `apart` bytes from each other, into classes whose first `bytes` are equal:
 * class_of[r] is the lowest rank of r's class. Takes time ranks x classes. */
void zero_ranks_classes(int size, const void *records, size_t apart, size_t bytes,
                        int class_of[]);

/* The largest class; of equally large ones, that of the lowest rank. */
int zero_ranks_majority(int size, const int class_of[]);

int zero_ranks_count(int size, const int class_of[], int class);

/* Appends "rank 4" or "ranks 0-2,5" for the ranks of a class, the first few by number. */
void zero_sentence_add_ranks(zero_sentence *report, int size, const int class_of[],
                             int class);

/* The same for the ranks of a group, by their numbers in the whole of its family. */
void zero_sentence_add_members(zero_sentence *report, const zero_member *group, int size,
                               const int class_of[], int class);
