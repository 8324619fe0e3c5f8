/* work.cc - what streams are given: launches, copies and fills. */
#include <cstring>

#include "gpu/emulated/device.h"

namespace emulated
{

/* The stream, checked, of a call that gives it work. */
static cudaError_t find(cudaStream_t handle, CUstream_st **stream)
{
    const machine *m = the_machine();
    if (m->set.devices == 0) return cudaErrorNoDevice;
    *stream = stream_of(handle);
    if (!*stream) return cudaErrorInvalidResourceHandle;
    return m->devices[(*stream)->device].error;
}

/* ---- launches ---- */

static bool is_possible(const grid *g)
{
    const dim3 b = g->blocks, t = g->threads;
    const uint64_t threads = (uint64_t)t.x * t.y * t.z;
    return threads >= 1 && threads <= 1024 && t.x <= 1024 && t.y <= 1024 && t.z <= 64 &&
           b.x >= 1 && b.x <= 0x7fffffff && b.y >= 1 && b.y <= 65535 && b.z >= 1 &&
           b.z <= 65535;
}

void launch(grid *work, cudaStream_t handle)
{
    std::unique_ptr<grid> owned(work);
    CUstream_st *stream;
    cudaError_t error = find(handle, &stream);
    if (error == cudaSuccess && !is_possible(work)) error = cudaErrorInvalidConfiguration;
    if (error == cudaSuccess && stream->device != the_machine()->current)
        error = cudaErrorInvalidResourceHandle;
    note(error != cudaSuccess ? error : stream_add(stream, owned.release()));
}

/* ---- copies and fills ---- */

struct copy final : work {
    void *to;
    const void *from;
    std::size_t bytes;

    copy(void *in_to, const void *in_from, std::size_t in_bytes)
        : to(in_to), from(in_from), bytes(in_bytes)
    {
        copied = in_bytes;
    }
    void execute() override
    {
        std::memmove(to, from, bytes);
    }
};

struct fill final : work {
    void *to;
    int value;
    std::size_t bytes;

    fill(void *in_to, int in_value, std::size_t in_bytes)
        : to(in_to), value(in_value), bytes(in_bytes)
    {
    }
    void execute() override
    {
        std::memset(to, value, bytes);
    }
};

/* Whether the ends of a copy are where its kind says. */
static cudaError_t check_ends(int device, const void *to, const void *from,
                              std::size_t bytes, enum cudaMemcpyKind kind)
{
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost &&
        kind != cudaMemcpyDeviceToDevice)
        return cudaErrorInvalidMemcpyDirection;
    const bool to_device = kind != cudaMemcpyDeviceToHost;
    const bool from_device = kind != cudaMemcpyHostToDevice;
    if (to_device != memory_is_of(device, to, bytes)) return cudaErrorInvalidValue;
    if (from_device != memory_is_of(device, from, bytes)) return cudaErrorInvalidValue;
    return cudaSuccess;
}

static cudaError_t check_registered(const void *to, const void *from, std::size_t bytes,
                                    enum cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyDeviceToDevice) return cudaSuccess;
    return memory_is_registered(kind == cudaMemcpyHostToDevice ? from : to, bytes)
               ? cudaSuccess
               : cudaErrorInvalidHostPointer;
}

} // namespace emulated

using namespace emulated;

/* Until a copy to the host has been made, its memory there is NaN. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            enum cudaMemcpyKind kind, cudaStream_t handle)
{
    CUstream_st *stream;
    cudaError_t error = find(handle, &stream);
    if (error == cudaSuccess && count > 0) {
        error = check_ends(stream->device, dst, src, count, kind);
        if (error == cudaSuccess) error = check_registered(dst, src, count, kind);
    }
    if (error != cudaSuccess || count == 0) return note(error);
    if (kind == cudaMemcpyDeviceToHost) std::memset(dst, 0xff, count);
    return stream_add(stream, new copy(dst, src, count));
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    CUstream_st *stream;
    cudaError_t error = find(nullptr, &stream);
    if (error == cudaSuccess && count > 0)
        error = check_ends(stream->device, dst, src, count, kind);
    if (error != cudaSuccess || count == 0) return note(error);
    error = stream_add(stream, new copy(dst, src, count));
    return error != cudaSuccess ? error : note(stream_drain(stream));
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t handle)
{
    CUstream_st *stream;
    const cudaError_t error = find(handle, &stream);
    if (error != cudaSuccess || count == 0) return note(error);
    if (!memory_is_of(stream->device, devPtr, count)) return note(cudaErrorInvalidValue);
    return stream_add(stream, new fill(devPtr, value, count));
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    return cudaMemsetAsync(devPtr, value, count, nullptr);
}

/* There is no dynamic shared memory, so there is nothing to set. */
cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr, int value)
{
    if (!func) return note(cudaErrorInvalidDeviceFunction);
    if (attr == cudaFuncAttributePreferredSharedMemoryCarveout && value >= -1 &&
        value <= 100)
        return cudaSuccess;
    if (attr == cudaFuncAttributeMaxDynamicSharedMemorySize && value == 0)
        return cudaSuccess;
    return note(cudaErrorInvalidValue);
}
