/* Launchers of activations and their gradients, against the oracle: they round at each
 * addition, where the oracle rounds once. */
#include "gpu/kernels_test.h"

/* A part of the largest number wanted, as in test_math.c: 1.2e-6 is seen. A wrong term is
 * off by 1e-3 or more. */
#define TOLERANCE 5e-6

#define assert_close(n, got, want) \
    assert_close_at(__LINE__, n, (const float *)(got), (const float *)(want))

static const zero_backend *const naive = &zero_backend_naive;

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};
static const int64_t shapes[][2] = {{1, 1},    {1, 17},  {3, 16},   {7, 257},  {64, 48},
                                    {5, 768},  {2, 129}, {9, 4},    {131, 36}, {33, 1025},
                                    {4, 1344}, {1, 0},   {200, 132}};
/* For sums of columns: the least room of one part, and room for all parts. */
static const int64_t rooms[] = {16384, 65536, 1 << 20};

static void assert_close_at(int line, int64_t n, const float *got, const float *want)
{
    const double error = test_error(n, got, want);
    if (!(error < TOLERANCE)) fail_msg("line %d: %g of the largest", line, error);
}

/* ---- biases ---- */

static void check_add_bias(test_pool *pool, zero_type type, int64_t rows, int64_t cols,
                           int shift)
{
    const int64_t n = rows * cols;
    float *x = test_floats(pool, n);
    const void *bias = test_numbers(pool, type, cols);
    zero_math slow = test_opened(naive);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    float *out = out_floats(&g, x, n, 4 * shift);
    const void *more = test_gpu_in(&g, bias, test_type_bytes(type, cols),
                                   shift * (int)test_type_bytes(type, 1));
    while (test_gpu_next(&g))
        zero_cuda_add_bias(
            g.stream,
            &(zero_bias){.rows = rows, .cols = cols, .type = type, .bias = more, .x = out});
    naive->add_bias(
        &slow,
        &(zero_bias){.rows = rows, .cols = cols, .type = type, .bias = bias, .x = x});
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, out), x);
}

static void check_bias_backward(test_pool *pool, int64_t rows, int64_t cols, int shift,
                                bool accumulate, int64_t room_bytes)
{
    const float *dy = test_floats(pool, rows * cols);
    float *dbias = test_floats(pool, cols);
    zero_math slow = test_opened(naive);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const float *in = in_floats(&g, dy, rows * cols, 4 * shift);
    float *out = out_floats(&g, accumulate ? dbias : NULL, cols, 4 * shift);
    zero_cuda_room room = test_gpu_room(&g, room_bytes);
    while (test_gpu_next(&g))
        zero_cuda_bias_backward(g.stream,
                                &(zero_bias_grad){.rows = rows,
                                                  .cols = cols,
                                                  .dy = in,
                                                  .accumulate = accumulate,
                                                  .dbias = out},
                                room);
    naive->bias_backward(&slow, &(zero_bias_grad){.rows = rows,
                                                  .cols = cols,
                                                  .dy = dy,
                                                  .accumulate = accumulate,
                                                  .dbias = dbias});
    assert_close(cols, test_gpu_result(&g, out), dbias);
}

TEST(biases_agree)
{
    for (size_t s = 0; s < COUNT(shapes); s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1];
        for (int shift = 0; shift < 2; shift++)
            for (size_t t = 0; t < COUNT(types); t++)
                check_add_bias(*state, types[t], rows, cols, shift);
        for (size_t r = 0; r < COUNT(rooms); r++)
            check_bias_backward(*state, rows, cols, r == 1, r % 2, rooms[r]);
    }
    check_add_bias(*state, ZERO_FP32, 8 * 8192 + 9, 1,
                   0); /* more than all blocks take at once */
    check_add_bias(*state, ZERO_BF16, 1, 32 * 8192 + 5, 0);
    check_bias_backward(*state, 0, 5, 0, false, 65536);
    check_bias_backward(*state, 1025, 64, 0, true, 65536);
    check_bias_backward(*state, 4100, 7, 0, false, 65536);
    check_bias_backward(*state, 700, 260, 0, false, 65536 + 520);
}

/* ---- GELU ---- */

