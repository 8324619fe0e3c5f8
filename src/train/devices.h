/* devices.h - which device a rank computes on, and who shares it.
 *
 * Ranks of one machine take its devices, or those that were chosen, in blocks:
 *
 *     4 ranks, cuda:0,2     rank 0 1 2 3  ->  device 0 0 2 2
 *
 * A launcher may show each rank a device of its own (CUDA_VISIBLE_DEVICES), all of them
 * number 0: so ranks tell each other what they have, by its place on the bus. */
#pragma once

#include "comm/comm.h"
#include "math/device.h"

typedef struct {
    const zero_backend *backend; /* NULL: the host */
    int device;                  /* its number, for zero_math */
    zero_device_about about;     /* zeroed unless a plugin has the device */
    int sharing; /* ranks on this device, this one too; 1 if it is not known */
    /* Bytes that an arena may have there: this rank's part of what the device has free,
     * without what the backend takes for itself. 0: not known, no limit. */
    size_t room;
    char note[256]; /* on rank 0: which devices are shared or idle; may be empty */
} zero_device_place;

/* Collective over the group, whose layout must be the machines', not pretended nodes.
 * `text` is what the user asked for, on all ranks, and `where` what a message calls it. The
 * status of zero_device_read(), zero_device_find() or zero_device_count() of the first rank
 * that fails. */
zero_status zero_devices_place(const char *text, const char *where, zero_comm *comm,
                               zero_device_place *place);
