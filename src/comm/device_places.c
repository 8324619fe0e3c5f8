#include "comm/device_places.h"

zero_device_card *zero_device_card_of(const zero_device_window *w, int rank)
{
    return &w->cards[w->comm->layout.local_of[rank]];
}

static int64_t offset(const zero_device_window *w, const void *at)
{
    return at ? (const char *)at - w->own : 0;
}

void zero_device_window_place(const zero_device_window *w, int64_t sequence, const void *in,
                              const void *out)
{
    zero_device_card_of(w, w->comm->rank)->places[sequence % ZERO_SIGNALS] =
        (zero_device_arrays){offset(w, in), offset(w, out)};
}

char *zero_device_window_find(const zero_device_window *w, int rank, int64_t sequence,
                              bool is_in)
{
    const zero_device_arrays *p =
        &zero_device_card_of(w, rank)->places[sequence % ZERO_SIGNALS];
    return (char *)w->neighbour[rank] + (is_in ? p->in : p->out);
}
