/* runtime.cc - CUDA's functions for errors, devices and memory. */
#include <climits>
#include <cstdio>
#include <cstring>

#include "gpu/emulated/device.h"

using namespace emulated;

static cudaError_t verdict()
{
    return note(current_error());
}

/* ---- errors ---- */

cudaError_t cudaPeekAtLastError(void)
{
    pass_moment();
    const cudaError_t stays = verdict();
    return stays != cudaSuccess ? stays : the_machine()->last;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = cudaPeekAtLastError();
    the_machine()->last = cudaSuccess;
    return error;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = the_machine()->set.devices;
    return *count > 0 ? cudaSuccess : note(cudaErrorNoDevice);
}

static bool is_device(int device)
{
    return device >= 0 && device < the_machine()->set.devices;
}

cudaError_t cudaSetDevice(int device)
{
    if (!is_device(device)) return note(cudaErrorInvalidDevice);
    the_machine()->current = device;
    return verdict();
}

cudaError_t cudaGetDevice(int *device)
{
    *device = the_machine()->current;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    const settings *s = &the_machine()->set;
    if (!is_device(device)) return note(cudaErrorInvalidDevice);
    std::memset(prop, 0, sizeof *prop);
    std::snprintf(prop->name, sizeof prop->name, "emulated sm_%d", s->capability);
    prop->totalGlobalMem = s->memory;
    prop->sharedMemPerBlock = 48 << 10;
    prop->regsPerBlock = 65536;
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = INT_MAX;
    prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->major = s->capability / 10;
    prop->minor = s->capability % 10;
    prop->multiProcessorCount = 4;
    prop->asyncEngineCount = 2;
    prop->pciBusID = device + 1;
    prop->unifiedAddressing = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    if (!is_device(device)) return note(cudaErrorInvalidDevice);
    if (len < 13) return note(cudaErrorInvalidValue);
    std::snprintf(pciBusId, (std::size_t)len, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    *driverVersion = the_machine()->set.devices > 0 ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    *runtimeVersion = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (verdict() != cudaSuccess) return verdict();
    return note(device_drain(the_machine()->current));
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    if (verdict() != cudaSuccess) return verdict();
    const machine *m = the_machine();
    *total = m->set.memory;
    *free = m->set.memory - m->devices[m->current].taken;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    if (verdict() != cudaSuccess) return verdict();
    if (!devPtr) return note(cudaErrorInvalidValue);
    *devPtr = nullptr;
    return size == 0 ? cudaSuccess
                     : note(memory_take(the_machine()->current, size, devPtr));
}

/* Also after a failure, so that nothing is left. */
cudaError_t cudaFree(void *devPtr)
{
    if (!devPtr) return verdict();
    const int device = memory_owner(devPtr);
    if (device < 0) return note(cudaErrorInvalidValue);
    const cudaError_t drained = device_drain(device), freed = memory_give_back(devPtr);
    return note(freed != cudaSuccess ? freed : drained);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *ptr)
{
    if (verdict() != cudaSuccess) return verdict();
    if (!attributes) return note(cudaErrorInvalidValue);
    const int device = ptr ? memory_owner(ptr) : -1;
    const bool is_open = device >= 0 && the_machine()->set.is_open;
    attributes->type = is_open ? cudaMemoryTypeManaged : cudaMemoryTypeUnregistered;
    attributes->device = device;
    attributes->devicePointer = device >= 0 ? const_cast<void *>(ptr) : nullptr;
    attributes->hostPointer = is_open ? const_cast<void *>(ptr) : nullptr;
    return cudaSuccess;
}

/* All queued work is executed first: the piece gets other pages. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
    if (verdict() != cudaSuccess) return verdict();
    const int device = devPtr ? memory_owner(devPtr) : -1;
    if (!handle || device < 0) return note(cudaErrorInvalidValue);
    device_drain(device);
    return note(memory_share(devPtr, handle));
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
                                 unsigned int flags)
{
    if (verdict() != cudaSuccess) return verdict();
    if (!devPtr || flags != cudaIpcMemLazyEnablePeerAccess)
        return note(cudaErrorInvalidValue);
    return note(memory_open_shared(the_machine()->current, &handle, devPtr));
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
    const int device = devPtr ? memory_owner(devPtr) : -1;
    if (device < 0) return note(cudaErrorInvalidValue);
    const cudaError_t drained = device_drain(device), closed = memory_close_shared(devPtr);
    return note(closed != cudaSuccess ? closed : drained);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    if (verdict() != cudaSuccess) return verdict();
    if (!ptr || size == 0) return note(cudaErrorInvalidValue);
    if (flags & ~(unsigned)cudaHostRegisterPortable) return note(cudaErrorNotSupported);
    return note(memory_register(ptr, size));
}

cudaError_t cudaHostUnregister(void *ptr)
{
    for (int d = 0; d < the_machine()->set.devices; d++) device_drain(d);
    return note(memory_unregister(ptr));
}