static void check_gelu(test_pool *pool, zero_type type, int64_t rows, int64_t cols,
                       int shift, bool is_exact)
{
    const int64_t n = rows * cols;
    float *x = test_floats(pool, n), *want = test_floats(pool, n);
    const void *bias = test_numbers(pool, type, cols);
    for (int64_t i = 0; i < n; i += 5) x[i] *= 8.0f;
    zero_math slow = test_opened(naive);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    float *before = out_floats(&g, x, n, 4 * shift),
          *after = out_floats(&g, NULL, n, 4 * shift);
    const void *more = test_gpu_in(&g, bias, test_type_bytes(type, cols),
                                   shift * (int)test_type_bytes(type, 1));
    while (test_gpu_next(&g))
        zero_cuda_bias_gelu(g.stream, &(zero_bias){.rows = rows,
                                                   .cols = cols,
                                                   .type = type,
                                                   .bias = more,
                                                   .x = before,
                                                   .y = after,
                                                   .is_exact = is_exact});
    naive->bias_gelu(&slow, &(zero_bias){.rows = rows,
                                         .cols = cols,
                                         .type = type,
                                         .bias = bias,
                                         .x = x,
                                         .y = want,
                                         .is_exact = is_exact});
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, before), x);
    assert_close(n, test_gpu_result(&g, after), want);
}

static void check_gelu_backward(test_pool *pool, int64_t rows, int64_t cols, int shift,
                                bool accumulate, int64_t room_bytes, bool is_exact)
{
    const int64_t n = rows * cols;
    float *x = test_floats(pool, n), *dy = test_floats(pool, n),
          *dbias = test_floats(pool, cols);
    float *want = test_floats(pool, n);
    for (int64_t i = 0; i < n; i += 5) x[i] *= 8.0f;
    zero_math slow = test_opened(naive);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const float *in = in_floats(&g, x, n, 4 * shift);
    float *dx =
        out_floats(&g, accumulate ? dy : NULL, n, 4 * shift); /* in place, or apart */
    const float *d = accumulate ? dx : in_floats(&g, dy, n, 4 * shift);
    float *out = out_floats(&g, accumulate ? dbias : NULL, cols, 0);
    zero_cuda_room room = test_gpu_room(&g, room_bytes);
    while (test_gpu_next(&g))
        zero_cuda_bias_gelu_backward(g.stream,
                                     &(zero_bias_grad){.rows = rows,
                                                       .cols = cols,
                                                       .x = in,
                                                       .dy = d,
                                                       .dx = dx,
                                                       .is_exact = is_exact,
                                                       .accumulate = accumulate,
                                                       .dbias = out},
                                     room);
    naive->bias_gelu_backward(&slow, &(zero_bias_grad){.rows = rows,
                                                       .cols = cols,
                                                       .x = x,
                                                       .dy = dy,
                                                       .dx = want,
                                                       .is_exact = is_exact,
                                                       .accumulate = accumulate,
                                                       .dbias = dbias});
    assert_close(n, test_gpu_result(&g, dx), want);
    assert_close(cols, test_gpu_result(&g, out), dbias);
}

TEST(gelu_agrees)
{
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int i = 0; i < 4; i++) {
            const int64_t rows = shapes[s][0], cols = shapes[s][1];
            const int shift = i % 2, is_exact = i / 2;
            for (size_t t = 0; t < COUNT(types); t++)
                check_gelu(*state, types[t], rows, cols, shift, is_exact);
            check_gelu_backward(*state, rows, cols, shift, s % 2, rooms[s % COUNT(rooms)],
                                is_exact);
        }
}

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
                    1e-30f);
    }
}

TEST(gelu_is_right_far_from_zero)
{
    check_gelu_far_from_zero(false);
    check_gelu_far_from_zero(true);
}

/* ---- layer norm ---- */

typedef struct {
    float *x, *dy, *dx, *mean, *rstd, *y, *dgain, *dbias;
    const void *gain, *bias;
} norm;

static norm make_norm(test_pool *pool, zero_type type, int64_t rows, int64_t C)
{
    norm m = {test_floats(pool, rows * C),
              test_floats(pool, rows * C),
              test_floats(pool, rows * C),
              test_floats(pool, rows),
              test_floats(pool, rows),
              test_floats(pool, rows * C),
              test_floats(pool, C),
              test_floats(pool, C),
              NULL,
              NULL};
    m.gain = test_numbers(pool, type, C), m.bias = test_numbers(pool, type, C);
    for (int64_t i = 0; i < rows * C; i++) m.x[i] += (float)(i / C % 3);
    return m;
}

