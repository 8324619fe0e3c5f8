/* kernels_test.h - runs launchers of gpu/kernels.h on arrays that lie in one piece of device
 * memory. It uses CUDA's runtime and nothing else, so the same tests run on the emulator and
 * on a GPU.
 *
 *     test_gpu g = test_gpu_begin(memory);
 *     const float *in = test_gpu_in(&g, x, bytes, shift);    a copy of x, `shift` bytes off
 *     float *out = test_gpu_out(&g, NULL, bytes, shift);     begins as NaN
 *     while (test_gpu_next(&g)) zero_cuda_...(g.stream, ..., in, out);
 *     const float *got = test_gpu_result(&g, out);
 *
 * The call is made twice: the emulator runs threads once from the first on, once from the
 * last. Both must give equal bits. All bytes between and outside of the arrays, and those
 * that are only read, must stay as they were; they are ones, which a kernel that reads past
 * an end takes for NaN. */
#pragma once

#include "support/math_test.h"

#include "gpu/kernels.h"

/* ZERO_TEST_EMULATED: this is not a GPU, and the order of threads can be chosen. */
#ifdef ZERO_TEST_EMULATED
#include "gpu/emulated/emulator.h"
static inline void test_set_thread_order(int turn)
{
    zero_emulated_threads(turn > 0);
}
#else
static inline void test_set_thread_order(int turn)
{
    (void)turn;
}
#endif

#define TEST_GPU_BYTES ((size_t)96 << 20)
#define TEST_GPU_GAP   64 /* bytes between arrays, at least */

/* Memory of all tests of a program: the device's, and three images of it. */
typedef struct {
    cudaStream_t stream;
    char *device, *before, *after[2];
} test_gpu_memory;

typedef struct {
    size_t at, bytes;
} test_gpu_array;

typedef struct {
    cudaStream_t stream;
    const test_gpu_memory *memory;
    size_t used;
    test_gpu_array written[8];
    int n_written, turn;
} test_gpu;

#define assert_cuda(call) \
    do { \
        cudaError_t error_ = (call); \
        if (error_ != cudaSuccess) fail_msg(#call ": %s", cudaGetErrorString(error_)); \
    } while (0)

static inline char *test_gpu_image(void)
{
    char *image = (char *)aligned_alloc(4096, TEST_GPU_BYTES);
    assert_non_null(image);
    assert_cuda(cudaHostRegister(image, TEST_GPU_BYTES, cudaHostRegisterDefault));
    return image;
}

static inline test_gpu_memory *test_gpu_open(void)
{
    test_gpu_memory *m = (test_gpu_memory *)calloc(1, sizeof *m);
    assert_non_null(m);
    assert_cuda(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking));
    assert_cuda(cudaMalloc((void **)&m->device, TEST_GPU_BYTES));
    m->before = test_gpu_image();
    for (int i = 0; i < 2; i++) m->after[i] = test_gpu_image();
    return m;
}

static inline void test_gpu_drop_image(char *image)
{
    assert_cuda(cudaHostUnregister(image));
    free(image);
}

static inline void test_gpu_close(test_gpu_memory *m)
{
    test_gpu_drop_image(m->before);
    for (int i = 0; i < 2; i++) test_gpu_drop_image(m->after[i]);
    assert_cuda(cudaFree(m->device));
    assert_cuda(cudaStreamDestroy(m->stream));
    free(m);
}

static inline test_gpu test_gpu_begin(const test_gpu_memory *m)
{
    test_gpu g = {.stream = m->stream, .memory = m};
    return g;
}

/* Place for an array, aligned to 256 bytes and then `shift`, with ones around it. */
static inline void *test_gpu_place(test_gpu *g, const void *host, size_t bytes,
                                   size_t shift)
{
    size_t at = (g->used + TEST_GPU_GAP + 255) / 256 * 256 + shift;
    size_t end = at + bytes + TEST_GPU_GAP;
    assert_true(end <= TEST_GPU_BYTES);
    memset(g->memory->before + g->used, 0xff, end - g->used);
    if (host && bytes) memcpy(g->memory->before + at, host, bytes);
    g->used = end;
    return g->memory->device + at;
}

/* Bytes that are only read. */
static inline const void *test_gpu_in(test_gpu *g, const void *host, int64_t bytes,
                                      int shift)
{
    return test_gpu_place(g, host, (size_t)bytes, (size_t)shift);
}

/* Bytes that may be written; they begin as the host's, or as ones without any. */
static inline void *test_gpu_out(test_gpu *g, const void *host, int64_t bytes, int shift)
{
    char *device = (char *)test_gpu_place(g, host, (size_t)bytes, (size_t)shift);
    test_gpu_array array = {(size_t)(device - g->memory->device), (size_t)bytes};
    assert_true(g->n_written < (int)COUNT(g->written));
    g->written[g->n_written++] = array;
    return device;
}

