/* launchers.h - launchers of gpu/kernels.h as a backend: operations (support/operations.c) at a site
 * that is the device, beside the oracle's. It uses CUDA's runtime and nothing else, so the same tests
 * run on the emulator and on a GPU.
 *
 * A call is made twice: the emulator runs threads once from the first on, once from the last. Both
 * must give equal bits. */
#pragma once

#include "gpu/kernels.h"
#include "support/calls.h"

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

/* A part of the largest number wanted, as in test_operations.c: 1.2e-6 is seen. A wrong
 * term is off by 1e-3 or more. A GPU's exp2f alone is off by 2.4e-7. */
#define TOLERANCE 5e-6

#define LARGEST_GPU 90

#define DEVICE_BYTES ((size_t)96 << 20)

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

/* Memory of all tests of a program. */
static struct {
    cudaStream_t stream;
    char *device;
} gpu;

#define assert_cuda(call) \
    do { \
        cudaError_t error_ = (call); \
        if (error_ != cudaSuccess) fail_msg(#call ": %s", cudaGetErrorString(error_)); \
    } while (0)

static int open_gpu(void **state)
{
    (void)state;
    assert_cuda(cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking));
    assert_cuda(cudaMalloc((void **)&gpu.device, DEVICE_BYTES));
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    assert_cuda(cudaFree(gpu.device));
    assert_cuda(cudaStreamDestroy(gpu.stream));
    return 0;
}

__attribute__((constructor)) static void test_has_a_gpu(void)
{
    around.set_up = open_gpu;
    around.tear_down = close_gpu;
}

static zero_cuda_room room_of(const zero_math *math)
{
    const site *w = (const site *)math->state[0];
    const zero_cuda_room room = {w->room_at, (size_t)w->room};
    return room;
}

#define LAUNCHED(name, arguments) \
    static void name(const zero_math *math, const arguments *a) \
    { \
        (void)math; \
        zero_cuda_##name(gpu.stream, a); \
    }
#define LAUNCHED_WITH_ROOM(name, arguments) \
    static void name(const zero_math *math, const arguments *a) \
    { \
        zero_cuda_##name(gpu.stream, a, room_of(math)); \
    }

LAUNCHED(add_bias, zero_bias)
LAUNCHED(bias_gelu, zero_bias)
LAUNCHED(add_branch, zero_branch)
LAUNCHED(layernorm, zero_layernorm_args)
LAUNCHED(swiglu, zero_swiglu)
LAUNCHED(swiglu_backward, zero_swiglu)
LAUNCHED(turn, zero_turn)
LAUNCHED(remember, zero_cached)
LAUNCHED(recall, zero_cached)
LAUNCHED(embedding, zero_embedding)
LAUNCHED(embedding_backward, zero_embedding_grad)
LAUNCHED(cross_entropy, zero_cross_entropy)
LAUNCHED_WITH_ROOM(bias_backward, zero_bias_grad)
LAUNCHED_WITH_ROOM(bias_gelu_backward, zero_bias_grad)
LAUNCHED_WITH_ROOM(layernorm_backward, zero_layernorm_grad_args)
LAUNCHED_WITH_ROOM(turn_backward, zero_turn)
LAUNCHED_WITH_ROOM(few_rows, zero_gemm)

static void attention(const zero_math *math, const zero_attention *a)
{
    zero_cuda_attention(gpu.stream, math->device, a);
}

static void attention_backward(const zero_math *math, const zero_attention *a)
{
    zero_cuda_attention_backward(gpu.stream, math->device, a, room_of(math));
}

static void clear(const zero_math *math, int64_t n, float *x)
{
    (void)math;
    zero_cuda_clear(gpu.stream, n, x);
}

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y)
{
    (void)math;
    zero_cuda_dropout(gpu.stream, d, rows_type, B, n, x, y);
}

static void adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a)
{
    (void)math;
    zero_cuda_adamw(gpu.stream, h, a);
}

static void sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                        double *sum)
{
    zero_cuda_sum_squares(gpu.stream, type, n, x, room_of(math), sum);
}

