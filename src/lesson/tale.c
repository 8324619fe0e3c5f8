#include "lesson/tale.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "sharding/schedule.h"

void zero_tale_take(zero_tale *tale, int rank, const zero_told *events, int n)
{
    zero_told *to = &tale->list[(int64_t)rank * tale->length];
    memcpy(to, events, (size_t)n * sizeof *to);
    for (int at = n; at < tale->length; at++) to[at].op = ZERO_TOLD_NONE;
}

int zero_tale_leader(const zero_tale *tale)
{
    int last = tale->length - 1;
    for (int r = 0; r < tale->n_ranks; r++)
        if (zero_tale_at(tale, r, last)->op != ZERO_TOLD_NONE) return r;
    return 0;
}

static bool are_alike(const zero_told *a, const zero_told *b)
{
    return a->op == b->op && a->unit == b->unit && a->part == b->part &&
           a->group == b->group && a->microbatch == b->microbatch;
}

/* The number of such events before index `at`. */
static int count_before(const zero_tale *tale, int rank, int at, const zero_told *like)
{
    int n = 0;
    for (int k = 0; k < at; k++) n += are_alike(zero_tale_at(tale, rank, k), like);
    return n;
}

const zero_told *zero_tale_find(const zero_tale *tale, int at, int rank)
{
    int leader = zero_tale_leader(tale);
    const zero_told *like = zero_tale_at(tale, leader, at);
    int left = count_before(tale, leader, at, like);
    for (int k = 0; k < tale->length; k++) {
        const zero_told *t = zero_tale_at(tale, rank, k);
        if (are_alike(t, like) && left-- == 0) return t;
    }
    return NULL;
}

const zero_told *zero_tale_reduce(const zero_tale *tale, int rank, const zero_told *wait)
{
    const zero_told *last = NULL;
    for (int k = 0; k < tale->length && k < wait->at; k++) {
        const zero_told *t = zero_tale_at(tale, rank, k);
        if (t->op == ZERO_OP_REDUCE && t->group == wait->group) last = t;
    }
    return last;
}

int64_t zero_tale_bytes(const zero_tale *tale, int at, int from, int to)
{
    const zero_told *sender = zero_tale_find(tale, at, from);
    const zero_told *reader = zero_tale_find(tale, at, to);
    return (sender ? sender->sent_to[to] : 0) + (reader ? reader->read_from[from] : 0);
}

int zero_tale_tp(const zero_tale *tale)
{
    int64_t most = 0;
    for (int r = 0; r < tale->n_ranks; r++)
        if (zero_tale_at(tale, r, 0)->tp > most) most = zero_tale_at(tale, r, 0)->tp;
    return (int)most + 1;
}
