/* write_back.h - a long file goes to its disk while it is written.
 *
 * The kernel may keep gigabytes of it in memory. The sync at the end would then take as
 * long as the disk needs for them, and nobody could tell that from a disk that has stopped.
 * So a file is written back a piece of 32 MiB or more at a time, and a sync has two pieces
 * left at most:
 *
 *     |===== on the disk =====|-- on its way --|.. in memory ..|
 *                                              begun           end */
#pragma once

#include <stdint.h>

/* To be called after each write: bytes [0, end) are in the file, and those before *begun
 * have been written back or are on their way. Returns 0 or the system's error. Does nothing
 * where the file system cannot do it. */
int zero_write_back(const char *path, int fd, uint64_t *begun, uint64_t end);
