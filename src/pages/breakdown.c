#include "pages/breakdown.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"

/* A rank's part of a collective. */
typedef struct {
    int at; /* trace->ranks[at] */
    const zero_traced_flight *flight;
} part;

static zero_status no_memory(const zero_breakdown *b)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for its breakdown", b->trace->path);
}

/* An array of n items; never NULL for lack of items. */
static void *allocate(int64_t n, size_t item)
{
    return calloc((size_t)n + 1, item);
}

/* ---- steps ---- */

/* The steps of a rank, and their sum. Spans do not overlap. */
static void take_rank(zero_breakdown *b, int64_t r)
{
    const zero_traced_rank *rank = &b->trace->ranks[r];
    const zero_traced_span *spans = rank->spans;
    zero_breakdown_step *sum = &b->sums[r];
    sum->rank = rank->rank;
    for (int64_t begin = 0, end; begin < rank->n_spans; begin = end) {
        zero_breakdown_step *s = &b->steps[b->n_steps++];
        *s = (zero_breakdown_step){.rank = rank->rank, .step = spans[begin].step};
        for (end = begin; end < rank->n_spans && spans[end].step == s->step; end++) {
            s->of_kind[spans[end].kind] += spans[end].end - spans[end].begin;
            sum->of_kind[spans[end].kind] += spans[end].end - spans[end].begin;
            s->idle -= spans[end].end - spans[end].begin;
        }
        s->total = spans[end - 1].end - spans[begin].begin;
        s->idle += s->total;
        sum->total += s->total;
        sum->idle += s->idle;
    }
}

static int compare_steps(const void *x, const void *y)
{
    const zero_breakdown_step *a = x, *b = y;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static zero_status take_steps(zero_breakdown *b)
{
    int64_t n = 0;
    for (int64_t r = 0; r < b->trace->n_ranks; r++)
        for (int64_t i = 0; i < b->trace->ranks[r].n_spans; i++) {
            const zero_traced_span *s = &b->trace->ranks[r].spans[i];
            n += i == 0 || s->step != s[-1].step;
        }
    b->steps = allocate(n, sizeof *b->steps);
    b->sums = allocate(b->trace->n_ranks, sizeof *b->sums);
    if (!b->steps || !b->sums) return no_memory(b);
    for (int64_t r = 0; r < b->trace->n_ranks; r++) take_rank(b, r);
    qsort(b->steps, (size_t)b->n_steps, sizeof *b->steps, compare_steps);
    return ZERO_OK;
}

/* ---- collectives ---- */

static int compare_collectives(const zero_traced_flight *a, const zero_traced_flight *b)
{
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    if (a->sequence != b->sequence) return a->sequence < b->sequence ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* Parts of one collective lie together, in the order in which ranks began. */
static int compare_parts(const void *x, const void *y)
{
    const part *a = x, *b = y;
    int order = compare_collectives(a->flight, b->flight);
    if (order != 0) return order;
    if (a->flight->begin != b->flight->begin)
        return a->flight->begin < b->flight->begin ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Parts [n] of one collective. */
static void add_collective(zero_breakdown *b, const part *parts, int64_t n)
{
    const zero_traced_flight *first = parts[0].flight, *last = parts[n - 1].flight;
    zero_breakdown_collective *c = &b->collectives[b->n_collectives++];
    int64_t end = first->end;
    for (int64_t i = 0; i < n; i++) {
        end = zero_max(end, parts[i].flight->end);
        if (n > 1) b->late[parts[i].at].joined++;
    }
    *c = (zero_breakdown_collective){.name = first->name,
                                     .step = first->step,
                                     .sequence = first->sequence,
                                     .first = first->first,
                                     .n_ranks = (int)n,
                                     .last = b->trace->ranks[parts[n - 1].at].rank,
                                     .spread = last->begin - first->begin,
                                     .duration = end - first->begin};
    if (n < 2) return;
    c->delay = last->begin - parts[n - 2].flight->begin;
    zero_breakdown_late *late = &b->late[parts[n - 1].at];
    late->last += c->delay > 0;
    late->delay += zero_min(c->delay, INT64_MAX - late->delay);
}

static zero_status take_collectives(zero_breakdown *b)
{
    const zero_traced *t = b->trace;
    int64_t n = 0, at = 0;
    for (int64_t r = 0; r < t->n_ranks; r++) n += t->ranks[r].n_flights;
    part *parts = allocate(n, sizeof *parts);
    b->collectives = allocate(n, sizeof *b->collectives);
    b->late = allocate(t->n_ranks, sizeof *b->late);
    if (!parts || !b->collectives || !b->late) {
        free(parts);
        return no_memory(b);
    }
    for (int64_t r = 0; r < t->n_ranks; r++) {
        b->late[r].rank = t->ranks[r].rank;
        for (int64_t i = 0; i < t->ranks[r].n_flights; i++)
            parts[at++] = (part){(int)r, &t->ranks[r].flights[i]};
    }
    qsort(parts, (size_t)n, sizeof *parts, compare_parts);
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1;
             end < n && compare_collectives(parts[begin].flight, parts[end].flight) == 0;)
            end++;
        add_collective(b, &parts[begin], end - begin);
    }
    free(parts);
    return ZERO_OK;
}

zero_status zero_breakdown_of(const zero_traced *trace, zero_breakdown *breakdown)
{
    zero_breakdown b = {.trace = trace};
    zero_status st = take_steps(&b);
    if (st == ZERO_OK) st = take_collectives(&b);
    if (st == ZERO_OK)
        *breakdown = b;
    else
        zero_breakdown_destroy(&b);
    return st;
}

void zero_breakdown_destroy(zero_breakdown *breakdown)
{
    free(breakdown->steps);
    free(breakdown->sums);
    free(breakdown->collectives);
    free(breakdown->late);
    *breakdown = (zero_breakdown){0};
}
