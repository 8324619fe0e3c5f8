/* hash.h - XXH3. Its library may have been built to choose the widest vectors of the CPU that it
 * runs on, and then it does; else it is compiled here, for the CPU of the build. A disk of 3 GB/s
 * notices the 4.8 GB/s of neither. */
#pragma once

#ifdef ZERO_HASH_DISPATCHES
#include <xxh_x86dispatch.h>
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif
