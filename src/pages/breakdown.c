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

/* Spans [n] of one step, which do not overlap. */
static zero_breakdown_step make_step(int rank, const zero_traced_span *spans, int64_t n)
{
    zero_breakdown_step s = {.rank = rank, .step = spans[0].step};
    s.total = spans[n - 1].end - spans[0].begin;
    s.idle = s.total;
    for (int64_t i = 0; i < n; i++) {
        s.of_kind[spans[i].kind] += spans[i].end - spans[i].begin;
        s.idle -= spans[i].end - spans[i].begin;
    }
    return s;
}

static void add(zero_breakdown_step *sum, const zero_breakdown_step *s)
{
    sum->total += s->total;
    sum->idle += s->idle;
    for (int k = 0; k < ZERO_TRACED_KINDS; k++) sum->of_kind[k] += s->of_kind[k];
}

static void take_rank(zero_breakdown *b, int64_t r)
{
    const zero_traced_rank *rank = &b->trace->ranks[r];
    b->sums[r].rank = rank->rank;
    for (int64_t begin = 0, end; begin < rank->n_spans; begin = end) {
        for (end = begin;
             end < rank->n_spans && rank->spans[end].step == rank->spans[begin].step;)
            end++;
        b->steps[b->n_steps] = make_step(rank->rank, &rank->spans[begin], end - begin);
        add(&b->sums[r], &b->steps[b->n_steps++]);
    }
}

static int compare_steps(const void *x, const void *y)
{
    const zero_breakdown_step *a = x, *b = y;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int64_t count_steps(const zero_traced *t)
{
    int64_t n = 0;
    for (int64_t r = 0; r < t->n_ranks; r++)
        for (int64_t i = 0; i < t->ranks[r].n_spans; i++)
            n += i == 0 || t->ranks[r].spans[i].step != t->ranks[r].spans[i - 1].step;
    return n;
}

static zero_status take_steps(zero_breakdown *b)
{
    b->steps = allocate(count_steps(b->trace), sizeof *b->steps);
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

static int64_t collect(const zero_traced *t, part *parts)
{
    int64_t n = 0;
    for (int64_t r = 0; r < t->n_ranks; r++)
        for (int64_t i = 0; i < t->ranks[r].n_flights; i++)
            parts[n++] = (part){(int)r, &t->ranks[r].flights[i]};
    return n;
}

static void group(zero_breakdown *b, const part *parts, int64_t n)
{
    for (int64_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1;
             end < n && compare_collectives(parts[begin].flight, parts[end].flight) == 0;)
            end++;
        add_collective(b, &parts[begin], end - begin);
    }
}

static zero_status take_collectives(zero_breakdown *b)
{
    int64_t n = 0;
    for (int64_t r = 0; r < b->trace->n_ranks; r++) n += b->trace->ranks[r].n_flights;
    part *parts = allocate(n, sizeof *parts);
    b->collectives = allocate(n, sizeof *b->collectives);
    b->late = allocate(b->trace->n_ranks, sizeof *b->late);
    if (!parts || !b->collectives || !b->late) {
        free(parts);
        return no_memory(b);
    }
    for (int64_t r = 0; r < b->trace->n_ranks; r++)
        b->late[r].rank = b->trace->ranks[r].rank;
    n = collect(b->trace, parts);
    qsort(parts, (size_t)n, sizeof *parts, compare_parts);
    group(b, parts, n);
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
