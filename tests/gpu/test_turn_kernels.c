/* Kernels of blocks that are not GPT-2's, against the oracle: turning, SwiGLU, norms without a mean,
 * caches whose heads share keys; and what may be missing in calls. Rows of 16 bits have the bits of the
 * widened call, rounded once. */
#include "gpu/kernels_test.h"

static const zero_backend *const naive = &zero_backend_naive;
static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

/* An array of a call: as it is given, and where a kernel and the oracle have it. */
typedef struct {
    zero_type type;
    int64_t n;
    void *given, *device, *host;
} array;

static array make(test_pool *pool, zero_type type, int64_t n)
{
    array x = {type, n, test_numbers(pool, type, n), NULL, NULL};
    x.host = test_bytes(pool, test_type_bytes(type, n));
    memcpy(x.host, x.given, (size_t)test_type_bytes(type, n));
    return x;
}

static void place(test_gpu *g, array *x)
{
    x->device = test_gpu_out(g, x->given, test_type_bytes(x->type, x->n), 0);
}

static float *widened(test_pool *pool, zero_type type, int64_t n, const void *x)
{
    float *wide = test_floats(pool, n);
    zero_convert(type, ZERO_FP32, n, x, wide);
    return wide;
}

/* Its result, near the oracle's, as floats. */
static float *check(test_pool *pool, const test_gpu *g, const array *x)
{
    static const double tolerance[] = {3e-6, 1.0 / 128, 1.0 / 1024};
    float *got = widened(pool, x->type, x->n, test_gpu_result(g, x->device));
    assert_true(test_error(x->n, got, widened(pool, x->type, x->n, x->host)) <
                tolerance[x->type == ZERO_BF16   ? 1
                          : x->type == ZERO_FP16 ? 2
                                                 : 0]);
    return got;
}

/* ---- turning ---- */

typedef struct {
    int64_t B, T, H, K, D, R;
    bool has_gains, is_in_place;
} shape;

typedef struct {
    array x, y, d, gain, rstd, sums;
    zero_turn t;
} problem;

static problem make_problem(test_pool *pool, const shape *s, zero_type type)
{
    const int64_t rows = s->B * s->T, n = rows * (s->H + s->K) * s->D;
    problem p = {.x = make(pool, type, n), .d = make(pool, type, n)};
    p.y = make(pool, type, n), p.gain = make(pool, type, 2 * s->D);
    p.rstd = make(pool, ZERO_FP32, rows * (s->H + s->K));
    p.sums = make(pool, ZERO_FP32, 2 * s->D);
    p.t = (zero_turn){.B = s->B, .T = s->T, .H = s->H, .K = s->K, .D = s->D, .R = s->R};
    p.t.type = p.t.rows_type = type, p.t.eps = 1e-5f;
    p.t.slices = 1, p.t.accumulate = s->B > 1;
    for (int64_t i = 0; i < s->R / 2; i++) p.t.frequency[i] = 1.0f / (float)(1 + 3 * i);
    return p;
}

static zero_turn call_of(const problem *p, const shape *s, bool on_device)
{
    zero_turn t = p->t;
    const int64_t row = (t.H + t.K) * t.D, k = t.H * t.D;
    void *x = on_device ? p->x.device : p->x.host, *y = on_device ? p->y.device : p->y.host;
    void *d = on_device ? p->d.device : p->d.host;
    void *gain = on_device ? p->gain.device : p->gain.host;
    if (s->is_in_place) y = x;
    t.q = zero_heads_of(t.rows_type, x, 0, row, t.D);
    t.k = zero_heads_of(t.rows_type, x, k, row, t.D);
    t.to_q = zero_heads_of(t.rows_type, y, 0, row, t.D);
    t.to_k = zero_heads_of(t.rows_type, y, k, row, t.D);
    t.dq = zero_heads_of(t.rows_type, d, 0, row, t.D);
    t.dk = zero_heads_of(t.rows_type, d, k, row, t.D);
    t.rstd = on_device ? p->rstd.device : p->rstd.host;
    t.sums = on_device ? p->sums.device : p->sums.host;
    if (s->has_gains) t.gain_q = gain, t.gain_k = zero_type_at(t.type, gain, t.D);
    return t;
}

static void check_turn(test_pool *pool, const shape *s, zero_type type, const int64_t *past)
{
    zero_math math = test_opened(naive);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    problem p = make_problem(pool, s, type);
    array *const all[] = {&p.x, &p.y, &p.d, &p.gain, &p.rstd, &p.sums};
    for (size_t i = 0; i < COUNT(all); i++) place(&g, all[i]);
    const zero_cuda_room room = test_gpu_room(&g, 65536);
    p.t.past = past;
    const zero_turn on = call_of(&p, s, true), by = call_of(&p, s, false);
    while (test_gpu_next(&g)) {
        zero_cuda_turn(g.stream, &on);
        zero_cuda_turn_backward(g.stream, &on, room);
    }
    naive->turn(&math, &by);
    naive->turn_backward(&math, &by);
    check(pool, &g, s->is_in_place ? &p.x : &p.y);
    check(pool, &g, &p.d);
    if (s->has_gains) check(pool, &g, &p.rstd), check(pool, &g, &p.sums);
}

