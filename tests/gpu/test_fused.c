/* Products and what follows them as one call, against the oracle's two calls: rounded once where
 * cuBLASLt makes both, and the bits of the device's two calls elsewhere. */
#define TEST_HAS_MAIN
#include "gpu/open_device.h"

#include "base/half.h"

typedef enum { ADD_BIAS, ADD_BRANCH, BIAS_GELU, BACKWARD, ENDINGS } ending;

enum { IN_A, IN_B, IN_BIAS, IN_C, IN_OTHER, ARRAYS };

typedef struct {
    ending end;
    zero_type factors, bias, rows;
    int64_t m, n, k;
    int64_t gap[2];        /* between rows of a, and of b */
    int64_t shift[ARRAYS]; /* in elements */
    float dropout;         /* of a branch */
    bool few_rows, is_exact;
} shape;

enum { MOST = 72 * 64 };

/* The arrays of a call, in the host's memory and at the same places of the device's. */
typedef struct {
    char *a, *b, *bias, *c, *other; /* other: y, x of backward, a residual */
    float *dbias;
    size_t bytes;
} arrays;

/* Products of multiples of 1/256, whose sums have more bits than 16-bit numbers, and no more than
 * floats. */
static float factor_at(int64_t i)
{
    return (float)(i * i % 61 - 30);
}

static char *numbers(device *d, arrays *x, zero_type type, int64_t n, int64_t shift,
                     float scale)
{
    char *at = fill(d, &x->bytes, type, n + shift, 0) + bytes_of(type, shift);
    for (int64_t i = 0; i < n; i++) write_at(type, at, i, scale * factor_at(i + n));
    return at;
}

static arrays make(device *d, const shape *s)
{
    arrays x = {.bytes = 0};
    const int64_t rows_b = s->end == BACKWARD ? s->n : s->k;
    const int64_t cols_b = s->end == BACKWARD ? s->k : s->n;
    x.a = numbers(d, &x, s->rows, s->m * (s->k + s->gap[IN_A]), s->shift[IN_A], 1.0f);
    x.b = numbers(d, &x, s->factors, rows_b * (cols_b + s->gap[IN_B]), s->shift[IN_B],
                  0x1p-8f);
    x.bias = numbers(d, &x, s->bias, s->n, s->shift[IN_BIAS], 0.125f);
    x.c = numbers(d, &x, s->rows, s->m * s->n, s->shift[IN_C], 1.0f);
    x.other = numbers(d, &x, s->rows, s->m * s->n, s->shift[IN_OTHER], 0.125f);
    x.dbias = (float *)numbers(d, &x, ZERO_FP32, s->n, 0, 1.0f);
    return x;
}

static zero_gemm product_of(const shape *s, const arrays *x)
{
    const bool back = s->end == BACKWARD;
    return (zero_gemm){.transpose_b = back,
                       .factors = s->factors,
                       .m = s->m,
                       .n = s->n,
                       .k = s->k,
                       .a = x->a,
                       .b = x->b,
                       .c = x->c,
                       .a_type = s->rows,
                       .b_type = s->factors,
                       .c_type = s->rows,
                       .lda = s->k + s->gap[IN_A],
                       .ldb = (back ? s->k : s->n) + s->gap[IN_B],
                       .few_rows = s->few_rows};
}

static zero_bias bias_of(const shape *s, const arrays *x)
{
    return (zero_bias){.rows = s->m,
                       .cols = s->n,
                       .type = s->bias,
                       .rows_type = s->rows,
                       .bias = x->bias,
                       .x = x->c,
                       .y = x->other,
                       .is_exact = s->is_exact};
}

static zero_branch branch_of(const shape *s, const arrays *x)
{
    return (zero_branch){.dropout = {.stream = {.seed = 1}, .p = s->dropout},
                         .B = 1,
                         .T = s->m,
                         .cols = s->n,
                         .type = s->bias,
                         .rows_type = s->rows,
                         .bias = x->bias,
                         .residual = x->other,
                         .in = x->c,
                         .out = x->c};
}

