/* shared.cc - shared memory of the block that runs: the arrays of a launch, one after the other in
 * the order of their first use, with forbidden bytes between them. When a block begins they hold NaN
 * in every floating-point type. */
#include "gpu/emulated/block.h"
#include "gpu/emulated/sanitizer.h"

namespace emulated
{

uint64_t launch_number;

/* Static shared memory of a kernel, without forbidden bytes. */
static const std::size_t most_bytes = 48 << 10;
static const std::size_t alignment = 32, gap = 32, most_arrays = 64;

alignas(64) static char memory[most_bytes + most_arrays * (gap + alignment)];
static struct {
    char *begin;
    std::size_t bytes;
} arrays[most_arrays];
static std::size_t n_arrays, taken, used; /* taken: bytes of arrays; used: of all */

void shared_begin_launch()
{
    launch_number++;
    n_arrays = taken = used = 0;
    sanitizer_forbids(memory, sizeof memory);
}

void shared_begin_block()
{
    for (std::size_t i = 0; i < n_arrays; i++)
        std::memset(arrays[i].begin, 0xff, arrays[i].bytes);
}

void *shared_take(shared_array *array, std::size_t bytes)
{
    const std::size_t begin = (used + gap + alignment - 1) / alignment * alignment;
    if (taken + bytes > most_bytes || n_arrays == most_arrays)
        stop(running.thread, array->at,
             "shared memory %s needs %zu bytes; %zu arrays have taken %zu: a kernel has 48 "
             "KiB "
             "in %zu arrays",
             array->name, bytes, n_arrays, taken, most_arrays);
    taken += bytes;
    used = begin + bytes;
    array->launch = launch_number;
    array->memory = memory + begin;
    arrays[n_arrays++] = {memory + begin, bytes};
    sanitizer_allows(array->memory, bytes);
    std::memset(array->memory, 0xff, bytes);
    return array->memory;
}

} // namespace emulated