/* Calls it on m's numbers, x and gain so many bytes off. */
static zero_layernorm_args run_norm(test_gpu *g, const norm *m, zero_type type,
                                    int64_t rows, int64_t C, int x_shift, int gain_shift)
{
    zero_layernorm_args on = {
        .eps = ZERO_LAYERNORM_EPS, .rows = rows, .C = C, .type = type};
    on.x = in_floats(g, m->x, rows * C, x_shift);
    on.gain = test_gpu_in(g, m->gain, test_type_bytes(type, C), gain_shift);
    on.bias = test_gpu_in(g, m->bias, test_type_bytes(type, C), gain_shift);
    on.y = out_floats(g, NULL, rows * C, x_shift);
    on.mean = out_floats(g, NULL, rows, 4), on.rstd = out_floats(g, NULL, rows, 4);
    while (test_gpu_next(g)) zero_cuda_layernorm(g->stream, &on);
    return on;
}

static void check_norm(test_pool *pool, zero_type type, int64_t rows, int64_t C, int shift)
{
    norm m = make_norm(pool, type, rows, C);
    zero_math slow = test_opened(naive);
    zero_layernorm_args of = {
        .eps = ZERO_LAYERNORM_EPS, .rows = rows, .C = C, .x = m.x, .type = type};
    of.gain = m.gain, of.bias = m.bias, of.y = m.y, of.mean = m.mean, of.rstd = m.rstd;
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const zero_layernorm_args on =
        run_norm(&g, &m, type, rows, C, 4 * shift, shift * (int)test_type_bytes(type, 1));
    naive->layernorm(&slow, &of);
    assert_close(rows * C, test_gpu_result(&g, on.y), m.y);
    assert_close(rows, test_gpu_result(&g, on.mean), m.mean);
    assert_close(rows, test_gpu_result(&g, on.rstd), m.rstd);
}

/* m has mean and rstd. */
static zero_layernorm_grad_args run_norm_backward(test_gpu *g, const norm *m,
                                                  zero_type type, int64_t rows, int64_t C,
                                                  const int shift[2], bool accumulate,
                                                  int64_t room_bytes)
{
    const int64_t n = rows * C;
    zero_layernorm_grad_args on = {.rows = rows, .C = C, .type = type};
    on.accumulate = accumulate;
    on.x = in_floats(g, m->x, n, shift[0]), on.dy = in_floats(g, m->dy, n, shift[0]);
    on.gain = test_gpu_in(g, m->gain, test_type_bytes(type, C), shift[1]);
    on.mean = in_floats(g, m->mean, rows, 0), on.rstd = in_floats(g, m->rstd, rows, 0);
    on.dx = out_floats(g, m->dx, n, shift[0]);
    on.dgain = out_floats(g, accumulate ? m->dgain : NULL, C, 0);
    on.dbias = out_floats(g, accumulate ? m->dbias : NULL, C, 0);
    zero_cuda_room room = test_gpu_room(g, room_bytes);
    while (test_gpu_next(g)) zero_cuda_layernorm_backward(g->stream, &on, room);
    return on;
}

static norm make_normed(test_pool *pool, zero_type type, int64_t rows, int64_t C)
{
    norm m = make_norm(pool, type, rows, C);
    zero_math slow = test_opened(naive);
    zero_layernorm_args of = {
        .eps = ZERO_LAYERNORM_EPS, .rows = rows, .C = C, .x = m.x, .type = type};
    of.gain = m.gain, of.bias = m.bias, of.y = m.y, of.mean = m.mean, of.rstd = m.rstd;
    naive->layernorm(&slow, &of);
    return m;
}

static void check_norm_backward(test_pool *pool, zero_type type, int64_t rows, int64_t C,
                                int shift, bool accumulate, int64_t room_bytes)
{
    const int shifts[] = {4 * shift, shift * (int)test_type_bytes(type, 1)};
    norm m = make_normed(pool, type, rows, C);
    zero_math slow = test_opened(naive);
    zero_layernorm_grad_args want = {.rows = rows, .C = C, .x = m.x, .type = type};
    want.accumulate = accumulate;
    want.gain = m.gain, want.mean = m.mean, want.rstd = m.rstd, want.dy = m.dy;
    want.dx = m.dx, want.dgain = m.dgain, want.dbias = m.dbias;
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const zero_layernorm_grad_args on =
        run_norm_backward(&g, &m, type, rows, C, shifts, accumulate, room_bytes);
    naive->layernorm_backward(&slow, &want);
    assert_close(rows * C, test_gpu_result(&g, on.dx), m.dx);
    assert_close(C, test_gpu_result(&g, on.dgain), m.dgain);
    assert_close(C, test_gpu_result(&g, on.dbias), m.dbias);
}

