#include "comm/sentence.h"

#include <stdarg.h>

#define MAX_RANGES 6

void zero_sentence_add(zero_sentence *report, const char *fmt, ...)
{
    size_t room = sizeof report->chars - report->used;
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(report->chars + report->used, room, fmt, args);
    va_end(args);
    if (len > 0) report->used += (size_t)len < room ? (size_t)len : room - 1;
}

void zero_ranks_classes(int size, const void *records, size_t apart, size_t bytes,
                        int class_of[])
{
    const char *first = records;
    for (int r = 0; r < size; r++) {
        class_of[r] = r;
        for (int q = 0; q < r && class_of[r] == r; q++)
            if (class_of[q] == q &&
                memcmp(first + (size_t)q * apart, first + (size_t)r * apart, bytes) == 0)
                class_of[r] = q;
    }
}

int zero_ranks_count(int size, const int class_of[], int class)
{
    int n = 0;
    for (int r = 0; r < size; r++) n += class_of[r] == class;
    return n;
}

int zero_ranks_majority(int size, const int class_of[])
{
    int best = 0, most = 0;
    for (int r = 0; r < size; r++) {
        int n = class_of[r] == r ? zero_ranks_count(size, class_of, r) : 0;
        if (n > most) {
            most = n;
            best = r;
        }
    }
    return best;
}

void zero_sentence_add_ranks(zero_sentence *report, int size, const int class_of[],
                             int class)
{
    zero_sentence_add_members(report, &(zero_member){.part = ZERO_WHOLE}, size, class_of,
                              class);
}

void zero_sentence_add_members(zero_sentence *report, const zero_member *group, int size,
                               const int class_of[], int class)
{
    int n = zero_ranks_count(size, class_of, class), ranges = 0, named = 0;
    bool adjoin = zero_member_rank(group, 1) == zero_member_rank(group, 0) + 1;
    zero_sentence_add(report, n == 1 ? "rank" : "ranks");
    for (int r = class; r < size && ranges < MAX_RANGES; r++) {
        if (class_of[r] != class) continue;
        int last = r;
        while (adjoin && last + 1 < size && class_of[last + 1] == class) last++;
        zero_sentence_add(report, ranges++ == 0 ? " %d" : ",%d",
                          zero_member_rank(group, r));
        if (last > r) zero_sentence_add(report, "-%d", zero_member_rank(group, last));
        named += last - r + 1;
        r = last;
    }
    if (named < n) zero_sentence_add(report, " and %d more", n - named);
}