static zero_bias_grad gradient_of(const shape *s, const arrays *x)
{
    return (zero_bias_grad){.rows = s->m,
                            .cols = s->n,
                            .rows_type = s->rows,
                            .x = x->other,
                            .dy = x->c,
                            .dx = x->c,
                            .is_exact = s->is_exact,
                            .accumulate = true,
                            .dbias = x->dbias};
}

static void call_fused(const zero_backend *of, const zero_math *math, const shape *s,
                       const arrays *x)
{
    const zero_gemm g = product_of(s, x);
    const zero_bias b = bias_of(s, x);
    const zero_bias_grad d = gradient_of(s, x);
    const zero_branch end = branch_of(s, x);
    if (s->end == ADD_BIAS) of->fused->add_bias(math, &g, &b);
    if (s->end == ADD_BRANCH) of->fused->add_branch(math, &g, &end);
    if (s->end == BIAS_GELU) of->fused->bias_gelu(math, &g, &b);
    if (s->end == BACKWARD) of->fused->bias_gelu_backward(math, &g, &d);
}

static void call_both(const zero_backend *of, const zero_math *math, const shape *s,
                      const arrays *x)
{
    const zero_gemm g = product_of(s, x);
    const zero_bias b = bias_of(s, x);
    const zero_bias_grad d = gradient_of(s, x);
    const zero_branch end = branch_of(s, x);
    of->gemm(math, &g);
    if (s->end == ADD_BIAS) of->add_bias(math, &b);
    if (s->end == ADD_BRANCH) of->add_branch(math, &end);
    if (s->end == BIAS_GELU) of->bias_gelu(math, &b);
    if (s->end == BACKWARD) of->bias_gelu_backward(math, &d);
}

typedef void calling(const zero_backend *of, const zero_math *math, const shape *s,
                     const arrays *x);

/* The call on the device; its arrays are in the host's memory then. */
static arrays run(device *d, const shape *s, calling *call)
{
    zero_ticket ticket;
    const arrays x = make(d, s);
    const arrays there = {.a = on_device(d, x.a),
                          .b = on_device(d, x.b),
                          .bias = on_device(d, x.bias),
                          .c = on_device(d, x.c),
                          .other = on_device(d, x.other),
                          .dbias = on_device(d, x.dbias)};
    assert_ok(d->of->memory->store(&d->math, d->memory, d->host, x.bytes, &ticket));
    assert_ok(wait_for(d, ticket)); /* the host's memory is written again */
    call(d->of, &d->math, s, &there);
    fetch_now(d, d->host, d->memory, x.bytes);
    return x;
}

/* ---- against the oracle ---- */

/* The oracle's results of the same call on these numbers in fp32. */
typedef struct {
    float c[MOST], other[MOST], dbias[MOST];
} oracle;

static void widen(zero_type type, int64_t n, const void *x, float *wide)
{
    for (int64_t i = 0; i < n; i++)
        wide[i] = type == ZERO_BF16 ? zero_from_bf16(((const uint16_t *)x)[i])
                                    : zero_from_fp16(((const uint16_t *)x)[i]);
}

static void ask_oracle(const shape *s, const arrays *x, oracle *want)
{
    const zero_math host = {.poll = NULL};
    shape wide = *s;
    arrays y = *x;
    wide.rows = ZERO_FP32;
    y.c = (char *)want->c, y.other = (char *)want->other, y.dbias = want->dbias;
    widen(s->rows, s->m * s->n, x->other, want->other);
    memcpy(want->dbias, x->dbias, (size_t)s->n * sizeof(float));
    zero_gemm g = product_of(s, &y);
    const zero_bias b = bias_of(&wide, &y);
    const zero_bias_grad d = gradient_of(&wide, &y);
    const zero_branch end = branch_of(&wide, &y);
    g.c_type = ZERO_FP32;
    zero_backend_naive.gemm(&host, &g);
    if (s->end == ADD_BIAS) zero_backend_naive.add_bias(&host, &b);
    if (s->end == ADD_BRANCH) zero_backend_naive.add_branch(&host, &end);
    if (s->end == BIAS_GELU) zero_backend_naive.bias_gelu(&host, &b);
    if (s->end == BACKWARD) zero_backend_naive.bias_gelu_backward(&host, &d);
}

