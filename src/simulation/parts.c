#include "simulation/parts.h"

#include <assert.h>
#include <stdlib.h>

#include "base/grow.h"

/* ---- calls ---- */

int32_t zero_parts_find_call(const zero_exchanges *x, int group, int64_t number)
{
    const zero_exchange_group *g = &x->groups[group];
    if (number < g->oldest || number >= g->next) return -1;
    return g->calls[number & (g->capacity - 1)];
}

static bool grow_calls_of(zero_exchange_group *g)
{
    int64_t capacity = g->capacity > 0 ? 2 * g->capacity : 8;
    int32_t *calls = malloc((size_t)capacity * sizeof *calls);
    if (!calls) return false;
    for (int64_t i = g->oldest; i < g->next; i++)
        calls[i & (capacity - 1)] = g->calls[i & (g->capacity - 1)];
    free(g->calls);
    g->calls = calls;
    g->capacity = capacity;
    return true;
}

static int32_t take_call(zero_exchanges *x)
{
    if (x->free_call >= 0) {
        int32_t call = x->free_call;
        x->free_call = x->calls[call].next;
        return call;
    }
    zero_call *calls = zero_grow(x->calls, x->n_calls, &x->call_capacity, sizeof *calls);
    if (!calls) return -1;
    x->calls = calls;
    return (int32_t)x->n_calls++;
}

static int32_t make_call(zero_exchanges *x, int size)
{
    zero_call_member *members = malloc((size_t)size * sizeof *members);
    int32_t call = members ? take_call(x) : -1;
    if (call < 0) {
        free(members);
        return -1;
    }
    for (int i = 0; i < size; i++)
        members[i] = (zero_call_member){.part = ZERO_NO_PART, .waiter = ZERO_NO_PART};
    x->calls[call] = (zero_call){.members = members};
    return call;
}

int32_t zero_parts_call(zero_exchanges *x, int group, int64_t number)
{
    zero_exchange_group *g = &x->groups[group];
    if (number < g->next) return zero_parts_find_call(x, group, number);
    assert(number == g->next); /* members begin calls in order */
    bool is_full = g->next - g->oldest >= g->capacity;
    int32_t call = is_full && !grow_calls_of(g) ? -1 : make_call(x, g->layout->size);
    if (call >= 0) g->calls[g->next++ & (g->capacity - 1)] = call;
    return call;
}

/* Calls may end in any order. */
static void drop_ended(zero_exchanges *x, zero_exchange_group *g)
{
    for (; g->oldest < g->next; g->oldest++) {
        int32_t call = g->calls[g->oldest & (g->capacity - 1)];
        if (x->calls[call].n_over < g->layout->size) return;
        free(x->calls[call].members);
        x->calls[call] = (zero_call){.next = x->free_call};
        x->free_call = call;
    }
}

/* ---- parts ---- */

static int32_t take_part(zero_exchanges *x)
{
    if (x->free_part >= 0) {
        int32_t part = x->free_part;
        x->free_part = x->parts[part].next_of_rank;
        return part;
    }
    zero_part *parts = zero_grow(x->parts, x->n_parts, &x->part_capacity, sizeof *parts);
    if (!parts) return ZERO_NO_PART;
    x->parts = parts;
    return (int32_t)x->n_parts++;
}

int32_t zero_parts_begin(zero_exchanges *x, int group, int32_t call, int set, int member)
{
    int32_t part = take_part(x);
    if (part < 0) return part;
    int rank = x->groups[group].ranks[member];
    zero_exchange_rank *r = &x->ranks[rank];
    x->parts[part] = (zero_part){.group = group,
                                 .call = call,
                                 .member = member,
                                 .rank = rank,
                                 .set = set,
                                 .begun = x->events->now,
                                 .next_of_rank = ZERO_NO_PART,
                                 .next_waiter = ZERO_NO_PART};
    if (r->last >= 0)
        x->parts[r->last].next_of_rank = part;
    else
        r->first = part;
    r->last = part;
    x->calls[call].members[member].part = part;
    return part;
}

void zero_parts_end(zero_exchanges *x, int32_t part)
{
    const zero_part *p = &x->parts[part];
    if (x->ended)
        x->ended(x->arg, &(zero_exchange_end){.rank = p->rank,
                                              .call = p->number,
                                              .begin = p->begin,
                                              .begun = p->begun,
                                              .ended = x->events->now});
    zero_exchange_group *g = &x->groups[p->group];
    zero_call *call = &x->calls[p->call];
    call->members[p->member].part = ZERO_NO_PART;
    call->members[p->member].is_over = true;
    call->n_over++;
    zero_exchange_rank *r = &x->ranks[x->parts[part].rank];
    int32_t before = ZERO_NO_PART, at = r->first;
    for (; at != part; at = x->parts[at].next_of_rank) before = at;
    int32_t after = x->parts[part].next_of_rank;
    if (before >= 0)
        x->parts[before].next_of_rank = after;
    else
        r->first = after;
    if (r->last == part) r->last = before;
    drop_ended(x, g);
    x->parts[part].next_of_rank = x->free_part;
    x->free_part = part;
}

void zero_parts_stir(zero_exchanges *x, int rank)
{
    if (x->ranks[rank].is_stirred) return;
    x->ranks[rank].is_stirred = true;
    x->stir(x->arg, rank);
}
