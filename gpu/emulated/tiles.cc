/* tiles.cc - the rules for tiles of wmma that a kernel can break. */
#include "gpu/emulated/block.h"
#include "gpu/emulated/device.h"
#include "gpu/emulated/mma.h"

namespace emulated
{

int lane()
{
    return running.thread % lanes_of_warp;
}

void check_tile(const char *name, place at, const void *memory, std::size_t row_bytes)
{
    if ((uintptr_t)memory % 32 != 0)
        stop(running.thread, at, "%s(): the tile at %p is not aligned to 32 bytes", name,
             memory);
    if (row_bytes % 16 != 0)
        stop(running.thread, at,
             "%s(): the tile's rows are %zu bytes apart, not a multiple of 16", name,
             row_bytes);
}

void check_bf16_products(place at)
{
    const int capability = the_machine()->set.capability;
    if (capability < 80)
        stop(running.thread, at, "mma_sync(): sm_%d has no products of bf16, sm_80 has",
             capability);
}

} // namespace emulated