/* Parameters lie where their group puts them, and 16-bit ones are widened elsewhere: neither
 * may show in a bit. */
TEST(alignment_does_not_show_in_layer_norms)
{
    static const int shifts[][2] = {{0, 0}, {4, 0}, {0, 4}, {8, 8}, {0, 12}};
    static const int64_t widths[] = {4, 36, 768, 1344};
    for (size_t w = 0; w < COUNT(widths); w++) {
        const int64_t C = widths[w], rows = 5, n = rows * C;
        const norm m = make_normed(*state, ZERO_FP32, rows, C);
        float *y = test_floats(*state, n), *dx = test_floats(*state, n);
        float *dgain = test_floats(*state, C);
        for (size_t s = 0; s < COUNT(shifts); s++) {
            test_gpu g = test_gpu_begin(test_gpu_shared);
            const zero_layernorm_args on =
                run_norm(&g, &m, ZERO_FP32, rows, C, shifts[s][0], shifts[s][1]);
            if (s == 0) memcpy(y, test_gpu_result(&g, on.y), (size_t)(4 * n));
            assert_same(n, test_gpu_result(&g, on.y), y);
            test_gpu b = test_gpu_begin(test_gpu_shared);
            const zero_layernorm_grad_args back =
                run_norm_backward(&b, &m, ZERO_FP32, rows, C, shifts[s], false, 65536);
            if (s == 0) memcpy(dx, test_gpu_result(&b, back.dx), (size_t)(4 * n));
            if (s == 0) memcpy(dgain, test_gpu_result(&b, back.dgain), (size_t)(4 * C));
            assert_same(n, test_gpu_result(&b, back.dx), dx);
            assert_same(C, test_gpu_result(&b, back.dgain), dgain);
        }
    }
}

TEST(layer_norms_agree)
{
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t t = 0; t < COUNT(types); t++)
            for (int shift = 0; shift < 2; shift++) {
                const int64_t rows = shapes[s][0], C = shapes[s][1];
                if (C == 0) continue;
                check_norm(*state, types[t], rows, C, shift);
                check_norm_backward(*state, types[t], rows, C, shift, t % 2,
                                    rooms[s % COUNT(rooms)]);
            }
}

/* More rows than all blocks take at once. */
TEST(many_rows_take_several_turns)
{
    check_norm(*state, ZERO_FP32, 8 * 2048 + 11, 4, 0);
    check_norm_backward(*state, ZERO_FP32, 8 * 2048 + 11, 3, 0, false, 65536);
}

/* ---- cross-entropy ---- */

/* Between rows, `apart` floats of them, nothing changes but what a gradient of 16 bits leaves of logits. */
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

/* Rows that begin at multiples of 4 floats, and others; shorter and longer than a turn of a block. */
TEST(rows_of_logits_may_lie_apart)
{
    static const int64_t cases[][2] = {{1, 4},        {31, 32},     {257, 320},
                                       {257, 259},    {2048, 2048}, {5000, 5056},
                                       {20000, 20032}};
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int type = ZERO_FP32; type <= ZERO_FP16; type++)
            check_spread_head(*state, 3, cases[c][0], cases[c][1], (zero_type)type);
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

TEST(cross_entropy_agrees)
{
    static const int64_t cases[][2] = {{1, 1},     {3, 2},    {5, 31},   {4, 257},
                                       {2, 1023},  {3, 1024}, {2, 1025}, {2, 5000},
                                       {1, 16384}, {2, 50257}};
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int k = 0; k < 3; k++)
            check_head(*state, cases[c][0], cases[c][1],
                       k == 1 ? 0.0f : 0.125f * (float)k + 0.5f, k == 2, NULL);
    check_head(*state, 2048 + 5, 3, 0.25f, 0, NULL); /* more rows than blocks at once */
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
