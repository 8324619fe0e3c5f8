/* Launchers of all operations: near the oracle or with its bits, alike in both orders of
 * threads and wherever arrays lie; on 16 bits with the bits of fp32, rounded once. And what
 * is special. */
#include "gpu/kernels_test.h"
#include "support/calls.h"

/* A part of the largest number wanted, as in test_operations.c: 1.2e-6 is seen. A wrong
 * term is off by 1e-3 or more. A GPU's exp2f alone is off by 2.4e-7. */
#define TOLERANCE 5e-6

#define LARGEST_GPU 90

#define assert_close(n, got, want) \
    assert_close_at(__LINE__, n, (const float *)(got), (const float *)(want))

static const zero_backend *const naive = &zero_backend_naive;

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

static void assert_close_at(int line, int64_t n, const float *got, const float *want)
{
    const double error = test_error(n, got, want);
    if (!(error < TOLERANCE)) fail_msg("line %d: %g of the largest", line, error);
}

/* ---- launchers as a backend ---- */

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
        zero_cuda_##name(test_gpu_shared->stream, a); \
    }
#define LAUNCHED_WITH_ROOM(name, arguments) \
    static void name(const zero_math *math, const arguments *a) \
    { \
        zero_cuda_##name(test_gpu_shared->stream, a, room_of(math)); \
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
    zero_cuda_attention(test_gpu_shared->stream, math->device, a);
}

static void attention_backward(const zero_math *math, const zero_attention *a)
{
    zero_cuda_attention_backward(test_gpu_shared->stream, math->device, a, room_of(math));
}

static void clear(const zero_math *math, int64_t n, float *x)
{
    (void)math;
    zero_cuda_clear(test_gpu_shared->stream, n, x);
}

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y)
{
    (void)math;
    zero_cuda_dropout(test_gpu_shared->stream, d, rows_type, B, n, x, y);
}

static void adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a)
{
    (void)math;
    zero_cuda_adamw(test_gpu_shared->stream, h, a);
}

static void sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                        double *sum)
{
    zero_cuda_sum_squares(test_gpu_shared->stream, type, n, x, room_of(math), sum);
}

static void round_numbers(const zero_math *math, zero_type type, int64_t n, const float *in,
                          void *out)
{
    (void)math;
    zero_cuda_round(test_gpu_shared->stream, type, n, in, out);
}

static void accumulate(const zero_math *math, zero_type type, int64_t n, const float *sum,
                       const float *leaf, float *out)
{
    (void)math;
    zero_cuda_accumulate(test_gpu_shared->stream, type, n, sum, leaf, out);
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
    const test_gpu_memory *m = test_gpu_shared;
    test_set_thread_order(w->turn);
    memcpy(m->before, bytes, n);
    assert_cuda(
        cudaMemcpyAsync(m->device, m->before, n, cudaMemcpyHostToDevice, m->stream));
}

static void save(site *w, char *bytes, size_t n)
{
    const test_gpu_memory *m = test_gpu_shared;
    (void)w;
    assert_cuda(cudaGetLastError());
    assert_cuda(
        cudaMemcpyAsync(m->after[0], m->device, n, cudaMemcpyDeviceToHost, m->stream));
    assert_cuda(cudaStreamSynchronize(m->stream));
    memcpy(bytes, m->after[0], n);
    test_set_thread_order(0);
}

/* The launchers' and the oracle's; `room` is for partial sums. */
typedef struct {
    site oracle, gpu;
} both;

static void open_both(both *b, test_pool *pool, int64_t room)
{
    b->oracle = host_site("naive", naive, pool, test_bytes(pool, HOST_BYTES), 1);
    b->gpu = (site){.name = "gpu", .ops = &launchers, .bytes = TEST_GPU_BYTES, .turns = 2};
    b->gpu.memory = test_gpu_shared->device, b->gpu.room = room;
    b->gpu.is_gpu = true, b->gpu.load = load, b->gpu.save = save;
    b->gpu.math.state[0] = &b->gpu, b->gpu.math.device = LARGEST_GPU;
}

