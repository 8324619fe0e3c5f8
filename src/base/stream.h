/* stream.h - stores past the caches, for data that this core will not read soon.
 *
 * An ordinary store reads its line first, from memory or from the cache of the core that
 * has it: streaming spares both. On CPUs without such stores these are plain ones. */
#pragma once

#include <stddef.h>

/* memcpy past the caches; any alignment, no overlap. Ends with the fence below. */
void zero_stream_copy(void *to, const void *from, size_t bytes);

/* Makes streamed stores before it visible before every store after it: otherwise another
 * core could see a flag that says "written" first. */
void zero_stream_fence(void);
