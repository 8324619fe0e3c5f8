/* cuda_sharing.c - device memory that other processes of the machine reach, by CUDA's IPC. What is
 * queued here stands among the stores. */
#include <string.h>

#include "base/fail.h"
#include "gpu/cuda.h"

/* The contents of a zero_memory_handle. */
typedef struct {
    cudaIpcMemHandle_t of_cuda;
    size_t bytes; /* of the piece: CUDA does not tell the process that opens it */
} handle_parts;

_Static_assert(sizeof(handle_parts) <= sizeof(zero_memory_handle), "a handle has room");

/* Another way is left to the caller, so this is not kept as a failure of the device. */
static zero_status cannot(const zero_cuda *c, const char *what, cudaError_t error)
{
    cudaGetLastError();
    return zero_fail(ZERO_ERR_UNSUPPORTED, "device %d (%s) cannot %s: %s (%s)", c->device,
                     c->name, what, cudaGetErrorString(error), cudaGetErrorName(error));
}

static zero_status share(zero_math *math, void *memory, zero_memory_handle *handle)
{
    zero_cuda *c = zero_cuda_of(math);
    handle_parts parts;
    ZERO_TRY(zero_cuda_use(c));
    memset(&parts, 0, sizeof parts);
    parts.bytes = zero_cuda_taken_bytes(c, memory);
    if (parts.bytes == 0)
        return zero_cuda_fail(c, ZERO_ERR_INVALID,
                              "share() of a device was given %p, which take() did not give",
                              memory);
    cudaError_t error = cudaIpcGetMemHandle(&parts.of_cuda, memory);
    if (error != cudaSuccess)
        return cannot(c, "share its memory with other processes", error);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &parts, sizeof parts);
    return ZERO_OK;
}

static zero_status open_piece(zero_math *math, const zero_memory_handle *handle,
                              void **memory)
{
    zero_cuda *c = zero_cuda_of(math);
    handle_parts parts;
    void *at = NULL;
    memcpy(&parts, handle, sizeof parts);
    ZERO_TRY(zero_cuda_use(c));
    if (c->n_opened == ZERO_CUDA_PIECES)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "a device has room for %d pieces of other processes' memory",
                         ZERO_CUDA_PIECES);
    cudaError_t error =
        cudaIpcOpenMemHandle(&at, parts.of_cuda, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess)
        return cannot(c, "reach the memory of a neighbour's device", error);
    c->opened[c->n_opened++] = (zero_cuda_piece){at, parts.bytes};
    *memory = at;
    return ZERO_OK;
}

static void close_piece(zero_math *math, void *memory)
{
    zero_cuda *c = zero_cuda_of(math);
    zero_cuda_wait(c);
    cudaSetDevice(c->device);
    for (int i = 0; i < c->n_opened; i++) {
        if (c->opened[i].at != memory) continue;
        c->opened[i] = c->opened[--c->n_opened];
        cudaIpcCloseMemHandle(memory);
        break;
    }
    cudaGetLastError(); /* else the next call would be blamed */
}

void zero_cuda_close_sharing(zero_cuda *c)
{
    while (c->n_opened > 0) cudaIpcCloseMemHandle(c->opened[--c->n_opened].at);
}

/* Memory that the host sees where the device does, as managed memory, is open to all. */
zero_memory_access zero_cuda_access(const zero_math *math, const void *memory)
{
    struct cudaPointerAttributes is;
    if (zero_cuda_use(zero_cuda_of(math)) != ZERO_OK) return ZERO_MEMORY_CLOSED;
    if (cudaPointerGetAttributes(&is, memory) != cudaSuccess) {
        cudaGetLastError();
        return ZERO_MEMORY_CLOSED;
    }
    if (is.hostPointer == memory) return ZERO_MEMORY_OPEN;
    return is.type == cudaMemoryTypeDevice ? ZERO_MEMORY_OF_CUDA : ZERO_MEMORY_CLOSED;
}

/* ---- what is queued ---- */

