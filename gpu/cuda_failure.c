/* cuda_failure.c - failures of CUDA and cuBLAS: which status they are, and the first one, which
 * stays. CUDA's own errors are sticky, too: after an illegal access every call fails. */
#include <stdarg.h>
#include <stdio.h>

#include "base/fail.h"
#include "gpu/cuda.h"

zero_status zero_cuda_verdict(const zero_cuda *c)
{
    const zero_cuda_failure *f = &c->failure;
    return f->status == ZERO_OK ? ZERO_OK
                                : zero_plugin_tell(f->file, f->line, f->status, f->text);
}

zero_status zero_cuda_fail_at(const char *file, int line, zero_cuda *c, zero_status status,
                              const char *fmt, ...)
{
    zero_cuda_failure *f = &c->failure;
    if (f->status == ZERO_OK) {
        va_list arguments;
        va_start(arguments, fmt);
        vsnprintf(f->text, sizeof f->text, fmt, arguments);
        va_end(arguments);
        f->file = file;
        f->line = line;
        f->status = status;
    }
    return zero_cuda_verdict(c);
}

zero_status zero_cuda_status_of(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return ZERO_OK;
    case cudaErrorMemoryAllocation: return ZERO_ERR_NOMEM;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnknown: return ZERO_ERR_ENV;
    default: return ZERO_ERR_INTERNAL;
    }
}

/* The place is the message's, not this function's. */
zero_status zero_cuda_check_at(const char *file, int line, zero_cuda *c, cudaError_t error,
                               const char *what)
{
    if (error == cudaSuccess) return zero_cuda_verdict(c);
    cudaGetLastError(); /* else the next call would be blamed for it, too */
    zero_status status = zero_cuda_status_of(error);
    return zero_cuda_fail_at(file, line, c, status, "device %d (%s): %s failed: %s (%s)%s",
                             c->device, c->name, what, cudaGetErrorString(error),
                             cudaGetErrorName(error),
                             status == ZERO_ERR_INTERNAL ? "; this is a bug" : "");
}

zero_status zero_cuda_check_product_at(const char *file, int line, zero_cuda *c,
                                       cublasStatus_t error, const char *what)
{
    if (error == CUBLAS_STATUS_SUCCESS) return zero_cuda_verdict(c);
    zero_status status =
        error == CUBLAS_STATUS_ALLOC_FAILED ? ZERO_ERR_NOMEM
        : error == CUBLAS_STATUS_NOT_INITIALIZED || error == CUBLAS_STATUS_ARCH_MISMATCH
            ? ZERO_ERR_ENV
            : ZERO_ERR_INTERNAL;
    return zero_cuda_fail_at(file, line, c, status,
                             "device %d (%s): %s failed: cuBLAS says %s (%d)", c->device,
                             c->name, what, cublasGetStatusString(error), (int)error);
}

zero_status zero_cuda_no_device(cudaError_t error)
{
    int driver = 0, runtime = 0;
    cudaGetLastError();
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    cudaRuntimeGetVersion(&runtime);
    if (error == cudaErrorInsufficientDriver && driver == 0)
        return zero_fail(ZERO_ERR_ENV,
                         "there is no CUDA device: this machine has no NVIDIA driver; run "
                         "on a machine with a GPU and its driver, or choose device 'cpu'");
    if (error == cudaErrorInsufficientDriver)
        return zero_fail(
            ZERO_ERR_ENV,
            "there is no CUDA device: the NVIDIA driver is for CUDA %d.%d, and "
            "this build needs %d.%d; update the driver, or build with an older "
            "CUDA",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error == cudaErrorNoDevice)
        return zero_fail(ZERO_ERR_ENV,
                         "there is no CUDA device: the driver finds no GPU; see nvidia-smi "
                         "and CUDA_VISIBLE_DEVICES, or choose device 'cpu'");
    return zero_fail(
        ZERO_ERR_ENV,
        "there is no CUDA device: %s (%s, error %d); see nvidia-smi, or choose "
        "device 'cpu'",
        cudaGetErrorString(error), cudaGetErrorName(error), (int)error);
}
