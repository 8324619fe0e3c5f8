#include "simulation/links.h"

#include <math.h>

#include "base/grow.h"

/* Times are rounded to a grid of a picosecond. What ends at the same time by the laws then
 * does so in numbers, and one event, one look ends it all. */
#define GRID 0x1p-40

void zero_link_advance(zero_link *link, double now)
{
    if (link->n > 0) {
        link->clock += (now - link->at) / (double)link->n;
        link->busy += now - link->at;
    } else {
        link->clock = 0.0; /* nobody remembers: small numbers are exact */
    }
    link->at = now;
}

static bool is_before(const zero_served *a, const zero_served *b)
{
    return a->mark < b->mark || (a->mark == b->mark && a->number < b->number);
}

bool zero_link_add(zero_link *link, const zero_served *message)
{
    if (!zero_grow(link->served, link->n, &link->capacity)) return false;
    zero_served *heap = link->served;
    int64_t i = link->n++;
    for (; i > 0 && is_before(message, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = *message;
    return true;
}

bool zero_link_take(zero_link *link, zero_served *message)
{
    double precision = GRID + link->at * 0x1p-51;
    if (link->n == 0 || link->served[0].mark > link->clock + precision) return false;
    *message = link->served[0];
    link->clock = fmax(link->clock, message->mark);
    zero_served *heap = link->served, last = heap[--link->n];
    int64_t i = 0;
    for (int64_t k = 1; k < link->n; k = 2 * i + 1) {
        if (k + 1 < link->n && is_before(&heap[k + 1], &heap[k])) k++;
        if (!is_before(&heap[k], &last)) break;
        heap[i] = heap[k];
        i = k;
    }
    heap[i] = last;
    return true;
}

double zero_link_next(const zero_link *link)
{
    double left = (link->served[0].mark - link->clock) * (double)link->n;
    return fmax(link->at, rint((link->at + left) / GRID) * GRID);
}