/* As the types of the shape say against the oracle, and by the law of types on its
 * numbers. */
static void check(both *b, const operation *op, const shape *s)
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

/* ---- all operations ---- */

static const char flat[] = "clear adamw round accumulate sum_squares exact_squares";
static const char rows_and_sums[] =
    "add_bias bias_backward bias_gelu bias_gelu_backward bias_exact_gelu "
    "bias_exact_gelu_backward add_branch layernorm layernorm_backward swiglu "
    "swiglu_backward "
    "dropout embedding embedding_backward";
static const char of_heads[] =
    "turn turn_backward attention attention_backward remember recall";
static const char losses[] = "cross_entropy cross_entropy_backward";

/* B, T, C, H, K, V. */
static const struct {
    const char *of;
    int64_t B, T, C, H, K, V;
} cases[] = {
    {rows_and_sums, 1, 1, 1, 1, 1, 1},
    {rows_and_sums, 1, 2, 17, 1, 1, 3},
    {rows_and_sums, 3, 1, 16, 1, 1, 7},
    {rows_and_sums, 1, 7, 257, 1, 1, 40},
    {rows_and_sums, 2, 32, 48, 1, 1, 2},
    {rows_and_sums, 1, 5, 768, 1, 1, 50},
    {rows_and_sums, 3, 3, 4, 1, 1, 1},
    {rows_and_sums, 1, 131, 36, 1, 1, 40},
    {rows_and_sums, 3, 11, 1025, 1, 1, 4},
    {rows_and_sums, 2, 2, 1344, 1, 1, 9},
    {rows_and_sums, 2, 100, 132, 1, 1, 2},
    {"add_bias bias_gelu bias_backward bias_gelu_backward", 1, 1, 0, 1, 1, 1},
    {"bias_backward bias_gelu_backward layernorm_backward", 1, 1025, 64, 1, 1, 1},
    {"bias_backward bias_gelu_backward", 1, 4100, 7, 1, 1, 1},
    {"embedding embedding_backward", 4, 5, 2060, 1, 1, 1},
    {"embedding embedding_backward", 1, 600, 3, 1, 1, 2},
    {"embedding_backward", 1, 2100, 2, 1, 1, 900},
    {of_heads, 1, 1, 2, 1, 1, 1},
    {of_heads, 2, 5, 6, 2, 1, 1},
    {of_heads, 1, 15, 40, 1, 1, 1},
    {of_heads, 1, 17, 34, 2, 2, 1},
    {of_heads, 1, 67, 64, 1, 1, 1},
    {of_heads, 1, 100, 80, 2, 1, 1},
    {of_heads, 1, 67, 128, 1, 1, 1},
    {of_heads, 1, 20, 300, 1, 1, 1},
    {of_heads, 2, 70, 64, 4, 2, 1},
    {of_heads, 3, 15, 15, 3, 3, 1},
    {"turn turn_backward remember recall", 2, 64, 320, 1, 1, 1},
    {"turn turn_backward", 1, 5, 768, 3, 3, 1},
    {losses, 1, 1, 1, 1, 1, 1},
    {losses, 1, 3, 2, 1, 1, 1},
    {losses, 1, 5, 31, 1, 1, 1},
    {losses, 2, 2, 257, 1, 1, 1},
    {losses, 1, 2, 1023, 1, 1, 1},
    {losses, 1, 3, 1024, 1, 1, 1},
    {losses, 1, 2, 1025, 1, 1, 1},
    {losses, 1, 2, 50257, 1, 1, 1},
};

/* 0 .. 34, longer ones, some beside powers of two, up to 4097: denormals, infinities and
 * NaN, too. */
