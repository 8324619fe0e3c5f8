/* device_window.h - memory of devices that the ranks of a node reach in each other's
 * processes.
 *
 * Each rank shares one piece of its device's memory, in which `in` and `out` of its
 * collectives lie. A neighbour opens that piece by its handle, and sees it at an address of
 * its own. */
#pragma once

#include "comm/device_places.h"

/* Collective over the group, one verdict: that of zero_window_init(), or ZERO_ERR_NOMEM.
 * The struct stays where it is: copiers name it. */
ZERO_NODISCARD zero_status zero_device_window_init(zero_device_window *w, zero_comm *comm);

/* Shares this rank's piece and opens its neighbours'. Collective over the group, one
 * verdict: what the copier's share() or open() fails with. Borrows the copier. */
ZERO_NODISCARD zero_status zero_device_window_open(zero_device_window *w,
                                                   const zero_copier *copier, void *memory);

/* Closes the neighbours' pieces, and waits a moment until they have closed this rank's,
 * which may be given back then. A neighbour that has died does not keep anyone. Accepts a
 * zeroed window. */
void zero_device_window_destroy(zero_device_window *w);