TEST(turning_agrees_with_the_oracle)
{
    static const int64_t past[] = {0, 700, 131000};
    static const shape shapes[] = {
        {1, 1, 1, 1, 2, 2, true, false},     {2, 9, 4, 2, 6, 4, true, false},
        {1, 37, 6, 1, 64, 64, false, true},  {1, 5, 3, 3, 256, 256, true, false},
        {2, 40, 2, 1, 80, 20, false, true},  {1, 130, 8, 2, 33, 10, true, false},
        {1, 2, 1, 1, 300, 256, true, false},
    };
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t t = 0; t < COUNT(types); t++) {
            void *pool = NULL;
            assert_int_equal(test_pool_make(&pool), 0);
            check_turn(pool, &shapes[s], types[t], NULL);
            check_turn(pool, &(shape){3, 1, 4, 2, 32, 32, s % 2, !(s % 2)}, types[t], past);
            test_pool_free(&pool);
        }
}

/* ---- SwiGLU, and rows of 16 bits ---- */

/* Results on rows of a type, as floats: y, then d. */
static float *gated(test_pool *pool, int64_t rows, int64_t F, zero_type type, const void *x,
                    const void *d)
{
    zero_math math = test_opened(naive);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    array in = make(pool, type, 2 * rows * F), slope = in, out = make(pool, type, rows * F);
    in.given = in.host = (void *)x;
    slope.given = (void *)d;
    memcpy(slope.host, d, (size_t)test_type_bytes(type, slope.n));
    place(&g, &in), place(&g, &slope), place(&g, &out);
    const zero_swiglu on = {rows, F, type, in.device, out.device, slope.device};
    const zero_swiglu by = {rows, F, type, in.host, out.host, slope.host};
    while (test_gpu_next(&g)) {
        zero_cuda_swiglu(g.stream, &on);
        zero_cuda_swiglu_backward(g.stream, &on);
    }
    naive->swiglu(&math, &by);
    naive->swiglu_backward(&math, &by);
    float *both = test_floats(pool, 3 * rows * F);
    memcpy(both, check(pool, &g, &out), (size_t)(4 * rows * F));
    memcpy(both + rows * F, check(pool, &g, &slope), (size_t)(8 * rows * F));
    return both;
}

TEST(swiglu_agrees_and_rounds_once)
{
    static const int64_t shapes[][2] = {{1, 1}, {3, 7}, {5, 64}, {2, 1032}, {70, 12}};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t t = 0; t < COUNT(types); t++) {
            const zero_type type = types[t];
            const int64_t rows = shapes[s][0], F = shapes[s][1], n = 2 * rows * F;
            void *x = test_numbers(*state, type, n), *d = test_numbers(*state, type, n);
            const float *got = gated(*state, rows, F, type, x, d);
            float *wide = gated(*state, rows, F, ZERO_FP32, widened(*state, type, n, x),
                                widened(*state, type, n, d));
            void *rounded = test_bytes(*state, test_type_bytes(type, 3 * rows * F));
            zero_convert(ZERO_FP32, type, 3 * rows * F, wide, rounded);
            zero_convert(type, ZERO_FP32, 3 * rows * F, rounded, wide);
            assert_same(3 * rows * F, got, wide);
        }
}

/* ---- what may be missing ---- */

TEST(norms_need_no_mean_and_no_bias)
{
    static const int64_t shapes[][2] = {{1, 1}, {9, 12}, {5, 768}, {130, 37}, {2, 1344}};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t t = 0; t < COUNT(types); t++) {
            const zero_type type = types[t];
            const int64_t rows = shapes[s][0], C = shapes[s][1], n = rows * C;
            zero_math math = test_opened(naive);
            test_gpu g = test_gpu_begin(test_gpu_shared);
            array x = make(*state, type, n), gain = make(*state, type, C);
            array y = make(*state, type, n), dx = make(*state, type, n);
            array rstd = make(*state, ZERO_FP32, rows), dgain = make(*state, ZERO_FP32, C);
            array *const all[] = {&x, &gain, &y, &dx, &rstd, &dgain};
            for (size_t i = 0; i < COUNT(all); i++) place(&g, all[i]);
            const zero_cuda_room room = test_gpu_room(&g, 65536);
            zero_layernorm_args on = {.rows = rows, .C = C, .type = type, .eps = 1e-6f};
            on.rows_type = type;
            zero_layernorm_args by = on;
            on.x = x.device, on.gain = gain.device, on.y = y.device, on.rstd = rstd.device;
            by.x = x.host, by.gain = gain.host, by.y = y.host, by.rstd = rstd.host;
            zero_layernorm_grad_args back = {.rows = rows, .C = C, .type = type};
            back.rows_type = type, back.accumulate = s % 2;
            zero_layernorm_grad_args of = back;
            back.x = back.dy = x.device, back.gain = gain.device, back.rstd = rstd.device;
            back.dx = dx.device, back.dgain = dgain.device;
            of.x = of.dy = x.host, of.gain = gain.host, of.rstd = rstd.host;
            of.dx = dx.host, of.dgain = dgain.host;
            while (test_gpu_next(&g)) {
                zero_cuda_layernorm(g.stream, &on);
                zero_cuda_layernorm_backward(g.stream, &back, room);
            }
            naive->layernorm(&math, &by);
            naive->layernorm_backward(&math, &of);
            for (size_t i = 2; i < COUNT(all); i++) check(*state, &g, all[i]);
        }
}