TEST(flat_ranges_have_the_cpus_bits)
{
    for (int i = 0; i < n_operations; i++)
        for (int64_t n = 0; n < 4100;
             n += n < 34 || (n & (n + 1)) == 0 || (n & (n - 1)) == 0 ? 1 : (n + 2) / 4) {
            void *pool;
            both b;
            if (!is_among(flat, operations[i].name)) continue;
            assert_int_equal(test_pool_make(&pool), 0);
            open_both(&b, pool, n % 2 ? 8 : 65536);
            for (size_t t = 0; t < COUNT(types); t++)
                for (int shift = 0; shift < 2; shift++) {
                    shape s = {.B = 1, .T = 1, .C = n, .type = types[t], .shift = shift};
                    s.is_odd = (n + shift) % 3 > 0, s.in_place = n & 1;
                    s.accumulate = n & 2, s.lacks = n % 5 == 0;
                    check(&b, &operations[i], &s);
                }
            test_pool_free(&pool);
        }
}

TEST(all_operations_agree_with_the_oracle_and_round_once)
{
    static const int64_t rooms[] = {16384, 65536, 1 << 20};
    for (size_t k = 0; k < COUNT(cases); k++)
        for (int i = 0; i < n_operations; i++) {
            void *pool;
            both b;
            if (!is_among(cases[k].of, operations[i].name)) continue;
            assert_int_equal(test_pool_make(&pool), 0);
            open_both(&b, pool, rooms[cases[k].C > 2048 ? 1 : k % COUNT(rooms)]);
            for (int variant = 0; variant < 6; variant++) {
                shape s = {.B = cases[k].B, .T = cases[k].T, .C = cases[k].C};
                if (cases[k].of == of_heads && s.T > 60 && variant > 2) continue;
                s.H = cases[k].H, s.K = cases[k].K, s.V = cases[k].V;
                s.in_place = s.accumulate = variant & 1, s.drops = variant / 2 % 2;
                s.lacks = variant % 4 == 3, s.shift = variant % 3 == 1,
                s.is_odd = variant == 5;
                s.numbers = types[variant % 3];
                if (s.numbers == ZERO_FP32) s.type = types[variant / 2];
                if (cases[k].of == of_heads && ((size_t)variant + k) % 2)
                    s.factors = s.numbers;
                check(&b, &operations[i], &s);
            }
            test_pool_free(&pool);
        }
}

/* Parameters lie where their group puts them, and 16-bit ones are widened elsewhere:
 * neither may show in a bit. */
TEST(alignment_shows_in_no_bit)
{
    static const int64_t widths[] = {4, 36, 768, 1344};
    both b;
    open_both(&b, *state, 65536);
    for (int i = 0; i < n_operations; i++)
        for (size_t k = 0; k < COUNT(widths); k++) {
            shape s = {.B = 1, .T = 5, .C = widths[k], .H = 2, .K = 1, .V = 9};
            s.ways = FEW_ROWS;
            call want = make_call(&b.gpu, &operations[i], &s);
            for (s.shift = 1; s.shift < 4; s.shift++) {
                call got = make_call(&b.gpu, &operations[i], &s);
                compare_calls(&got, &want, 0.0);
                drop_call(&got);
            }
            drop_call(&want);
        }
}

/* m, n, k. With many columns k is cut into few, long parts. */
TEST(products_of_few_rows_agree)
{
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 70, 33},   {2, 130, 17},
                                       {8, 96, 400},  {3, 65, 64},   {17, 40, 72},
                                       {1, 64, 1000}, {2, 4200, 400}};
    both b;
    open_both(&b, *state, 65536);
    for (size_t k = 0; k < COUNT(sizes); k++)
        for (int way = 0; way < 6; way++) {
            shape s = {.B = 1, .T = sizes[k][0], .C = sizes[k][1], .V = sizes[k][2]};
            s.ways = FEW_ROWS | (way & 1 ? TURN_B : 0), s.numbers = types[way / 2];
            s.shift = (int)k / 4 % 2;
            if (s.C < 1000 || way < 3) check(&b, operation_named("gemm"), &s);
        }
}

/* ---- what is special ---- */

