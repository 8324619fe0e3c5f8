#include "comm/small.h"

#include "base/number.h"

#define MAX_REDUCED ((size_t)4 << 20) /* bytes at a time */

void zero_small_add_exchange(zero_traffic *t, const zero_layout *layout, int rank,
                             int64_t bytes)
{
    int64_t inside = zero_layout_local_size(layout, rank) - 1;
    int64_t others[ZERO_REACHES] = {inside, layout->size - 1 - inside};
    for (int reach = 0; reach < ZERO_REACHES; reach++) {
        t->bytes_sent[reach] += others[reach] * bytes;
        t->bytes_received[reach] += others[reach] * bytes;
        t->messages_sent[reach] += others[reach];
        t->messages_received[reach] += others[reach];
    }
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
