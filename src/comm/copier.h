/* copier.h - copies between the host's memory and a device's, for collectives on data of a device.
 *
 * The owner of the device fills the table; math/backend.h has the rules of such copies. A copy begins
 * at once or later, and has ended when ended() says so. Copies of one direction end in their order.
 * Nothing blocks, and nothing here knows MPI. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/status.h"

typedef struct {
    zero_status (*fetch)(void *arg, void *host, const void *device, size_t bytes,
                         uint64_t *ticket);
    zero_status (*store)(void *arg, void *device, const void *host, size_t bytes,
                         uint64_t *ticket);
    zero_status (*ended)(void *arg, uint64_t ticket, bool *ended);
    void *arg;
} zero_copier;
