#include "simulation/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "simulation/parts.h"

/* ---- events ---- */

static void message_arrived(void *arg, int64_t cookie)
{
    zero_exchanges *x = arg;
    int64_t number = cookie / 4;
    int32_t ended[2];
    switch ((zero_cookie_kind)(cookie % 4)) {
    case ZERO_COOKIE_TRANSFER:
        zero_matching_arrived(x, (int32_t)number, ended);
        for (int i = 0; i < 2; i++)
            if (ended[i] >= 0) zero_looks_notice(x, ended[i]);
        break;
    case ZERO_COOKIE_READ: zero_looks_has_read(x, (int32_t)number); break;
    case ZERO_COOKIE_NOTHING: break;
    case ZERO_COOKIE_CALLER: x->arrived(x->arrived_arg, number); break;
    }
}

void zero_exchange_happens(zero_exchanges *x, const zero_event *event)
{
    zero_network_happens(x->network, event);
}

void zero_exchange_send(zero_exchanges *x, int from, int to, int64_t bytes, int64_t cookie)
{
    zero_network_send(x->network, from, to, bytes,
                      zero_parts_cookie(ZERO_COOKIE_CALLER, cookie));
}

void zero_exchange_on_arrival(zero_exchanges *x, zero_message_arrived *arrived, void *arg)
{
    x->arrived = arrived;
    x->arrived_arg = arg;
}

/* ---- life ---- */

zero_status zero_exchanges_open(zero_exchanges **exchanges,
                                const zero_exchanges_input *input, zero_events *events)
{
    int size = input->network.layout->size;
    zero_exchanges *x = calloc(1, sizeof *x);
    if (x) x->ranks = calloc((size_t)size, sizeof *x->ranks);
    if (!x || !x->ranks) {
        zero_exchanges_close(x);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the exchanges of %d ranks", size);
    }
    x->memory_bandwidth = input->memory_bandwidth;
    x->reads_take_time = !isinf(input->network.inside.bandwidth);
    x->stir = input->stir;
    x->ended = input->ended;
    x->arg = input->arg;
    x->events = events;
    x->size = size;
    x->free_call = x->free_part = x->free_transfer = -1;
    for (int r = 0; r < size; r++)
        x->ranks[r] = (zero_exchange_rank){.first = ZERO_NO_PART, .last = ZERO_NO_PART};
    zero_status st =
        zero_network_open(&x->network, &input->network, events, message_arrived, x);
    if (st == ZERO_OK)
        *exchanges = x;
    else
        zero_exchanges_close(x);
    return st;
}

void zero_exchanges_close(zero_exchanges *x)
{
    if (!x) return;
    for (int64_t i = 0; i < x->n_groups; i++) {
        free(x->groups[i].ranks);
        free(x->groups[i].calls);
    }
    for (int64_t i = 0; i < x->n_calls; i++) free(x->calls[i].members);
    zero_network_close(x->network);
    zero_step_lists_destroy(&x->lists);
    zero_queues_destroy(&x->unmatched);
    free(x->ranks);
    free(x->groups);
    free(x->calls);
    free(x->parts);
    free(x->transfers);
    free(x);
}

zero_status zero_exchanges_status(const zero_exchanges *x)
{
    if (!x->failed && !x->events->failed && !zero_network_failed(x->network))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the messages of %d ranks", x->size);
}

zero_network *zero_exchanges_network(zero_exchanges *x)
{
    return x->network;
}

/* ---- groups and lists ---- */

/* The layout of the first group with an equal one. */
static const zero_layout *find_layout(const zero_exchanges *x, const zero_layout *layout)
{
    for (int64_t i = 0; i < x->n_groups; i++)
        if (zero_layout_are_equal(x->groups[i].layout, layout)) return x->groups[i].layout;
    return layout;
}

zero_status zero_exchanges_add_group(zero_exchanges *x, const int *ranks,
                                     const zero_layout *layout, int *group)
{
    zero_exchange_group *groups =
        zero_grow(x->groups, x->n_groups, &x->group_capacity, sizeof *groups);
    int *copy = malloc((size_t)layout->size * sizeof *copy);
    if (groups) x->groups = groups;
    if (!groups || !copy) {
        free(copy);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a group of %d ranks", layout->size);
    }
    memcpy(copy, ranks, (size_t)layout->size * sizeof *copy);
    zero_exchange_group made = {.ranks = copy, .layout = find_layout(x, layout)};
    *group = (int)x->n_groups;
    groups[x->n_groups++] = made;
    return ZERO_OK;
}

zero_status zero_exchanges_add_lists(zero_exchanges *x, int group,
                                     const zero_collective_spec *spec, int *lists)
{
    return zero_step_lists_add(&x->lists, spec, x->groups[group].layout, lists);
}

/* ---- looks ---- */

static double advance(zero_exchanges *x, int rank, int32_t part)
{
    double seconds = zero_looks_advance(x, part);
    if (seconds > 0.0) zero_parts_stir(x, rank);
    return seconds;
}

double zero_exchange_begin(zero_exchanges *x, int group, int64_t number, int lists,
                           int member, const void *begin)
{
    int32_t call = zero_parts_call(x, group, number);
    int32_t part =
        call < 0 ? ZERO_NO_PART : zero_parts_begin(x, group, call, lists, member);
    x->failed = x->failed || part < 0;
    if (x->failed) return 0.0;
    x->parts[part].number = number;
    x->parts[part].begin = begin;
    return advance(x, x->groups[group].ranks[member], part);
}

double zero_exchange_look(zero_exchanges *x, int rank)
{
    double seconds = 0.0;
    x->ranks[rank].is_stirred = false;
    for (int32_t part = x->ranks[rank].first, next; part >= 0 && seconds == 0.0;
         part = next) {
        next = x->parts[part].next_of_rank; /* one that is over leaves the list */
        seconds = advance(x, rank, part);
    }
    return seconds;
}

bool zero_exchange_is_over(const zero_exchanges *x, int group, int64_t number, int member)
{
    int32_t call = zero_parts_find_call(x, group, number);
    if (call < 0) return number < x->groups[group].oldest;
    return x->calls[call].members[member].is_over;
}

bool zero_exchange_is_busy(const zero_exchanges *x, int rank)
{
    return x->ranks[rank].first >= 0;
}