static inline const void *test_gpu_result(const test_gpu *g, const void *device)
{
    return g->memory->after[0] + ((const char *)device - g->memory->device);
}

/* Bytes that no array has, or that are only read, are as before. */
static inline void test_gpu_check_rest(const test_gpu *g)
{
    size_t at = 0;
    for (int i = 0; i <= g->n_written; i++) {
        size_t end = i < g->n_written ? g->written[i].at : g->used;
        if (memcmp(g->memory->after[0] + at, g->memory->before + at, end - at) != 0)
            fail_msg("memory was written that does not belong to array %d's neighbours", i);
        at = i < g->n_written ? end + g->written[i].bytes : end;
    }
}

static inline void test_gpu_finish_turn(const test_gpu *g, int turn)
{
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaMemcpyAsync(g->memory->after[turn], g->memory->device, g->used,
                                cudaMemcpyDeviceToHost, g->stream));
    assert_cuda(cudaStreamSynchronize(g->stream));
}

/* True while the call has to be made (again). Then its results are there, and have been
 * compared. */
static inline bool test_gpu_next(test_gpu *g)
{
    const test_gpu_memory *m = g->memory;
    if (g->turn > 0) test_gpu_finish_turn(g, g->turn - 1);
    if (g->turn == 2) {
        test_set_thread_order(0);
        if (memcmp(m->after[0], m->after[1], g->used) != 0)
            fail_msg("the order of the threads shows in the results");
        test_gpu_check_rest(g);
        return false;
    }
    test_set_thread_order(g->turn);
    assert_cuda(
        cudaMemcpyAsync(m->device, m->before, g->used, cudaMemcpyHostToDevice, g->stream));
    g->turn++;
    return true;
}

/* Device memory for partial sums. */
static inline zero_cuda_room test_gpu_room(test_gpu *g, int64_t bytes)
{
    zero_cuda_room room = {test_gpu_out(g, NULL, bytes, 0), (size_t)bytes};
    return room;
}

static inline int64_t test_type_bytes(zero_type type, int64_t n)
{
    return n * (type == ZERO_FP32 ? 4 : 2);
}

/* ---- tests ---- */

static test_gpu_memory *test_gpu_shared; /* of all tests of a program */

static inline int test_gpu_open_group(void **state)
{
    (void)state;
    test_gpu_shared = test_gpu_open();
    return 0;
}

static inline int test_gpu_close_group(void **state)
{
    (void)state;
    test_gpu_close(test_gpu_shared);
    return 0;
}

__attribute__((constructor)) static void test_has_a_gpu(void)
{
    around.set_up = test_gpu_open_group;
    around.tear_down = test_gpu_close_group;
}

/* NaN is equal to NaN whatever its payload; all else by its bits. */
static inline void assert_same_typed(zero_type type, int64_t n, const void *got,
                                     const void *want)
{
    for (int64_t i = 0; i < n; i++) {
        float a, b;
        const size_t at = (size_t)test_type_bytes(type, i);
        zero_convert(type, ZERO_FP32, 1, (const char *)got + at, &a);
        zero_convert(type, ZERO_FP32, 1, (const char *)want + at, &b);
        if (isnan(a) && isnan(b)) continue;
        if (memcmp((const char *)got + at, (const char *)want + at,
                   (size_t)test_type_bytes(type, 1)) != 0)
            fail_msg("element %lld of %lld: %a, not %a", (long long)i, (long long)n,
                     (double)a, (double)b);
    }
}

/* n numbers of a type: normal ones, and every third one odd: too large, too small, ties,
 * denormal in any type, infinite, NaN. */
static inline void *test_odd_numbers(test_pool *pool, zero_type type, int64_t n)
{
    static const float odd[] = {65520.0f,    65519.0f,   1e-39f,   1e-6f,  3.4e38f,
                                1.00390625f, -0.0f,      INFINITY, NAN,    -1e-45f,
                                5.9e-8f,     -2.9e-8f,   1e-30f,   -1e20f, 0.0f,
                                -INFINITY,   1.01171875f};
    float *x = test_floats(pool, n);
    for (int64_t i = 0; i < n; i += 3) x[i] = odd[(size_t)(i / 3) % COUNT(odd)];
    void *typed = test_bytes(pool, test_type_bytes(type, n));
    zero_convert(ZERO_FP32, type, n, x, typed);
    return typed;
}

/* n usual numbers of a type. */
static inline void *test_numbers(test_pool *pool, zero_type type, int64_t n)
{
    const float *x = test_floats(pool, n);
    void *typed = test_bytes(pool, test_type_bytes(type, n));
    zero_convert(ZERO_FP32, type, n, x, typed);
    return typed;
}

static inline const float *in_floats(test_gpu *g, const float *x, int64_t n, int shift)
{
    return (const float *)test_gpu_in(g, x, 4 * n, shift);
}

static inline float *out_floats(test_gpu *g, const float *x, int64_t n, int shift)
{
    return (float *)test_gpu_out(g, x, 4 * n, shift);
}
