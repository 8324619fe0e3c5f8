/* sanitizer.h - calls that tell the address sanitizer of fibers; empty in builds without it. */
#pragma once

#include <cstddef>

#include "gpu/emulated/sanitizer_seen.h"

#if ZERO_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated
{

#if ZERO_ADDRESS_SANITIZER

inline void sanitizer_leaves(void **keep, const void *stack, std::size_t bytes)
{
    __sanitizer_start_switch_fiber(keep, stack, bytes);
}

inline void sanitizer_arrived(void *kept, const void **old_stack, std::size_t *old_bytes)
{
    __sanitizer_finish_switch_fiber(kept, old_stack, old_bytes);
}

inline void sanitizer_forbids(const void *memory, std::size_t bytes)
{
    __asan_poison_memory_region(memory, bytes);
}

inline void sanitizer_allows(const void *memory, std::size_t bytes)
{
    __asan_unpoison_memory_region(memory, bytes);
}

#else

inline void sanitizer_leaves(void **, const void *, std::size_t)
{
}

inline void sanitizer_arrived(void *, const void **, std::size_t *)
{
}

inline void sanitizer_forbids(const void *, std::size_t)
{
}

inline void sanitizer_allows(const void *, std::size_t)
{
}

#endif

} // namespace emulated
