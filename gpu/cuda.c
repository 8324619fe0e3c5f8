/* cuda.c - how the backend is opened and closed, and what every call begins and ends with. */
#include "gpu/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* Set by the build for debugging: each launch is waited for, so its failure names it. */
#ifndef ZERO_CUDA_WAITS
#define ZERO_CUDA_WAITS 0
#endif

/* ---- open ---- */

static zero_status choose_device(zero_cuda *c)
{
    struct cudaDeviceProp is;
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n == 0) error = cudaErrorNoDevice;
    if (error != cudaSuccess) return zero_cuda_no_device(error);
    if (c->device < 0 || c->device >= n)
        return zero_fail(ZERO_ERR_INVALID,
                         "there is no device %d: this machine has %d, numbered from 0",
                         c->device, n);
    ZERO_TRY(zero_cuda_check(c, cudaGetDeviceProperties(&is, c->device),
                             "reading its properties"));
    snprintf(c->name, sizeof c->name, "%.*s", (int)sizeof c->name - 1, is.name);
    c->capability = 10 * is.major + is.minor;
    if (c->capability < 70)
        return zero_fail(ZERO_ERR_ENV,
                         "device %d (%s, sm_%d) is too old: a GPU needs sm_70 (V100) or "
                         "newer; choose another one or device 'cpu'",
                         c->device, c->name, c->capability);
    return zero_cuda_check(c, cudaSetDevice(c->device), "opening the device");
}

static zero_status take_workspace(zero_cuda *c)
{
    void *at = NULL;
    const size_t bytes = ZERO_CUDA_PRODUCTS_BYTES + ZERO_CUDA_ROOM_BYTES;
    if (cudaMalloc(&at, bytes) != cudaSuccess) {
        cudaGetLastError();
        return zero_fail(ZERO_ERR_NOMEM,
                         "device %d (%s) has no %zu MiB of memory left for a rank's "
                         "workspace: use fewer ranks per device, or end what else runs "
                         "there (nvidia-smi)",
                         c->device, c->name, bytes >> 20);
    }
    c->workspace = at;
    c->room =
        (zero_cuda_room){c->workspace + ZERO_CUDA_PRODUCTS_BYTES, ZERO_CUDA_ROOM_BYTES};
    return ZERO_OK;
}

/* Equal calls must have equal bits: one stream, a workspace of our own, no reduced precision
 * within a product, and no TF32, which the default mode leaves off. */
static zero_status open_products(zero_cuda *c)
{
    ZERO_TRY(zero_cuda_check_product(c, cublasCreate(&c->products), "opening cuBLAS"));
    ZERO_TRY(zero_cuda_check_product(c, cublasSetStream(c->products, c->compute),
                                     "giving cuBLAS a stream"));
    ZERO_TRY(zero_cuda_check_product(
        c, cublasSetWorkspace(c->products, c->workspace, ZERO_CUDA_PRODUCTS_BYTES),
        "giving cuBLAS a workspace"));
    return zero_cuda_check_product(
        c,
        cublasSetMathMode(
            c->products,
            (cublasMath_t)((int)CUBLAS_DEFAULT_MATH |
                           (int)CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "choosing the precision of cuBLAS");
}

static zero_status open_all(zero_cuda *c)
{
    ZERO_TRY(choose_device(c));
    ZERO_TRY(zero_cuda_check(c,
                             cudaStreamCreateWithFlags(&c->compute, cudaStreamNonBlocking),
                             "making a stream"));
    ZERO_TRY(zero_cuda_open_queues(c));
    ZERO_TRY(zero_cuda_open_marks(c));
    ZERO_TRY(take_workspace(c));
    return open_products(c);
}

zero_status zero_cuda_open(zero_math *math)
{
    math->state[0] = NULL;
    zero_cuda *c = calloc(1, sizeof *c);
    if (!c)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the state of a device: %zu bytes",
                         sizeof *c);
    c->device = math->device;
    math->state[0] = c;
    zero_status st = open_all(c);
    if (st != ZERO_OK) zero_cuda_close(math);
    return st;
}

/* Kernels and copies that are queued end on their own; after a failure none runs any more, and all
 * that follows returns at once. */
void zero_cuda_close(zero_math *math)
{
    zero_cuda *c = zero_cuda_of(math);
    if (!c) return;
    cudaSetDevice(c->device);
    zero_cuda_close_memory(c);
    if (c->products) cublasDestroy(c->products);
    if (c->workspace) cudaFree(c->workspace);
    zero_cuda_close_marks(c);
    if (c->compute) cudaStreamDestroy(c->compute);
    cudaGetLastError();
    free(c);
    math->state[0] = NULL;
}

zero_status zero_cuda_sync(const zero_math *math)
{
    zero_cuda *c = zero_cuda_of(math);
    ZERO_TRY(zero_cuda_verdict(c));
    return zero_cuda_check(c, cudaStreamSynchronize(c->compute), "waiting for its calls");
}

zero_status zero_cuda_accepts(const zero_math *math, zero_type type)
{
    const zero_cuda *c = zero_cuda_of(math);
    if (type != ZERO_BF16 || c->capability >= 80) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "this GPU (%s, sm_%d) has no bf16: use --dtype fp16", c->name,
                     c->capability);
}

/* ---- every call ---- */

zero_status zero_cuda_use(zero_cuda *c)
{
    ZERO_TRY(zero_cuda_verdict(c));
    return zero_cuda_check(c, cudaSetDevice(c->device), "choosing the device");
}

zero_cuda *zero_cuda_begin(const zero_math *math)
{
    zero_cuda *c = zero_cuda_of(math);
    c->is_placed = false;
    if (c->failure.status == ZERO_OK && zero_cuda_use(c) == ZERO_OK) return c;
    zero_math_poll(math);
    return NULL;
}

void zero_cuda_end(const zero_math *math, const char *what)
{
    zero_cuda *c = zero_cuda_of(math);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess && ZERO_CUDA_WAITS) error = cudaStreamSynchronize(c->compute);
    /* The next status tells it: calls return nothing. */
    (void)!zero_cuda_check(c, error, what);
    zero_math_poll(math);
}
