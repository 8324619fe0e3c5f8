#include "lists/small.h"

#include "base/number.h"

#define MAX_REDUCED ((size_t)4 << 20) /* bytes at a time */

void zero_small_add_exchange(zero_traffic *t, const zero_layout *layout, int rank,
                             int64_t bytes)
{
    int64_t inside = zero_layout_local_size(layout, rank) - 1;
    int64_t across = layout->size - 1 - inside;
    zero_traffic_count(t, ZERO_INSIDE, inside, inside, bytes);
    zero_traffic_count(t, ZERO_ACROSS, across, across, bytes);
}

int64_t zero_small_reduced(size_t size)
{
    return (int64_t)(MAX_REDUCED / size);
}

void zero_small_add_reduced(zero_traffic *t, const zero_layout *layout, int rank, int64_t n,
                            size_t size)
{
    int64_t most = zero_small_reduced(size);
    for (int64_t at = 0; at < n; at += most)
        zero_small_add_exchange(t, layout, rank, zero_min(n - at, most) * (int64_t)size);
}

/* ---- spans ---- */

static int largest_power(int size)
{
    int power = 1;
    while (power <= size / 2) power *= 2;
    return power;
}

/* The first round, then one per doubling, then the last one. */
int zero_small_rounds(int size)
{
    int rounds = 2;
    for (int power = largest_power(size); power > 1; power /= 2) rounds++;
    return rounds;
}

zero_small_round zero_small_round_of(int size, int rank, int round)
{
    int paired = 2 * (size - largest_power(size)), last = zero_small_rounds(size) - 1;
    bool is_paired = rank < paired;
    bool is_lower = rank % 2 == 0, is_last = round == last;
    if ((round == 0 || is_last) && is_paired)
        return (zero_small_round){.partner = is_lower ? rank + 1 : rank - 1,
                                  .sends = is_lower == is_last,
                                  .receives = is_lower != is_last,
                                  .is_result = is_last};
    if (round == 0 || is_last) return (zero_small_round){0};
    if (is_paired && !is_lower) return (zero_small_round){0};

    /* The number among those that speak, from 0 on, in the order of ranks. */
    int number = is_paired ? rank / 2 : rank - paired / 2;
    int other = number ^ 1 << (round - 1);
    return (zero_small_round){.partner =
                                  other < paired / 2 ? 2 * other : other + paired / 2,
                              .sends = true,
                              .receives = true};
}

void zero_small_add_round(zero_traffic *t, const zero_layout *layout, int rank,
                          const zero_small_round *round, int64_t bytes)
{
    if (round->sends || round->receives)
        zero_traffic_count(t, zero_reach_of(layout, rank, round->partner), round->sends,
                           round->receives, bytes);
}

void zero_small_add_merged(zero_traffic *t, const zero_layout *layout, int rank, int64_t n,
                           size_t size)
{
    for (int64_t at = 0; at < n; at += ZERO_SMALL_SPANS)
        for (int k = 0; k < zero_small_rounds(layout->size); k++) {
            zero_small_round round = zero_small_round_of(layout->size, rank, k);
            int64_t len = zero_min(n - at, ZERO_SMALL_SPANS);
            zero_small_add_round(t, layout, rank, &round, len * (int64_t)size);
        }
}