static void check_gelu_far_from_zero(bool is_exact)
{
    const float one[] = {1, 1, 1, 1}, zeros[4] = {0};
    const float values[] = {0, 0, 1e4f, 1e30f}, slopes[] = {0, 0, 1, 1};
    const float at[] = {-1e30f, -1e4f, 1e4f, 1e30f};
    test_gpu g = test_gpu_begin(test_gpu_shared);
    float *x = out_floats(&g, at, 4, 0), *y = out_floats(&g, NULL, 4, 0);
    const float *bias = in_floats(&g, zeros, 4, 0), *dy = in_floats(&g, one, 4, 0);
    float *dx = out_floats(&g, NULL, 4, 0), *dbias = out_floats(&g, NULL, 4, 0);
    zero_cuda_room room = test_gpu_room(&g, 65536);
    while (test_gpu_next(&g)) {
        zero_cuda_bias_gelu(g.stream, &(zero_bias){.rows = 1,
                                                   .cols = 4,
                                                   .type = ZERO_FP32,
                                                   .bias = bias,
                                                   .x = x,
                                                   .y = y,
                                                   .is_exact = is_exact});
        zero_cuda_bias_gelu_backward(g.stream,
                                     &(zero_bias_grad){.rows = 1,
                                                       .cols = 4,
                                                       .x = x,
                                                       .dy = dy,
                                                       .dx = dx,
                                                       .is_exact = is_exact,
                                                       .dbias = dbias},
                                     room);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(((const float *)test_gpu_result(&g, y))[i] == values[i]);
        assert_true(fabsf(((const float *)test_gpu_result(&g, dx))[i] - slopes[i]) <
                    (is_exact ? 1e-20f : 1e-30f));
    }
}

TEST(gelu_is_right_far_from_zero)
{
    check_gelu_far_from_zero(false);
    check_gelu_far_from_zero(true);
}

/* Between rows, `apart` floats of them, nothing changes but what a gradient of 16 bits
 * leaves of logits. */
static void check_spread_head(test_pool *pool, int64_t rows, int64_t V, int64_t apart,
                              zero_type type)
{
    const int64_t n = rows * apart;
    float *x = test_floats(pool, n), *dense = test_floats(pool, rows * V);
    float *loss = test_floats(pool, rows), *want = test_floats(pool, V);
    const int32_t *targets = test_tokens(pool, rows, V);
    zero_math slow = test_opened(naive);
    for (int64_t i = 0; i < rows * V; i++) dense[i] = x[i / V * apart + i % V];
    test_gpu g = test_gpu_begin(test_gpu_shared);
    zero_cross_entropy e = {rows, V, apart, NULL, 0.5f, type, NULL, NULL};
    e.logits = out_floats(&g, x, n, 0), e.loss = out_floats(&g, NULL, rows, 0);
    e.targets = (const int32_t *)test_gpu_in(&g, targets, 4 * rows, 0);
    while (test_gpu_next(&g)) zero_cuda_cross_entropy(g.stream, &e);
    const float *got = test_gpu_result(&g, e.logits);
    naive->cross_entropy(&slow, &(zero_cross_entropy){.rows = rows,
                                                      .V = V,
                                                      .targets = targets,
                                                      .dscale = 0.5f,
                                                      .logits = dense,
                                                      .loss = loss});
    assert_close(rows, test_gpu_result(&g, e.loss), loss);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t kept = zero_divide_up(V * (int64_t)zero_type_size(type), 4);
        zero_convert(type, ZERO_FP32, V, got + r * apart, want);
        if (type == ZERO_FP32)
            assert_close(V, want, dense + r * V);
        else
            assert_true(test_error(V, want, dense + r * V) < 1.0 / 256);
        assert_same(apart - V, got + r * apart + V, x + r * apart + V);
        if (type != ZERO_FP32 && V > kept)
            assert_same(V - kept, got + r * apart + kept, x + r * apart + kept);
    }
}

/* Rows that begin at multiples of 4 floats, and others; shorter and longer than a turn of a
 * block. */
TEST(rows_of_logits_may_lie_apart)
{
    static const int64_t sizes[][2] = {{1, 4},        {31, 32},     {257, 320},
                                       {257, 259},    {2048, 2048}, {5000, 5056},
                                       {20000, 20032}};
    for (size_t c = 0; c < COUNT(sizes); c++)
        for (int type = ZERO_FP32; type <= ZERO_FP16; type++)
            check_spread_head(*state, 3, sizes[c][0], sizes[c][1], (zero_type)type);
}