TEST(branches_need_no_bias_and_words_no_positions)
{
    enum { B = 2, T = 9, C = 40, V = 7, N = B * T * C };
    for (size_t t = 0; t < COUNT(types); t++) {
        const zero_type type = types[t];
        const int32_t *tokens = test_tokens(*state, B * T, V);
        zero_math math = test_opened(&zero_backend_cpu);
        test_gpu g = test_gpu_begin(test_gpu_shared);
        array x = make(*state, type, N), in = make(*state, type, N);
        array out = make(*state, type, N), words = make(*state, type, N);
        array wte = make(*state, type, V * C), dwte = make(*state, ZERO_FP32, V * C);
        array *const all[] = {&x, &in, &wte, &out, &words, &dwte};
        for (size_t i = 0; i < COUNT(all); i++) place(&g, all[i]);
        zero_branch b = {.dropout = {{.purpose = ZERO_RNG_TEST}, 0.3f}, .B = B, .T = T};
        b.cols = C, b.type = b.rows_type = type;
        zero_embedding e = {.B = B, .T = T, .C = C, .type = type, .rows_type = type};
        zero_embedding_grad d = {.B = B, .T = T, .C = C, .rows_type = type};
        zero_branch on_b = b;
        zero_embedding on_e = e;
        zero_embedding_grad on_d = d;
        on_b.residual = x.device, on_b.in = in.device, on_b.out = out.device;
        on_e.tokens = on_d.tokens = (const int32_t *)test_gpu_in(&g, tokens, 4 * B * T, 0);
        on_e.wte = wte.device, on_e.out = words.device;
        on_d.dout = x.device, on_d.dwte = dwte.device;
        while (test_gpu_next(&g)) {
            zero_cuda_add_branch(g.stream, &on_b);
            zero_cuda_embedding(g.stream, &on_e);
            zero_cuda_embedding_backward(g.stream, &on_d);
        }
        b.residual = x.host, b.in = in.host, b.out = out.host;
        e.tokens = d.tokens = tokens, e.wte = wte.host, e.out = words.host;
        d.dout = x.host, d.dwte = dwte.host;
        zero_backend_cpu.add_branch(&math, &b);
        zero_backend_cpu.embedding(&math, &e);
        zero_backend_cpu.embedding_backward(&math, &d);
        for (size_t i = 3; i < COUNT(all); i++)
            assert_memory_equal(test_gpu_result(&g, all[i]->device), all[i]->host,
                                (size_t)test_type_bytes(all[i]->type, all[i]->n));
    }
}

/* ---- shared keys ---- */

TEST(queries_share_kept_keys)
{
    enum { B = 2, H = 6, ROOM = 40 };
    static const int64_t past[B] = {37, 3}, sizes[] = {24, 7};
    for (size_t i = 0; i < COUNT(sizes) * COUNT(types) * H; i++) {
        const int64_t D = sizes[i % 2], K = (int64_t)i / 2 % H + 1, row = (H + 2 * K) * D;
        const zero_type type = types[i / 2 / H];
        if (H % K != 0) continue;
        zero_math math = test_opened(naive);
        test_gpu g = test_gpu_begin(test_gpu_shared);
        zero_cached on = {.B = B, .T = 1, .H = H, .K = K, .D = D, .room = ROOM};
        on.past = past, on.rows_type = type;
        zero_cached by = on;
        array qkv = make(*state, type, B * row), out = make(*state, type, B * H * D);
        array cache = make(*state, ZERO_FP32, B * zero_cache_floats(type, ROOM, H, K, D));
        for (int64_t b = 0; b < B; b++) { /* numbers of the rows' type */
            const int64_t n = 2 * ROOM * K * D;
            const size_t bytes = (size_t)test_type_bytes(type, n);
            const int64_t at = b * zero_cache_floats(type, ROOM, H, K, D);
            memcpy((float *)cache.given + at, test_numbers(*state, type, n), bytes);
            memcpy((float *)cache.host + at, (float *)cache.given + at, bytes);
        }
        place(&g, &qkv), place(&g, &out), place(&g, &cache);
        test_cached_rows(&on, qkv.device), test_cached_rows(&by, qkv.host);
        on.cache = cache.device, on.out = out.device;
        by.cache = cache.host, by.out = out.host;
        while (test_gpu_next(&g)) {
            zero_cuda_remember(g.stream, &on);
            zero_cuda_recall(g.stream, &on);
        }
        naive->remember(&math, &by);
        naive->recall(&math, &by);
        check(*state, &g, &out);
    }
}
