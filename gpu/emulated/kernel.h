/* kernel.h - the words of a kernel: where a thread is, barriers, operations of a warp, shared
 * memory, and how a kernel is launched. launch.h includes it where nvcc does not compile.
 *
 * Every word that waits takes a last argument that callers leave out: the line it stands in. */
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "gpu/emulated/intrinsics.h"
#include "gpu/emulated/vector_types.h"

struct CUstream_st;

extern uint3 threadIdx, blockIdx; /* changed only by the emulator */
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace emulated
{

/* A line of a kernel. As the default value of an argument it is the line of the call. */
struct place {
    const char *file;
    int line;
    static constexpr place here(const char *in_file = __builtin_FILE(),
                                int in_line = __builtin_LINE())
    {
        return {in_file, in_line};
    }
};

/* ---- operations of a warp ---- */

/* One lane's call of an operation that its warp makes together. */
struct lane_call {
    const char *name;
    unsigned mask;
    place at;
    /* Called once, when all lanes of the mask wait here, with the calls of the warp's 32 lanes: sets
     * the results. */
    void (*finish)(lane_call *const *lanes, unsigned mask);
    uint64_t value, result; /* value: for the others to read */
    int by, width;          /* shuffles */
};

/* Waits for all lanes of call->mask. Ends the program if one of them cannot come. */
void meet(lane_call *call);
void meet_block(place at);

void finish_nothing(lane_call *const *lanes, unsigned mask);
void finish_shuffle(lane_call *const *lanes, unsigned mask);
void finish_shuffle_up(lane_call *const *lanes, unsigned mask);
void finish_shuffle_down(lane_call *const *lanes, unsigned mask);
void finish_shuffle_xor(lane_call *const *lanes, unsigned mask);
void finish_ballot(lane_call *const *lanes, unsigned mask);

template <typename T>
T shuffle(const char *name, void (*finish)(lane_call *const *, unsigned), unsigned mask,
          T value, int by, int width, place at)
{
    static_assert(std::is_arithmetic<T>::value, "a shuffle moves numbers of 1 to 8 bytes");
    lane_call call = {name, mask, at, finish, 0, 0, by, width};
    std::memcpy(&call.value, &value, sizeof value);
    meet(&call);
    std::memcpy(&value, &call.result, sizeof value);
    return value;
}

inline unsigned ballot(const char *name, unsigned mask, bool vote, place at)
{
    lane_call call = {name, mask, at, finish_ballot, vote, 0, 0, 0};
    meet(&call);
    return (unsigned)call.result;
}

/* ---- shared memory ---- */

/* One array of a kernel, and where it lies in the launch that used it last. */
struct shared_array {
    const char *name;
    place at;
    uint64_t launch;
    void *memory;
};

void *shared_take(shared_array *array, std::size_t bytes);

extern uint64_t launch_number;

inline void *shared_at(shared_array *array, std::size_t bytes)
{
    return array->launch == launch_number ? array->memory : shared_take(array, bytes);
}

/* ---- launches ---- */

/* Something that a stream executes. */
struct work {
    int64_t number;         /* among all works of the process, from 1 */
    std::size_t copied = 0; /* bytes of a copy */
    virtual ~work() = default;
    virtual void execute() = 0;
};

/* A kernel with its arguments, until it has run. */
struct grid : work {
    const char *kernel;
    dim3 blocks, threads;
    place at;

    grid(const char *in_kernel, dim3 in_blocks, dim3 in_threads, place in_at)
        : kernel(in_kernel), blocks(in_blocks), threads(in_threads), at(in_at)
    {
    }
    void execute() override;
    virtual void run_thread() const = 0;
};

/* Takes the grid over; errors are left for cudaGetLastError(). */
void launch(grid *work, CUstream_st *stream);

template <typename... P> struct grid_of final : grid {
    void (*function)(P...);
    std::tuple<P...> arguments;

    template <typename... A>
    grid_of(const grid &of, void (*in_function)(P...), const A &...in_arguments)
        : grid(of), function(in_function), arguments(in_arguments...)
    {
    }
    void run_thread() const override
    {
        std::apply(function, arguments);
    }
};

/* A grid without its kernel, to build one from. */
struct shape final : grid {
    using grid::grid;
    void run_thread() const override
    {
    }
};

template <typename... P, typename... A>
void launch_kernel(const shape &of, void (*function)(P...), CUstream_st *stream,
                   const A &...arguments)
{
    static_assert(sizeof(std::tuple<P...>) <= 4096,
                  "arguments of a kernel take 4 KiB at most");
    static_assert((std::is_trivially_copyable<P>::value && ...),
                  "arguments of a kernel are copied byte by byte");
    launch(new grid_of<P...>(of, function, arguments...), stream);
}

} // namespace emulated

#define LAUNCH(kernel, grid, block, stream, ...) \
    emulated::launch_kernel( \
        emulated::shape(#kernel, grid, block, emulated::place{__FILE__, __LINE__}), \
        kernel, stream, __VA_ARGS__)

#define SHARED(type, name, n) \
    static emulated::shared_array name##_array = {#name, {__FILE__, __LINE__}, 0, {}}; \
    type(&name)[n] = *(type(*)[n])emulated::shared_at(&name##_array, sizeof(type[n]))

/* ---- CUDA's names ---- */

inline void __syncthreads(emulated::place at = emulated::place::here())
{
    emulated::meet_block(at);
}

inline void __syncwarp(unsigned mask = 0xffffffff,
                       emulated::place at = emulated::place::here())
{
    emulated::lane_call call = {
        "__syncwarp", mask, at, emulated::finish_nothing, 0, 0, 0, 0};
    emulated::meet(&call);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize,
              emulated::place at = emulated::place::here())
{
    return emulated::shuffle("__shfl_sync", emulated::finish_shuffle, mask, value, lane,
                             width, at);
}

template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 emulated::place at = emulated::place::here())
{
    return emulated::shuffle("__shfl_up_sync", emulated::finish_shuffle_up, mask, value,
                             (int)delta, width, at);
}

template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   emulated::place at = emulated::place::here())
{
    return emulated::shuffle("__shfl_down_sync", emulated::finish_shuffle_down, mask, value,
                             (int)delta, width, at);
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize,
                  emulated::place at = emulated::place::here())
{
    return emulated::shuffle("__shfl_xor_sync", emulated::finish_shuffle_xor, mask, value,
                             lanes, width, at);
}

inline unsigned __ballot_sync(unsigned mask, int vote,
                              emulated::place at = emulated::place::here())
{
    return emulated::ballot("__ballot_sync", mask, vote != 0, at);
}

inline int __any_sync(unsigned mask, int vote, emulated::place at = emulated::place::here())
{
    return emulated::ballot("__any_sync", mask, vote != 0, at) != 0;
}

inline int __all_sync(unsigned mask, int vote, emulated::place at = emulated::place::here())
{
    return emulated::ballot("__all_sync", mask, vote != 0, at) == mask;
}
