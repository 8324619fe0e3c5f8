/* disk.h - the disk of each node, which its ranks share fairly.
 *
 * A rank's transfers are served in the order in which they begin. While k ranks of a node
 * have one, each gets a k-th of the disk, as plan_time.h has it if all have. Transfers of a
 * rank are numbered as the caller likes, and at most one of a number is in flight. */
#pragma once

#include "lists/layout.h"
#include "simulation/events.h"

typedef struct zero_disks zero_disks;

/* Called when a transfer of rank `rank` has ended, at events->now. */
typedef void zero_disk_ended(void *arg, int rank);

/* Borrows layout and events. `files`: transfers are numbered below it, per rank.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_disks_open(zero_disks **disks, const zero_layout *layout,
                                           int files, zero_events *events,
                                           zero_disk_ended *ended, void *arg);
void zero_disks_close(zero_disks *disks);       /* accepts NULL */
int64_t zero_disks_bytes(int ranks, int files); /* of memory */

/* Begins a transfer that would take `seconds` > 0 if it had the disk to itself. */
void zero_disk_begin(zero_disks *disks, int rank, int file, double seconds);
/* False while a transfer of that number is in flight. */
bool zero_disk_is_over(const zero_disks *disks, int rank, int file);

/* Handles an event of kind ZERO_EVENT_DISK. */
void zero_disk_happens(zero_disks *disks, const zero_event *event);
