/* cuda.h - the state of a backend on one GPU: its streams, its memory, its copies in flight, and
 * what has failed.
 *
 *     compute   calls, in the order made
 *     down, up  fetches and stores; each waits for all calls made before it
 *
 * Everything here is taken by open(): a step allocates nothing, neither on the host nor on the
 * device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include "gpu/kernels.h"
#include "math/backend.h"

/* The backend's own device memory, its workspace. A plan counts it with the CUDA context. */
#define ZERO_CUDA_PRODUCTS_BYTES ((size_t)32 << 20) /* cuBLAS': NVIDIA's advice for sm_90 */
/* 16-bit factors of products, and partial sums of kernels; never both at one time. */
#define ZERO_CUDA_ROOM_BYTES ((size_t)64 << 20)

enum {
    ZERO_CUDA_PIECES = 64,
    ZERO_CUDA_COPIES = 1024,
    ZERO_CUDA_PLACES = 64,
    ZERO_CUDA_MARKS = 8192
};

typedef enum { ZERO_CUDA_DOWN, ZERO_CUDA_UP, ZERO_CUDA_WAYS } zero_cuda_way;

/* Memory that was taken, or pinned memory of the host. */
typedef struct {
    char *at;
    size_t bytes;
} zero_cuda_piece;

/* Copies of one direction are numbered from 1. Event number % ZERO_CUDA_COPIES marks the end of a
 * copy; one that a later copy has taken over marks an end that comes later still. */
typedef struct {
    cudaStream_t stream;
    cudaEvent_t events[ZERO_CUDA_COPIES];
    uint64_t begun, ended; /* the newest one; the newest that is known to have ended */
    uint64_t seen;         /* the stream waits already for all calls before this place */
} zero_cuda_queue;

/* The first failure, which stays. */
typedef struct {
    zero_status status;
    const char *file;
    int line;
    char text[512];
} zero_cuda_failure;

/* How cuBLASLt computes products of one shape and their ending, or that it does not. */
enum { ZERO_CUDA_CHOICES = 64, ZERO_CUDA_SHAPE = 9 };
typedef struct {
    int64_t key[ZERO_CUDA_SHAPE]; /* all zeros: none */
    bool is_supported;
    cublasLtMatmulAlgo_t algorithm;
} zero_cuda_choice;

typedef struct {
    int device, capability; /* 70 for sm_70 */
    char name[96];
    cudaStream_t compute;
    /* Places among the calls, numbered from 1. Event number % ZERO_CUDA_PLACES stands at a place, or,
     * once another has taken it over, at one that comes later. */
    cudaEvent_t placed[ZERO_CUDA_PLACES];
    uint64_t places; /* the newest one */
    bool is_placed;  /* no call was made after it */
    uint64_t since;  /* the place of copies that begin now; 0: all calls so far */
    cudaEvent_t marks[ZERO_CUDA_MARKS]; /* of the profile */
    cublasHandle_t products;
    zero_cuda_queue queues[ZERO_CUDA_WAYS];
    char *workspace; /* on the device: cuBLAS', then the room */
    zero_cuda_room room;
    zero_cuda_choice choices[ZERO_CUDA_CHOICES];
    int64_t n_choices; /* made so far; modulo ZERO_CUDA_CHOICES the place of the next */
    zero_cuda_piece taken[ZERO_CUDA_PIECES], pinned[ZERO_CUDA_PIECES];
    zero_cuda_piece opened[ZERO_CUDA_PIECES]; /* other processes' */
    int n_taken, n_pinned, n_opened;
    zero_cuda_failure failure;
} zero_cuda;

static inline zero_cuda *zero_cuda_of(const zero_math *math)
{
    return (zero_cuda *)math->state[0];
}

/* ---- cuda_failure.c ---- */

/* ZERO_OK or the first failure, told again. */
zero_status zero_cuda_verdict(const zero_cuda *c);

