/* copier.h - what a device copies and adds up for collectives on its data.
 *
 * The owner of the device fills the table; math/backend.h has the rules. A copy begins at
 * once or later, and has ended when ended() says so. Copies of one direction end in their
 * order. Nothing blocks, and nothing here knows MPI.
 *
 * A collective begins its copies one by one, while the device is given more to compute.
 * They read and write what calls before its begin have used: it notes that place(), and
 * since() says so.
 *
 * Devices of one node may reach each other's memory (device.h). Then the table has
 * the second half, too: what is given there stands in the order of stores, waits for calls
 * as they do, and has a ticket like a store. */
#pragma once

#include "base/fail.h"
#include "base/tree.h"

struct zero_device_window;

#define ZERO_HANDLE_BYTES 96

/* By which another process of the node opens memory of a device. */
typedef struct {
    unsigned char bytes[ZERO_HANDLE_BYTES];
} zero_device_handle;

/* out[i] = the tree sum of n ranks' x[i], i < len. Terms are single ranks, in order, of one
 * type. */
typedef struct {
    int n;
    const zero_tree_term *terms;
    int64_t len;
    zero_type type; /* of `out`, which may be one of the inputs if they have this type */
    void *out;
} zero_device_sum;

typedef struct {
    zero_status (*fetch)(void *arg, void *host, const void *device, size_t bytes,
                         uint64_t *ticket);
    zero_status (*store)(void *arg, void *device, const void *host, size_t bytes,
                         uint64_t *ticket);
    zero_status (*ended)(void *arg, uint64_t ticket, bool *ended);
    /* NULL, both: nothing is computed there. since() is of all that is begun until the next
     * one. */
    zero_status (*place)(void *arg, uint64_t *place);
    void (*since)(void *arg, uint64_t place);

    /* NULL, all: this device's memory cannot be reached by others. */
    zero_status (*share)(void *arg, void *memory, zero_device_handle *handle);
    zero_status (*open)(void *arg, const zero_device_handle *handle, void **memory);
    void (*close)(void *arg, void *memory);
    zero_status (*mark)(void *arg, uint64_t *ticket);
    zero_status (*copy)(void *arg, void *to, const void *from, size_t bytes,
                        uint64_t *ticket);
    zero_status (*sum)(void *arg, const zero_device_sum *sum, uint64_t *ticket);
    struct zero_device_window *window; /* borrowed; NULL: neighbours are not reached */

    void *arg;
} zero_copier;