static void round_numbers(const zero_math *math, zero_type type, int64_t n, const float *in,
                          void *out)
{
    (void)math;
    zero_cuda_round(gpu.stream, type, n, in, out);
}

static void accumulate(const zero_math *math, zero_type type, int64_t n, const float *sum,
                       const float *leaf, float *out)
{
    (void)math;
    zero_cuda_accumulate(gpu.stream, type, n, sum, leaf, out);
}

static const zero_backend launchers = {.name = "kernels",
                                       .clear = clear,
                                       .gemm = few_rows,
                                       .add_bias = add_bias,
                                       .bias_backward = bias_backward,
                                       .add_branch = add_branch,
                                       .dropout = dropout,
                                       .bias_gelu = bias_gelu,
                                       .bias_gelu_backward = bias_gelu_backward,
                                       .layernorm = layernorm,
                                       .layernorm_backward = layernorm_backward,
                                       .swiglu = swiglu,
                                       .swiglu_backward = swiglu_backward,
                                       .turn = turn,
                                       .turn_backward = turn_backward,
                                       .attention = attention,
                                       .attention_backward = attention_backward,
                                       .remember = remember,
                                       .recall = recall,
                                       .embedding = embedding,
                                       .embedding_backward = embedding_backward,
                                       .cross_entropy = cross_entropy,
                                       .adamw = adamw,
                                       .sum_squares = sum_squares,
                                       .round = round_numbers,
                                       .accumulate = accumulate};

static void load(site *w, const char *bytes, size_t n)
{
    test_set_thread_order(w->turn);
    assert_cuda(cudaMemcpy(gpu.device, bytes, n, cudaMemcpyHostToDevice));
    assert_cuda(cudaDeviceSynchronize());
}

static void save(site *w, char *bytes, size_t n)
{
    (void)w;
    assert_cuda(cudaGetLastError());
    assert_cuda(cudaStreamSynchronize(gpu.stream));
    assert_cuda(cudaMemcpy(bytes, gpu.device, n, cudaMemcpyDeviceToHost));
    test_set_thread_order(0);
}

/* The launchers'; `room` is for partial sums. */
static inline void open_launchers(site *w, int64_t room)
{
    *w = (site){.name = "gpu", .ops = &launchers, .bytes = DEVICE_BYTES, .turns = 2};
    w->memory = gpu.device, w->room = room;
    w->is_gpu = true, w->load = load, w->save = save;
    w->math.state[0] = w, w->math.device = LARGEST_GPU;
}

/* The launchers' and the oracle's. */
typedef struct {
    site oracle, gpu;
} both;

static inline void open_both(both *b, test_pool *pool, int64_t room)
{
    b->oracle =
        host_site("naive", &zero_backend_naive, pool, test_bytes(pool, HOST_BYTES), 1);
    open_launchers(&b->gpu, room);
}

/* As the types of the shape say against the oracle, and by the law of types on its
 * numbers. */
static inline void check(both *b, const operation *op, const shape *s)
{
    call first = make_first(op, s), want = make_call_given(&b->oracle, op, s, &first);
    call got = {.op = NULL};
    if (s->numbers != ZERO_FP32)
        check_types(&b->gpu, op, *s, s->numbers, &first, &got);
    else
        got = make_call_given(&b->gpu, op, s, &first);
    const double by_factors = s->factors == ZERO_FP32 ? 0.0 : 1.0 / 64;
    compare_calls(&got, &want, fmax(TOLERANCE, by_factors));
    drop_call(&first), drop_call(&want), drop_call(&got);
}

/* A call whose arrays begin as these numbers, not as usual. */
static inline void compare_given(both *b, const char *op, const shape *s, const call *given)
{
    call want = make_call_given(&b->oracle, operation_named(op), s, given);
    call got = make_call_given(&b->gpu, operation_named(op), s, given);
    compare_calls(&got, &want, TOLERANCE);
    drop_call(&want), drop_call(&got);
}