/* Keeps a failure, unless there is one already, and returns the first one. */
zero_status zero_cuda_fail_at(const char *file, int line, zero_cuda *c, zero_status status,
                              const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define zero_cuda_fail(c, status, ...) \
    zero_cuda_fail_at(__FILE__, __LINE__, c, status, __VA_ARGS__)

/* Keeps what a call of CUDA or of cuBLAS has returned, if that is a failure: `what` is the call in
 * words. Returns the verdict. */
zero_status zero_cuda_check_at(const char *file, int line, zero_cuda *c, cudaError_t error,
                               const char *what);
zero_status zero_cuda_check_product_at(const char *file, int line, zero_cuda *c,
                                       cublasStatus_t error, const char *what);
#define zero_cuda_check(c, error, what) \
    zero_cuda_check_at(__FILE__, __LINE__, c, error, what)
#define zero_cuda_check_product(c, error, what) \
    zero_cuda_check_product_at(__FILE__, __LINE__, c, error, what)

/* How an error of CUDA ends the program: no driver, no device and broken hardware are the
 * machine's, memory is exhausted, and anything else is a bug. */
zero_status zero_cuda_status_of(cudaError_t error);

/* Why there is no device, if `error` is one of cudaGetDeviceCount()'s. */
zero_status zero_cuda_no_device(cudaError_t error);

/* ---- cuda.c: every call of the table begins and ends so ---- */

/* Makes the device current for this thread. */
zero_status zero_cuda_use(zero_cuda *c);

/* NULL after a failure: nothing is to be launched then. */
zero_cuda *zero_cuda_begin(const zero_math *math);
/* Keeps a failure of the launch `what` and polls. Builds for debugging wait for the kernel. */
void zero_cuda_end(const zero_math *math, const char *what);

/* ---- cuda_memory.c ---- */

extern const zero_memory zero_cuda_memory;

/* Whether the bytes lie in one of n pieces. */
bool zero_cuda_holds(const zero_cuda_piece *pieces, int n, const void *memory,
                     size_t bytes);
/* Bytes of the piece that take() gave; 0: it gave none there. */
size_t zero_cuda_taken_bytes(const zero_cuda *c, const void *memory);
/* Until all that is queued has ended. */
void zero_cuda_wait(zero_cuda *c);

/* Work on the stream of a direction stands between these two: it waits for the calls before since(),
 * and gets a ticket. */
zero_status zero_cuda_queue_begin(const zero_math *math, zero_cuda_way way);
zero_status zero_cuda_queue_end(zero_cuda *c, zero_cuda_way way, zero_ticket *ticket);

/* Events and streams of both directions, made and released. */
zero_status zero_cuda_open_queues(zero_cuda *c);
void zero_cuda_close_memory(zero_cuda *c);

/* ---- cuda_sharing.c ---- */

extern const zero_memory_sharing zero_cuda_sharing;
zero_memory_access zero_cuda_access(const zero_math *math, const void *memory);

void zero_cuda_close_sharing(zero_cuda *c); /* what was opened */

/* ---- cuda_marks.c ---- */

extern const zero_stopwatch zero_cuda_stopwatch;

zero_status zero_cuda_open_marks(zero_cuda *c);
void zero_cuda_close_marks(zero_cuda *c);

/* ---- gemm.c ---- */

void zero_cuda_gemm(const zero_math *math, const zero_gemm *g);

extern const zero_yardstick zero_cuda_yardstick;

/* ---- fused.c ---- */

extern const zero_fused zero_cuda_fused;

/* ---- cuda_calls.c ---- */

extern const zero_backend zero_backend_cuda;

zero_status zero_cuda_open(zero_math *math);
void zero_cuda_close(zero_math *math);
zero_status zero_cuda_sync(const zero_math *math);
zero_status zero_cuda_accepts(const zero_math *math, zero_type type);

/* ---- plugin.c: the caller's ear ---- */

/* Tells a failure that was written before. */
zero_status zero_plugin_tell(const char *file, int line, zero_status status,
                             const char *text);
