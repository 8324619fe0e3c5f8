/* plugin.c - the one object that libzero looks for in this library (src/math/plugin.h): the table,
 * the devices, and how failures reach the caller. */
#include "math/plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "gpu/cuda.h"

/* zero_fail_at() of the program. The library has no other state: it is set once, before anything
 * else is called. */
static zero_plugin_fail tell_program;

static void hear(zero_plugin_fail fail)
{
    tell_program = fail;
}

zero_status zero_plugin_tell(const char *file, int line, zero_status status,
                             const char *text)
{
    return tell_program ? tell_program(file, line, status, text) : status;
}

/* This library's own, for zero_fail(): nothing of libzero is linked into it. */
zero_status zero_fail_at(const char *file, int line, zero_status code, const char *fmt, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    return zero_plugin_tell(file, line, code, text);
}

static zero_status count(int *devices)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n == 0) error = cudaErrorNoDevice;
    if (error != cudaSuccess) return zero_cuda_no_device(error);
    *devices = n;
    return ZERO_OK;
}

/* Ends what describe() began: the message of an error that leaves no backend behind. */
static zero_status check(int device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return ZERO_OK;
    cudaGetLastError();
    return zero_fail(zero_cuda_status_of(error), "device %d: %s failed: %s (%s)", device,
                     what, cudaGetErrorString(error), cudaGetErrorName(error));
}

static zero_status read_versions(zero_device_about *about)
{
    cudaDriverGetVersion(&about->driver);
    cudaRuntimeGetVersion(&about->runtime);
    about->products = 0;
    cublasHandle_t products;
    if (cublasCreate(&products) != CUBLAS_STATUS_SUCCESS) return ZERO_OK;
    cublasGetVersion(products, &about->products);
    cublasDestroy(products);
    return ZERO_OK;
}

static zero_status describe(int device, zero_device_about *about)
{
    struct cudaDeviceProp is;
    int n = 0;
    ZERO_TRY(count(&n));
    if (device < 0 || device >= n)
        return zero_fail(ZERO_ERR_INVALID,
                         "there is no device %d: this machine has %d, numbered from 0",
                         device, n);
    memset(about, 0, sizeof *about);
    ZERO_TRY(check(device, cudaGetDeviceProperties(&is, device), "reading its properties"));
    ZERO_TRY(check(device,
                   cudaDeviceGetPCIBusId(about->bus, (int)sizeof about->bus, device),
                   "reading its bus id"));
    ZERO_TRY(check(device, cudaSetDevice(device), "choosing it"));
    ZERO_TRY(check(device, cudaMemGetInfo(&about->bytes_free, &about->bytes),
                   "opening it to read its free memory"));
    snprintf(about->name, sizeof about->name, "%.*s", (int)sizeof about->name - 1, is.name);
    about->capability = 10 * is.major + is.minor;
    about->bytes_own = ZERO_CUDA_PRODUCTS_BYTES + ZERO_CUDA_ROOM_BYTES;
    return read_versions(about);
}

__attribute__((visibility("default"))) extern const zero_plugin zero_plugin_table;
const zero_plugin zero_plugin_table = {
    .version = ZERO_PLUGIN_VERSION,
    .backend_bytes = sizeof(zero_backend),
    .backend = &zero_backend_cuda,
    .hear = hear,
    .count = count,
    .describe = describe,
};
