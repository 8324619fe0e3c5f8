/* stream.h - writing past the caches, for what this core will not read soon.
 *
 * A stored line is otherwise read from memory first, and a line that another core has read
 * is fetched back from there: streaming spares both. Where the CPU has no such stores these
 * are plain ones. */
#pragma once

#include <stddef.h>

/* memcpy past the caches; any alignment, no overlap. Its end is fenced as below. */
void zero_stream_copy(void *to, const void *from, size_t bytes);

/* Streamed stores before this come before every store after it, for all who look: without
 * it a flag that says "written" could be seen first. */
void zero_stream_fence(void);