/* Pinned memory of the host has one address on both sides, so kernels write it, too. */
static zero_status check(zero_cuda *c, const char *call, const void *memory, size_t bytes,
                         bool is_written)
{
    const zero_cuda_piece *others = is_written ? c->pinned : c->opened;
    const int n = is_written ? c->n_pinned : c->n_opened;
    ZERO_TRY(zero_cuda_verdict(c));
    if (zero_cuda_holds(c->taken, c->n_taken, memory, bytes)) return ZERO_OK;
    if (zero_cuda_holds(others, n, memory, bytes)) return ZERO_OK;
    return zero_cuda_fail(
        c, ZERO_ERR_INVALID,
        "%s() of a device was given %zu bytes at %p, which are not memory "
        "of the device or %s",
        call, bytes, memory, is_written ? "pinned host memory" : "of one that was opened");
}

static zero_status mark(const zero_math *math, zero_ticket *ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    *ticket = 0;
    ZERO_TRY(zero_cuda_queue_begin(math, ZERO_CUDA_UP));
    return zero_cuda_queue_end(c, ZERO_CUDA_UP, ticket);
}

static zero_status copy(const zero_math *math, void *to, const void *from, size_t bytes,
                        zero_ticket *ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    *ticket = 0;
    if (bytes == 0) return zero_cuda_verdict(c);
    ZERO_TRY(check(c, "copy", to, bytes, true));
    ZERO_TRY(check(c, "copy", from, bytes, false));
    ZERO_TRY(zero_cuda_use(c));
    ZERO_TRY(zero_cuda_queue_begin(math, ZERO_CUDA_UP));
    const bool is_host = zero_cuda_holds(c->pinned, c->n_pinned, to, bytes);
    ZERO_TRY(zero_cuda_check(
        c,
        cudaMemcpyAsync(to, from, bytes,
                        is_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice,
                        c->queues[ZERO_CUDA_UP].stream),
        "copying from a neighbour's device"));
    return zero_cuda_queue_end(c, ZERO_CUDA_UP, ticket);
}

static size_t size_of(zero_type type)
{
    return type == ZERO_FP32 ? sizeof(float) : sizeof(uint16_t);
}

static zero_status check_sum(zero_cuda *c, const zero_memory_sum *s)
{
    const size_t bytes = (size_t)s->len * size_of(s->terms[0].type);
    bool is_one_type = s->n >= 1 && s->n <= ZERO_MEMORY_TERMS;
    for (int t = 0; is_one_type && t < s->n; t++)
        is_one_type = s->terms[t].type == s->terms[0].type && s->terms[t].count == 1;
    if (!is_one_type || (s->type != s->terms[0].type && s->type != ZERO_FP32))
        return zero_cuda_fail(
            c, ZERO_ERR_INVALID,
            "sum() of a device was given %d terms: expected 1 to %d of one "
            "type, each of one rank, and a result of that type or fp32",
            s->n, ZERO_MEMORY_TERMS);
    for (int t = 0; t < s->n; t++)
        ZERO_TRY(check(c, "sum", s->terms[t].data, bytes, false));
    return check(c, "sum", s->out, (size_t)s->len * size_of(s->type), true);
}

static zero_status sum(const zero_math *math, const zero_memory_sum *s, zero_ticket *ticket)
{
    zero_cuda *c = zero_cuda_of(math);
    zero_cuda_terms terms = {.n = s->n};
    *ticket = 0;
    if (s->len == 0) return zero_cuda_verdict(c);
    ZERO_TRY(check_sum(c, s));
    for (int t = 0; t < s->n; t++) terms.at[t] = s->terms[t].data;
    ZERO_TRY(zero_cuda_use(c));
    ZERO_TRY(zero_cuda_queue_begin(math, ZERO_CUDA_UP));
    zero_cuda_sum_ranks(c->queues[ZERO_CUDA_UP].stream, &terms, s->terms[0].type, s->len,
                        s->type, s->out);
    ZERO_TRY(zero_cuda_check(c, cudaGetLastError(), "adding up neighbours' memory"));
    return zero_cuda_queue_end(c, ZERO_CUDA_UP, ticket);
}

const zero_memory_sharing zero_cuda_sharing = {.share = share,
                                               .open = open_piece,
                                               .close = close_piece,
                                               .mark = mark,
                                               .copy = copy,
                                               .sum = sum};