static void assert_rounded(zero_type type, int64_t n, const char *got, const float *want)
{
    const uint16_t *x = (const uint16_t *)got;
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(x[i],
                         type == ZERO_BF16 ? zero_to_bf16(want[i]) : zero_to_fp16(want[i]));
}

/* GELU by another tanh, and one rounding. */
static void assert_near(zero_type type, int64_t n, const char *got, const float *want)
{
    static float x[MOST];
    widen(type, n, got, x);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i] - want[i]) <= fabsf(want[i]) / 128.0f + 1e-3f))
            fail_msg("number %d is %g, not %g", (int)i, (double)x[i], (double)want[i]);
}

/* dbias is the sum of c's rows as they are stored. */
static void assert_sums(const shape *s, const arrays *x, const float *before)
{
    static float c[MOST];
    widen(s->rows, s->m * s->n, x->c, c);
    for (int64_t j = 0; j < s->n; j++) {
        double sum = (double)before[j];
        for (int64_t i = 0; i < s->m; i++) sum += (double)c[i * s->n + j];
        assert_true(fabs((double)x->dbias[j] - sum) <= 1e-5 * (fabs(sum) + 100.0));
    }
}

static void check_oracle(device *d, const shape *s)
{
    static oracle want;
    static float before[MOST];
    const arrays x = make(d, s);
    memcpy(before, x.dbias, (size_t)s->n * sizeof *before);
    ask_oracle(s, &x, &want);
    const arrays got = run(d, s, call_fused);
    const int64_t n = s->m * s->n;
    if (s->end != BACKWARD) assert_rounded(s->rows, n, got.c, want.c);
    if (s->end == BIAS_GELU) assert_near(s->rows, n, got.other, want.other);
    if (s->end != BACKWARD) return;
    assert_near(s->rows, n, got.c, want.c);
    assert_sums(s, &got, before);
}

static zero_cuda *inside(device *d)
{
    return (zero_cuda *)d->math.state[0];
}

static shape shape_of(ending end, zero_type type, int64_t m, int64_t n, int64_t k)
{
    return (shape){
        .end = end, .factors = type, .bias = type, .rows = type, .m = m, .n = n, .k = k};
}

TEST(results_are_the_oracles_rounded_once)
{
    device d;
    open_device(&d);
    for (int i = 0; i < 2 * ENDINGS; i++) {
        const zero_type type = i % 2 ? ZERO_FP16 : ZERO_BF16;
        shape s = shape_of((ending)(i / 2), type, 40, 64, 64 + 8 * i);
        check_oracle(&d, &s);
        s.m = 1, s.n = 8, s.gap[i % 2] = 8, s.shift[i % ARRAYS] = 8;
        check_oracle(&d, &s);
    }
    assert_ok(d.of->sync(&d.math));
    assert_int_equal(inside(&d)->n_choices, 4 * ENDINGS);
    close_device(&d);
}

/* ---- by two calls ---- */

static bool are_same(device *d, const shape *s)
{
    static char first[HOST_BYTES];
    arrays x = run(d, s, call_both);
    memcpy(first, d->host, x.bytes);
    x = run(d, s, call_fused);
    return memcmp(first, d->host, x.bytes) == 0;
}

/* Other types, few rows, the exact GELU, and rows that do not begin at multiples of 16 bytes. */
TEST(other_products_are_two_calls)
{
    device d;
    open_device(&d);
    for (int end = 0; end < ENDINGS; end++) {
        const shape s = shape_of((ending)end, ZERO_BF16, 24, 32, 40 + 8 * end);
        shape others[] = {s, s, s, s, s, s, s, s, s, s, s, s, s, s};
        others[0].rows = ZERO_FP32;
        others[1] = shape_of((ending)end, ZERO_FP32, 24, 32, 40);
        others[2].gap[IN_A] = 4;
        others[3].n = 36;
        others[4].k = 36;
        others[5].gap[IN_B] = 4;
        others[6].few_rows = true;
        for (int i = 0; i < ARRAYS; i++) {
            const bool is_used = i != (end == ADD_BIAS   ? IN_OTHER
                                       : end == BACKWARD ? IN_BIAS
                                                         : ARRAYS);
            others[7 + i].shift[is_used ? i : IN_A] = 4;
        }
        others[12].dropout = 0.5f;
        if (end != ADD_BRANCH) others[12].k = 44;
        others[13].is_exact = true;
        if (end == ADD_BIAS || end == ADD_BRANCH) others[13].k = 44;
        for (size_t i = 0; i < COUNT(others); i++) assert_true(are_same(&d, &others[i]));
        const int64_t so_far = inside(&d)->n_choices;
        assert_false(are_same(&d, &s)); /* this one is rounded once */
        assert_int_equal(inside(&d)->n_choices, so_far + 1);
        inside(&d)->choices[so_far].is_supported = false;
        assert_true(are_same(&d, &s));
    }
    assert_ok(d.of->sync(&d.math));
    close_device(&d);
}

/* Without k there is nothing to add; without rows nothing at all. */
TEST(empty_products_are_two_calls)
{
    device d;
    open_device(&d);
    shape s = shape_of(BIAS_GELU, ZERO_BF16, 8, 16, 0);
    assert_true(are_same(&d, &s));
    s.m = 0, s.k = 8;
    assert_true(are_same(&d, &s));
    assert_int_equal(inside(&d)->n_choices, 0);
    close_device(&d);
}

/* ---- the choices ---- */

/* The choice is for the least alignment, so it is the same wherever arrays lie. */
TEST(a_shape_is_asked_for_once)
{
    device d;
    open_device(&d);
    shape s = shape_of(BIAS_GELU, ZERO_FP16, 16, 24, 8);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < ARRAYS; j++) s.shift[j] = 8 * i * (i + j);
        check_oracle(&d, &s);
        assert_int_equal(inside(&d)->n_choices, 1);
    }
    s.gap[IN_A] = 16; /* each of these is another shape */
    check_oracle(&d, &s);
    s.k = 16, s.gap[IN_A] = 8;
    check_oracle(&d, &s);
    s.gap[IN_B] = 8;
    check_oracle(&d, &s);
    s.factors = s.bias = s.rows = ZERO_BF16;
    check_oracle(&d, &s);
    s.end = ADD_BIAS;
    check_oracle(&d, &s);
    assert_int_equal(inside(&d)->n_choices, 6);
    close_device(&d);
}

TEST(new_shapes_take_the_place_of_old_ones)
{
    device d;
    open_device(&d);
    shape s = shape_of(BIAS_GELU, ZERO_FP16, 16, 24, 8);
    for (s.m = 1; s.m <= ZERO_CUDA_CHOICES; s.m++) check_oracle(&d, &s);
    assert_int_equal(inside(&d)->n_choices, ZERO_CUDA_CHOICES);
    s.m = 16; /* one of them */
    check_oracle(&d, &s);
    assert_int_equal(inside(&d)->n_choices, ZERO_CUDA_CHOICES);
    s.n = 32; /* takes the place of the first */
    check_oracle(&d, &s);
    s.m = 1, s.n = 24;
    check_oracle(&d, &s);
    assert_int_equal(inside(&d)->n_choices, ZERO_CUDA_CHOICES + 2);
    check_oracle(&d, &s);
    assert_int_equal(inside(&d)->n_choices, ZERO_CUDA_CHOICES + 2);
    assert_ok(d.of->sync(&d.math));
    close_device(&d);
}

static void failures_stay(void **state)
{
    (void)state;
    const char *words = "gemm with an epilogue failed";
    for (int end = 0; end < ENDINGS; end++) {
        device d;
        open_device(&d);
        const shape s = shape_of((ending)end, ZERO_BF16, 8, 8, 8);
        const arrays x = make(&d, &s); /* the host's */
        call_fused(d.of, &d.math, &s, &x);
        assert_fails(d.of->sync(&d.math), ZERO_ERR_INTERNAL, words);
        call_fused(d.of, &d.math, &s, &x);
        assert_fails(d.of->sync(&d.math), ZERO_ERR_INTERNAL, words);
        close_device(&d);
    }
}

int main(void)
{
    const struct CMUnitTest emulated[] = {cmocka_unit_test(failures_stay)};
    const int failed = run_here(NULL, NULL);
    if (getenv("ZERO_TEST_DEVICE")) return failed; /* a GPU would not survive it */
    return failed + cmocka_run_group_tests_name("failures", emulated, NULL, NULL);
}