static void check_head(test_pool *pool, int64_t rows, int64_t V, float dscale, int shift,
                       const float *logits)
{
    float *x = logits ? test_copy(pool, rows * V, logits) : test_floats(pool, rows * V);
    float *loss = test_floats(pool, rows);
    const int32_t *targets = test_tokens(pool, rows, V);
    zero_math slow = test_opened(naive);
    for (int64_t i = 0; !logits && i < rows * V; i++) x[i] *= 4.0f;
    test_gpu g = test_gpu_begin(test_gpu_shared);
    float *gradient = out_floats(&g, x, rows * V, 4 * shift);
    float *out = out_floats(&g, NULL, rows, 4 * shift);
    const int32_t *target = (const int32_t *)test_gpu_in(&g, targets, 4 * rows, 0);
    const zero_cross_entropy e = {rows, V, 0, target, dscale, ZERO_FP32, gradient, out};
    while (test_gpu_next(&g)) zero_cuda_cross_entropy(g.stream, &e);
    naive->cross_entropy(&slow, &(zero_cross_entropy){.rows = rows,
                                                      .V = V,
                                                      .targets = targets,
                                                      .dscale = dscale,
                                                      .logits = x,
                                                      .loss = loss});
    assert_close(rows, test_gpu_result(&g, out), loss);
    assert_close(rows * V, test_gpu_result(&g, gradient), x);
    if (dscale == 0.0f) assert_same(rows * V, test_gpu_result(&g, gradient), x);
}

/* Huge logits, rows of one value, logits of probability 0, and NaN in every place. */
TEST(odd_logits_agree)
{
    enum { V = 300 };
    float x[6 * V];
    for (int i = 0; i < V; i++) {
        x[i] = 3e38f, x[V + i] = -3e38f;
        x[2 * V + i] = i % 2 ? -INFINITY : (float)i;
        x[3 * V + i] = i < 299 ? -INFINITY : 1.0f;
        x[4 * V + i] = i == 150 ? INFINITY : 0.0f;
        x[5 * V + i] = -INFINITY;
    }
    test_pool *pool = *state;
    float *finite = test_copy(pool, 4 * V, x);
    for (int i = 0; i < 3 * V; i++)
        if (finite[i] == -INFINITY) finite[i] = -1e30f;
    check_head(pool, 3, V, 0.5f, 0, finite);
    check_head(pool, 6, V, 0.5f, 0, x);
    check_head(pool, 6, V, 0.0f, 0, x);
    for (int at = 0; at < V; at += 23) {
        float *nan = test_floats(pool, 2 * V);
        nan[at] = NAN;
        check_head(pool, 2, V, 0.5f, 0, nan);
    }
}

/* More rows, columns, samples or numbers than all blocks take at once. Last:
 * on CPUs without protection keys the emulator protects all memory that was ever used. */
TEST(large_tables_take_several_turns)
{
    static const struct {
        const char *of;
        int64_t B, T, C;
    } large[] = {{"add_bias", 1, 8 * 8192 + 9, 1},
                 {"add_bias", 1, 1, 32 * 8192 + 5},
                 {"layernorm layernorm_backward", 1, 8 * 2048 + 11, 4},
                 {"cross_entropy cross_entropy_backward", 1, 2048 + 5, 3},
                 {"dropout", 2500, 1, 3},
                 {"dropout", 1, 1, 2048 * 2048 + 4100},
                 {"sum_squares", 1, 1, 300001}};
    for (size_t k = 0; k < COUNT(large); k++)
        for (int i = 0; i < n_operations; i++) {
            void *pool;
            both b;
            if (!is_among(large[k].of, operations[i].name)) continue;
            assert_int_equal(test_pool_make(&pool), 0);
            open_both(&b, pool, 65536);
            const shape s = {
                .B = large[k].B, .T = large[k].T, .C = large[k].C, .V = 1, .drops = true};
            check(&b, &operations[i], &s);
            test_pool_free(&pool);
        }
}
