#include "simulation/links.h"

#include <math.h>

/* Times are rounded to a grid of a picosecond. What ends at the same time by the laws then
 * does so in numbers, and one event, one look ends it all. */
#define GRID 0x1p-40

void zero_link_advance(zero_link *link, double now)
{
    if (link->served.n > 0) {
        link->clock += (now - link->at) / (double)link->served.n;
        link->busy += now - link->at;
    } else {
        link->clock = 0.0; /* nobody remembers: small numbers are exact */
    }
    link->at = now;
}

/* Messages lie at multiples of 8. */
bool zero_link_add(zero_link *link, const zero_served *message)
{
    return zero_heap_add(
        &link->served,
        (zero_heap_item){message->mark, message->number,
                         (uint64_t)(uintptr_t)message->message | (uint64_t)message->hop});
}

bool zero_link_take(zero_link *link, zero_served *message)
{
    double precision = GRID + link->at * 0x1p-51;
    if (link->served.n == 0 || link->served.list[0].key > link->clock + precision)
        return false;
    const zero_heap_item item = zero_heap_take(&link->served);
    *message = (zero_served){item.key, item.number,
                             (struct zero_message *)(uintptr_t)(item.what & ~UINT64_C(7)),
                             (int32_t)(item.what & 7)};
    link->clock = fmax(link->clock, message->mark);
    return true;
}

double zero_link_next(const zero_link *link)
{
    double left = (link->served.list[0].key - link->clock) * (double)link->served.n;
    return fmax(link->at, rint((link->at + left) / GRID) * GRID);
}
