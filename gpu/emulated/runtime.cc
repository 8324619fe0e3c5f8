/* runtime.cc - CUDA's functions for errors, devices and memory. */
#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/emulated/device.h"

namespace emulated
{

/* ---- settings ---- */

static int64_t read_number(const char *name, int64_t least, int64_t most, int64_t otherwise)
{
    const char *text = std::getenv(name);
    if (!text) return otherwise;
    char *end;
    errno = 0;
    const long long number = std::strtoll(text, &end, 10);
    if (end != text && *end == 0 && errno == 0 && number >= least && number <= most)
        return number;
    std::fprintf(stderr, "emulator: %s='%s': it needs a whole number from %lld to %lld\n",
                 name, text, (long long)least, (long long)most);
    std::abort();
}

static bool read_order_of_threads()
{
    const char *text = std::getenv("ZERO_EMULATED_THREADS");
    if (!text || std::strcmp(text, "up") == 0) return false;
    if (std::strcmp(text, "down") == 0) return true;
    std::fprintf(stderr, "emulator: ZERO_EMULATED_THREADS='%s': it needs up or down\n",
                 text);
    std::abort();
}

static settings read_settings()
{
    settings s;
    s.devices = (int)read_number("ZERO_EMULATED_DEVICES", 0, most_devices, 2);
    s.capability = (int)read_number("ZERO_EMULATED_SM", 70, 129, 80);
    s.memory = (std::size_t)read_number("ZERO_EMULATED_MEMORY", 0, INT64_MAX, 16LL << 30);
    s.order = (uint64_t)read_number("ZERO_EMULATED_ORDER", 0, INT64_MAX, 1);
    s.failing = read_number("ZERO_EMULATED_FAIL", 0, INT64_MAX, 0);
    s.down = read_order_of_threads();
    return s;
}

machine *the_machine()
{
    static machine *only;
    if (!only) {
        only = new machine{};
        only->set = read_settings();
    }
    return only;
}

/* ---- errors ---- */

cudaError_t note(cudaError_t error)
{
    if (error != cudaSuccess) the_machine()->last = error;
    return error;
}

/* The current device's error that stays; cudaErrorNoDevice without devices. */
static cudaError_t verdict()
{
    const machine *m = the_machine();
    if (m->set.devices == 0) return note(cudaErrorNoDevice);
    return note(m->devices[m->current].error);
}

} // namespace emulated

using namespace emulated;

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
