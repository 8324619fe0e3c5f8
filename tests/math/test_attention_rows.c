/* Attention on rows of 16 bits: the bits of the call in fp32 on these numbers widened, its results
 * rounded. Backward reads what forward has stored. */
#include "support/math_test.h"

#include "math/backends.h"
#include "math/cpu_state.h"

static const zero_backend *const cpu = &zero_backend_cpu;

/* One call, on rows of a type. */
typedef struct {
    zero_attention s;
    int64_t n, n_in, rows; /* B T H D, B T (H + 2 K) D, B H T */
    void *qkv, *dout, *dqkv;
} problem;

static void *new_rows(test_pool *pool, zero_type type, int64_t n, const float *from)
{
    void *x = test_bytes(pool, n * (int64_t)zero_type_size(type));
    zero_convert(ZERO_FP32, type, n, from, x);
    return x;
}

static problem make_problem(test_pool *pool, zero_attention s, const float *qkv,
                            const float *dout)
{
    problem x = {.s = s, .n = s.B * s.T * s.H * s.D, .rows = s.B * s.H * s.T};
    x.n_in = s.B * s.T * (s.H + 2 * s.K) * s.D;
    const int64_t size = (int64_t)zero_type_size(s.rows_type);
    x.qkv = new_rows(pool, s.rows_type, x.n_in, qkv);
    x.s.dout = x.dout = new_rows(pool, s.rows_type, x.n, dout);
    x.s.out = test_bytes(pool, x.n * size), x.s.lse = test_floats(pool, x.rows);
    x.dqkv = test_bytes(pool, x.n_in * size);
    zero_attention_rows(&x.s, x.qkv, x.dqkv);
    return x;
}

static void round_rows(zero_type type, int64_t n, float *x, uint16_t *half)
{
    zero_convert(ZERO_FP32, type, n, x, half);
    zero_convert(type, ZERO_FP32, n, half, x);
}

/* Numbers that both problems have: of 16 bits already. */
static float *numbers_of(test_pool *pool, zero_type type, int64_t n)
{
    float *x = test_floats(pool, n);
    uint16_t *half = test_bytes(pool, n * (int64_t)sizeof *half);
    round_rows(type, n, x, half);
    return x;
}

static void check_half(const problem *half, const problem *wide, zero_math *math,
                       uint16_t *want)
{
    const int64_t n = half->n;
    const zero_type type = half->s.rows_type;
    cpu->attention(math, &half->s);
    cpu->attention(math, &wide->s);
    round_rows(type, n, wide->s.out, want);
    assert_memory_equal(half->s.out, want, (size_t)n * sizeof *want);
    assert_memory_equal(half->s.lse, wide->s.lse, (size_t)half->rows * sizeof(float));
    cpu->attention_backward(math, &half->s);
    cpu->attention_backward(math, &wide->s);
    round_rows(type, half->n_in, wide->dqkv, want);
    assert_memory_equal(half->dqkv, want, (size_t)half->n_in * sizeof *want);
}

#define MOST 3 /* threads */

static void check_threads(zero_attention s, zero_math math)
{
    void *pool = NULL;
    assert_int_equal(test_pool_make(&pool), 0);
    const int64_t n = s.B * s.T * s.H * s.D, len = MOST * zero_attention_workspace(&s);
    const int64_t n_in = s.B * s.T * (s.H + 2 * s.K) * s.D;
    const float *qkv = numbers_of(pool, s.rows_type, n_in);
    const float *dout = numbers_of(pool, s.rows_type, n);
    uint16_t *want = test_bytes(pool, (n_in + n) * (int64_t)sizeof *want);
    s.work = test_floats(pool, len);
    for (int64_t i = 0; i < len; i++) s.work[i] = NAN;
    zero_attention in_fp32 = s;
    in_fp32.rows_type = ZERO_FP32;
    const problem wide = make_problem(pool, in_fp32, qkv, dout);
    math.scratch = test_floats(pool, MOST * zero_math_scratch());
    for (math.threads = 1; math.threads <= MOST; math.threads++) {
        const problem half = make_problem(pool, s, qkv, dout);
        check_half(&half, &wide, &math, want);
    }
    test_pool_free(&pool);
}

/* Each kind of panels in fp32; each of kernels in bf16 for factors of that type. */
static void check_machines(zero_attention s)
{
    zero_math math = test_opened(cpu);
    const zero_panel_kernels *panels;
    const zero_packed_kernels *packed;
    const zero_cpu_kernels *kernels;
    for (int i = 0; (panels = zero_panels_at(i)); i++) {
        math.state[ZERO_CPU_PANELS] = panels;
        check_threads(s, math);
    }
    for (int i = 0; (kernels = zero_cpu_kernels_at(i)); i++) {
        math.state[ZERO_CPU_KERNELS] = kernels;
        check_threads(s, math);
    }
    for (int i = 0; s.rows_type == ZERO_BF16 && (packed = zero_packed_at(i)); i++) {
        math.state[ZERO_CPU_BF16_PRODUCTS] = packed;
        s.factors = ZERO_BF16;
        check_threads(s, math);
    }
}

/* B T C H: at, below and above whole registers, panels and blocks. */
static const int64_t sizes[][4] = {
    {1, 1, 1, 1},   {2, 5, 6, 2},   {1, 12, 32, 1}, {2, 17, 33, 1}, {1, 33, 34, 2},
    {2, 48, 96, 3}, {2, 64, 64, 1}, {1, 65, 34, 2}, {1, 95, 80, 1}, {1, 130, 20, 4},
};

static void check_type(zero_type type)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int p = 0; p < 2; p++) /* half of the time all heads share their keys */
            check_machines((zero_attention){
                .B = sizes[i][0],
                .T = sizes[i][1],
                .H = sizes[i][3],
                .K = i % 2 ? 1 : sizes[i][3],
                .D = sizes[i][2] / sizes[i][3],
                .rows_type = type,
                .dropout = {{.seed = 3, .purpose = ZERO_RNG_TEST}, 0.25f * (float)p}});
}

TEST(rows_of_bf16_are_widened_and_rounded_once)
{
    check_type(ZERO_BF16);
}

TEST(rows_of_fp16_are_widened_and_rounded_once)
{
    check_type(ZERO_FP16);
}
