/* hash.h - XXH3, whose library may have been built to choose the widest vectors of the CPU that
 * it runs on: the same values, sooner. */
#pragma once

#ifdef ZERO_HASH_DISPATCHES
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif
