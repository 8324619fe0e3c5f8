/* Kernels on rows of 16 bits: the bits of the same kernel on these numbers widened to fp32, its rows
 * rounded once. Test_kernels*.c and test_attention_kernels.c hold fp32 against the oracle. */
#include "gpu/kernels_test.h"

/* Numbers of 16 bits, and the same as fp32. */
typedef struct {
    int64_t n;
    void *narrow;
    float *wide;
} numbers;

typedef struct {
    zero_type type; /* of the parameters, and of rows of 16 bits */
    int64_t rows, cols;
    int shift; /* of all arrays, in elements */
    bool in_place, accumulate;
    zero_dropout dropout;
    numbers x, y, z;         /* arrays with rows */
    const void *gain, *bias; /* [cols] of `type` */
    const int32_t *tokens;
    const float *of_rows[2], *of_cols[2];
    zero_attention attention;
    int capability;
} problem;

enum { MOST_RESULTS = 4 };

/* One call, on rows of 16 bits or of fp32, and what it wrote. */
typedef struct {
    test_pool *pool;
    zero_type type;
    int shift;
    test_gpu g;
    struct {
        const void *at; /* on the device, then on the host */
        int64_t n;
        bool has_rows;
    } results[MOST_RESULTS];
    int n_results;
} call;

static numbers rows_of(test_pool *pool, zero_type type, int64_t n)
{
    numbers x = {n, test_numbers(pool, type, n), test_floats(pool, n)};
    zero_convert(type, ZERO_FP32, n, x.narrow, x.wide);
    return x;
}

static const void *bytes_of(const call *c, const numbers *x)
{
    return c->type == ZERO_FP32 ? (const void *)x->wide : x->narrow;
}

static int shift_of(const call *c, zero_type type)
{
    return c->shift * (int)test_type_bytes(type, 1);
}

static const void *in_rows(call *c, const numbers *x)
{
    return test_gpu_in(&c->g, bytes_of(c, x), test_type_bytes(c->type, x->n),
                       shift_of(c, c->type));
}

static const void *in_params(call *c, const problem *p, const void *x, int64_t n)
{
    return test_gpu_in(&c->g, x, test_type_bytes(p->type, n), shift_of(c, p->type));
}

static void *keep(call *c, void *at, int64_t n, bool has_rows)
{
    assert_true(c->n_results < MOST_RESULTS);
    c->results[c->n_results].at = at;
    c->results[c->n_results].n = n;
    c->results[c->n_results++].has_rows = has_rows;
    return at;
}

/* Rows that are written; they begin as x, or as ones. */
static void *out_rows(call *c, const numbers *x, int64_t n)
{
    void *at = test_gpu_out(&c->g, x ? bytes_of(c, x) : NULL, test_type_bytes(c->type, n),
                            shift_of(c, c->type));
    return keep(c, at, n, true);
}

static float *out_sums(call *c, const float *x, int64_t n)
{
    return (float *)keep(c, out_floats(&c->g, x, n, 4 * c->shift), n, false);
}

/* Copies the results to the host, as the memory is used again by the next call. */
static void save(call *c)
{
    for (int i = 0; i < c->n_results; i++) {
        const zero_type type = c->results[i].has_rows ? c->type : ZERO_FP32;
        const int64_t bytes = test_type_bytes(type, c->results[i].n);
        void *host = test_bytes(c->pool, bytes);
        if (bytes > 0)
            memcpy(host, test_gpu_result(&c->g, c->results[i].at), (size_t)bytes);
        c->results[i].at = host;
    }
}

typedef void kernel(call *c, const problem *p);

static call make(test_pool *pool, const problem *p, zero_type type, kernel *run)
{
    call c = {.pool = pool, .type = type, .shift = p->shift};
    c.g = test_gpu_begin(test_gpu_shared);
    run(&c, p);
    save(&c);
    return c;
}

/* Runs the kernel on rows of both types and returns the call on rows of 16 bits. */
static call compare(test_pool *pool, const problem *p, kernel *run)
{
    const call narrow = make(pool, p, p->type, run), wide = make(pool, p, ZERO_FP32, run);
    for (int i = 0; i < narrow.n_results; i++) {
        const int64_t n = narrow.results[i].n;
        void *want = test_bytes(pool, 4 * n);
        const zero_type type = narrow.results[i].has_rows ? p->type : ZERO_FP32;
        zero_convert(ZERO_FP32, type, n, wide.results[i].at, want);
        assert_same_typed(type, n, narrow.results[i].at, want);
    }
    return narrow;
}

static numbers result_rows(test_pool *pool, const problem *p, const call *c, int i)
{
    numbers x = rows_of(pool, p->type, c->results[i].n);
    memcpy(x.narrow, c->results[i].at, (size_t)test_type_bytes(p->type, x.n));
    zero_convert(p->type, ZERO_FP32, x.n, x.narrow, x.wide);
    return x;
}

/* ---- pointwise ---- */

static void add_bias(call *c, const problem *p)
{
    zero_bias b = {.rows = p->rows, .cols = p->cols, .type = p->type, .rows_type = c->type};
    b.bias = in_params(c, p, p->bias, p->cols);
    b.x = out_rows(c, &p->x, p->x.n);
    while (test_gpu_next(&c->g)) zero_cuda_add_bias(c->g.stream, &b);
}

static void bias_gelu(call *c, const problem *p)
{
    zero_bias b = {.rows = p->rows, .cols = p->cols, .type = p->type, .rows_type = c->type};
    b.bias = in_params(c, p, p->bias, p->cols);
    b.x = out_rows(c, &p->x, p->x.n);
    b.y = out_rows(c, NULL, p->x.n);
    while (test_gpu_next(&c->g)) zero_cuda_bias_gelu(c->g.stream, &b);
}

static zero_bias_grad bias_grad(call *c, const problem *p)
{
    return (zero_bias_grad){.rows = p->rows,
                            .cols = p->cols,
                            .rows_type = c->type,
                            .accumulate = p->accumulate,
                            .dbias = out_sums(c, p->of_cols[0], p->cols)};
}

static void bias_backward(call *c, const problem *p)
{
    zero_bias_grad b = bias_grad(c, p);
    b.dy = in_rows(c, &p->y);
    zero_cuda_room room = test_gpu_room(&c->g, 65536);
    while (test_gpu_next(&c->g)) zero_cuda_bias_backward(c->g.stream, &b, room);
}

static void gelu_backward(call *c, const problem *p)
{
    zero_bias_grad b = bias_grad(c, p);
    b.dx = out_rows(c, p->in_place ? &p->y : NULL, p->y.n);
    b.dy = p->in_place ? b.dx : in_rows(c, &p->y);
    b.x = in_rows(c, &p->x);
    zero_cuda_room room = test_gpu_room(&c->g, 65536);
    while (test_gpu_next(&c->g)) zero_cuda_bias_gelu_backward(c->g.stream, &b, room);
}

/* GELU is of x as it is stored, and the bias' gradient of dx: each is the fp32 kernel of that. */
static void check_biases(test_pool *pool, problem p)
{
    uint16_t *nothing = (uint16_t *)test_bytes(pool, 2 * p.cols);
    call x = compare(pool, &p, add_bias), y = make(pool, &p, p.type, bias_gelu);
    assert_same_typed(p.type, p.x.n, y.results[0].at, x.results[0].at);
    compare(pool, &p, bias_backward);
    call dx = make(pool, &p, p.type, gelu_backward);
    call wide = make(pool, &p, ZERO_FP32, gelu_backward);
    void *want = test_bytes(pool, 2 * p.x.n);
    zero_convert(ZERO_FP32, p.type, p.x.n, wide.results[1].at, want);
    assert_same_typed(p.type, p.x.n, dx.results[1].at, want);

    for (int64_t i = 0; i < p.cols; i++) nothing[i] = 0x8000; /* -0: x + -0 is x */
    p.bias = nothing;
    p.x = result_rows(pool, &p, &x, 0);
    call again = compare(pool, &p, bias_gelu);
    assert_same_typed(p.type, p.x.n, y.results[1].at, again.results[1].at);
    p.y = result_rows(pool, &p, &dx, 1);
    call sums = make(pool, &p, p.type, bias_backward);
    assert_same_typed(ZERO_FP32, p.cols, dx.results[0].at, sums.results[0].at);
}

/* ---- dropout and branches ---- */

static void dropout(call *c, const problem *p)
{
    void *y = out_rows(c, p->in_place ? &p->x : NULL, p->x.n);
    const void *x = p->in_place ? y : in_rows(c, &p->x);
    while (test_gpu_next(&c->g))
        zero_cuda_dropout(c->g.stream, &p->dropout, c->type, p->rows, p->cols, x, y);
}

static void add_branch(call *c, const problem *p)
{
    zero_branch b = {.dropout = p->dropout,
                     .B = 1,
                     .T = p->rows,
                     .cols = p->cols,
                     .type = p->type,
                     .rows_type = c->type};
    b.out = out_rows(c, p->in_place ? &p->x : NULL, p->x.n);
    b.in = p->in_place ? b.out : in_rows(c, &p->x);
    b.residual = in_rows(c, &p->y);
    b.bias = in_params(c, p, p->bias, p->cols);
    while (test_gpu_next(&c->g)) zero_cuda_add_branch(c->g.stream, &b);
}

/* ---- layer norm ---- */

static void layernorm(call *c, const problem *p)
{
    zero_layernorm_args n = {.eps = ZERO_LAYERNORM_EPS,
                             .rows = p->rows,
                             .C = p->cols,
                             .type = p->type,
                             .rows_type = c->type};
    n.x = in_rows(c, &p->x);
    n.gain = in_params(c, p, p->gain, p->cols);
    n.bias = in_params(c, p, p->bias, p->cols);
    n.y = out_rows(c, NULL, p->x.n);
    n.mean = out_sums(c, NULL, p->rows), n.rstd = out_sums(c, NULL, p->rows);
    while (test_gpu_next(&c->g)) zero_cuda_layernorm(c->g.stream, &n);
}

static void layernorm_backward(call *c, const problem *p)
{
    zero_layernorm_grad_args n = {.rows = p->rows,
                                  .C = p->cols,
                                  .type = p->type,
                                  .rows_type = c->type,
                                  .accumulate = p->accumulate};
    n.x = in_rows(c, &p->x), n.dy = in_rows(c, &p->y);
    n.gain = in_params(c, p, p->gain, p->cols);
    n.mean = in_floats(&c->g, p->of_rows[0], p->rows, 4 * p->shift);
    n.rstd = in_floats(&c->g, p->of_rows[1], p->rows, 4 * p->shift);
    n.dx = out_rows(c, &p->z, p->z.n);
    n.dgain = out_sums(c, p->of_cols[0], p->cols);
    n.dbias = out_sums(c, p->of_cols[1], p->cols);
    zero_cuda_room room = test_gpu_room(&c->g, 65536);
    while (test_gpu_next(&c->g)) zero_cuda_layernorm_backward(c->g.stream, &n, room);
}

/* ---- embeddings: samples of one third of the rows ---- */

enum { WORDS = 7 };

static int64_t places(const problem *p)
{
    return p->rows % 3 == 0 ? p->rows / 3 : p->rows;
}

static const int32_t *in_tokens(call *c, const problem *p)
{
    return (const int32_t *)test_gpu_in(&c->g, p->tokens, 4 * p->rows, 4 * p->shift);
}

static void embedding(call *c, const problem *p)
{
    zero_embedding e = {.B = p->rows / places(p),
                        .T = places(p),
                        .C = p->cols,
                        .type = p->type,
                        .rows_type = c->type};
    e.tokens = in_tokens(c, p);
    e.wte = in_params(c, p, p->x.narrow, WORDS * p->cols);
    e.wpe = in_params(c, p, p->y.narrow, e.T * p->cols);
    e.out = out_rows(c, NULL, p->rows * p->cols);
    while (test_gpu_next(&c->g)) zero_cuda_embedding(c->g.stream, &e);
}

static void embedding_backward(call *c, const problem *p)
{
    zero_embedding_grad e = {
        .B = p->rows / places(p), .T = places(p), .C = p->cols, .rows_type = c->type};
    e.tokens = in_tokens(c, p);
    e.dout = in_rows(c, &p->y);
    e.dwte = out_sums(c, p->x.wide, WORDS * p->cols);
    e.dwpe = out_sums(c, p->z.wide, e.T * p->cols);
    while (test_gpu_next(&c->g)) zero_cuda_embedding_backward(c->g.stream, &e);
}

/* ---- all of these ---- */

static problem make_problem(test_pool *pool, zero_type type, int64_t rows, int64_t cols)
{
    const int64_t n = rows * cols, of_x = rows > WORDS ? n : WORDS * cols;
    problem p = {.type = type, .rows = rows, .cols = cols};
    p.x = rows_of(pool, type, of_x);
    p.y = rows_of(pool, type, n), p.z = rows_of(pool, type, n);
    p.gain = test_numbers(pool, type, cols), p.bias = test_numbers(pool, type, cols);
    p.tokens = test_tokens(pool, rows, WORDS);
    for (int i = 0; i < 2; i++) {
        p.of_rows[i] = test_floats(pool, rows);
        p.of_cols[i] = test_floats(pool, cols);
    }
    return p;
}

static void check_all(test_pool *pool, problem p, int variant)
{
    p.shift = variant % 2;
    p.in_place = p.accumulate = variant / 2;
    p.dropout = (zero_dropout){
        {.seed = 5, .purpose = ZERO_RNG_TEST, .sample = 2, .tensor = 9, .step = 3},
        variant % 3 ? 0.3f : 0.0f};
    compare(pool, &p, embedding);
    compare(pool, &p, embedding_backward);
    p.x.n = p.rows * p.cols;
    check_biases(pool, p);
    compare(pool, &p, dropout);
    compare(pool, &p, add_branch);
    compare(pool, &p, layernorm);
    compare(pool, &p, layernorm_backward);
}

TEST(rows_of_16_bits_are_widened_and_rounded_once)
{
    static const int64_t shapes[][2] = {{1, 1},    {2, 7},    {3, 8},     {9, 12},
                                        {6, 257},  {5, 768},  {130, 136}, {201, 44},
                                        {2, 1344}, {4, 1028}, {70, 16}};
    (void)state;
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int variant = 0; variant < 8; variant++) {
            void *pool = NULL;
            assert_int_equal(test_pool_make(&pool), 0);
            const zero_type type = variant / 4 ? ZERO_FP16 : ZERO_BF16;
            check_all(pool, make_problem(pool, type, shapes[s][0], shapes[s][1]),
                      variant % 4);
            test_pool_free(&pool);
        }
}

/* Numbers that are too large or too small, ties, infinity and NaN. */
TEST(odd_numbers_are_rounded_as_on_the_cpu)
{
    static const zero_type types[] = {ZERO_BF16, ZERO_FP16};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int shift = 0; shift < 2; shift++) {
            problem p = make_problem(*state, types[t], 24, 40);
            numbers *odd[] = {&p.x, &p.y};
            for (int i = 0; i < 2; i++) {
                odd[i]->narrow = test_odd_numbers(*state, types[t], odd[i]->n);
                zero_convert(types[t], ZERO_FP32, odd[i]->n, odd[i]->narrow, odd[i]->wide);
            }
            p.shift = shift;
            compare(*state, &p, add_bias);
            compare(*state, &p, add_branch);
            compare(*state, &p, embedding);
        }
}

/* ---- attention ---- */

static zero_attention begin_attention(call *c, const problem *p)
{
    zero_attention a = p->attention;
    a.rows_type = c->type;
    zero_attention_rows(&a, in_rows(c, &p->x), NULL);
    return a;
}

static void attention(call *c, const problem *p)
{
    zero_attention a = begin_attention(c, p);
    a.out = out_rows(c, NULL, a.B * a.T * a.H * a.D);
    a.lse = out_sums(c, NULL, a.B * a.H * a.T);
    while (test_gpu_next(&c->g)) zero_cuda_attention(c->g.stream, p->capability, &a);
}

/* y is out, z is dout. */
static void attention_backward(call *c, const problem *p)
{
    zero_attention a = begin_attention(c, p);
    a.out = (void *)in_rows(c, &p->y);
    a.dout = in_rows(c, &p->z);
    a.lse = (float *)in_floats(&c->g, p->of_rows[0], a.B * a.H * a.T, 4 * p->shift);
    zero_attention_rows(&a, a.q.x, out_rows(c, NULL, 3 * p->y.n));
    const zero_cuda_room room = test_gpu_room(&c->g, 4 * a.B * a.H * a.T);
    while (test_gpu_next(&c->g))
        zero_cuda_attention_backward(c->g.stream, p->capability, &a, room);
}

static void check_attention(zero_type type, const int64_t size[4], zero_type factors,
                            int capability, int shift)
{
    void *pool = NULL;
    assert_int_equal(test_pool_make(&pool), 0);
    const int64_t n = size[0] * size[1] * size[2];
    problem p = {.type = type, .capability = capability, .shift = shift};
    p.attention = (zero_attention){.B = size[0],
                                   .T = size[1],
                                   .H = size[3],
                                   .K = size[3],
                                   .D = size[2] / size[3],
                                   .factors = factors};
    p.attention.dropout =
        (zero_dropout){{.seed = 3, .purpose = ZERO_RNG_TEST}, shift ? 0.3f : 0.0f};
    p.x = rows_of(pool, type, 3 * n), p.z = rows_of(pool, type, n);
    const call forward = compare(pool, &p, attention);
    p.y = result_rows(pool, &p, &forward, 0);
    p.of_rows[0] = (const float *)forward.results[1].at;
    compare(pool, &p, attention_backward);
    test_pool_free(&pool);
}

/* B T C H: heads whose channels are loaded eight at once, or one by one; below, at and above whole
 * tiles. */
TEST(attention_of_rows_of_16_bits_is_that_of_fp32)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 1},   {2, 5, 16, 2},   {1, 67, 64, 1},
                                       {2, 33, 80, 2}, {1, 65, 72, 2},  {1, 20, 97, 1},
                                       {1, 66, 96, 1}, {1, 70, 128, 1}, {1, 20, 160, 1}};
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int t = 0; t < 2; t++) {
            const zero_type type = t ? ZERO_FP16 : ZERO_BF16;
            for (int shift = 0; shift < 2; shift++)
                check_attention(type, sizes[i], type, 80, shift);
            check_attention(type, sizes[i], ZERO_FP32, 80, (int)i % 2);
            check_attention(type, sizes[i], type, 60, (int)i % 2);
        }
}
