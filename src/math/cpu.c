/* cpu.c - the cpu backend: cuts the work into pieces and polls between them; the arithmetic
 * is in cpu_kernels.c, cpu_gemm.c and cpu_attention.c. */
#include "math/cpu.h"

#include <assert.h>
#include <string.h>

#include "base/stream.h"
#include "base/tree.h"
#include "base/vector.h"
#include "math/cpu_panel.h"

#define PIECE \
    65536 /* elements between two polls: well below a tile of GEMM; a subtree of tree.h */

#define LARGE (INT64_C(1) << 20) /* elements that no L2 cache holds */

static int64_t piece_len(int64_t n, int64_t at)
{
    return n - at < PIECE ? n - at : PIECE;
}

static int64_t rows_per_piece(int64_t cols)
{
    return cols < PIECE ? PIECE / cols : 1;
}

static zero_status open(zero_math *math)
{
    const zero_cpu_kernels *list[ZERO_CPU_VARIANTS];
    zero_cpu_kernels_list(list);
    math->state = list[0];
    math->fp32_products = zero_packed_fp32();
    math->bf16_products = zero_packed_bf16();
    math->panels = zero_panels_best();
    return ZERO_OK;
}

static zero_status sync(const zero_math *math)
{
    (void)math; /* every call has finished when it returns */
    return ZERO_OK;
}

/* A whole bias or gain as floats: where it is, or in the scratch from `at` on. */
static const float *widened(const zero_math *math, zero_type type, int64_t n, const void *x,
                            int64_t at)
{
    if (type == ZERO_FP32) return x;
    assert(at + n <= zero_math_scratch());
    zero_convert(type, ZERO_FP32, n, x, math->scratch + at);
    return math->scratch + at;
}

static void add_bias(const zero_math *math, int64_t rows, int64_t cols, zero_type type,
                     const void *bias, float *x)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    const float *b = widened(math, type, cols, bias, 0);
    for (int64_t r = 0; r < rows; r++) {
        kernels->add(cols, x + r * cols, b, x + r * cols);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void bias_backward(const zero_math *math, int64_t rows, int64_t cols,
                          const float *dy, bool accumulate, float *dbias)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    if (!accumulate) memset(dbias, 0, (size_t)cols * sizeof *dbias);
    for (int64_t r = 0; r < rows; r++) {
        kernels->add(cols, dbias, dy + r * cols, dbias);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void clear(const zero_math *math, int64_t n, float *x)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        memset(x + at, 0, (size_t)piece_len(n, at) * sizeof *x);
        zero_math_poll(math);
    }
}

/* y[i] = x[i] * mask element first + i, i < n; y may be x. */
static void drop(const zero_math *math, const zero_rng *stream, float p, int64_t first,
                 int64_t n, const float *x, float *y)
{
    float mask[1024];
    const int64_t room = sizeof mask / sizeof mask[0];
    for (int64_t at = 0; at < n; at += room) {
        int64_t len = n - at < room ? n - at : room;
        zero_rng_dropout(stream, p, (uint64_t)(first + at), len, mask);
        zero_cpu_chosen(math)->multiply(len, x + at, mask, y + at);
    }
}

static void dropout(const zero_math *math, const zero_dropout *d, int64_t B, int64_t n,
                    const float *x, float *y)
{
    for (int64_t b = 0; b < B; b++, x += n, y += n) {
        zero_rng stream = d->stream;
        stream.sample += (uint64_t)b;
        for (int64_t at = 0; at < n; at += PIECE) {
            int64_t len = piece_len(n, at);
            if (d->p > 0.0f)
                drop(math, &stream, d->p, at, len, x + at, y + at);
            else
                memmove(y + at, x + at, (size_t)len * sizeof *y);
            zero_math_poll(math);
        }
    }
}

/* One row: added to, masked and added while it is in L1. */
static void add_masked_branch(const zero_math *math, const zero_rng *stream, float p,
                              int64_t first, int64_t cols, const float *bias,
                              const float *around, float *x)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    kernels->add(cols, x, bias, x);
    drop(math, stream, p, first, cols, x, x);
    kernels->add(cols, around, x, x);
}

static void add_branch(const zero_math *math, const zero_dropout *d, int64_t B, int64_t T,
                       int64_t cols, zero_type type, const void *bias, const float *around,
                       float *x)
{
    const float *wide = widened(math, type, cols, bias, 0);
    for (int64_t r = 0; r < B * T; r++, around += cols, x += cols) {
        zero_rng stream = d->stream;
        stream.sample += (uint64_t)(r / T);
        if (d->p > 0.0f)
            add_masked_branch(math, &stream, d->p, r % T * cols, cols, wide, around, x);
        else
            zero_cpu_chosen(math)->add_branch(cols, wide, around, x);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void bias_gelu(const zero_math *math, int64_t rows, int64_t cols, zero_type type,
                      const void *bias, float *x, float *y)
{
    const float *wide = widened(math, type, cols, bias, 0);
    for (int64_t r = 0; r < rows; r++) {
        zero_cpu_chosen(math)->bias_gelu(cols, wide, x + r * cols, y + r * cols);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void bias_gelu_backward(const zero_math *math, int64_t rows, int64_t cols,
                               const float *x, const float *dy, float *dx, bool accumulate,
                               float *dbias)
{
    if (!accumulate) memset(dbias, 0, (size_t)cols * sizeof *dbias);
    for (int64_t r = 0; r < rows; r++) {
        zero_cpu_chosen(math)->bias_gelu_backward(cols, x + r * cols, dy + r * cols,
                                                  dx + r * cols, dbias);
        if ((r + 1) % rows_per_piece(cols) == 0) zero_math_poll(math);
    }
}

static void layernorm(const zero_math *math, int64_t rows, int64_t C, const float *x,
                      zero_type type, const void *gain, const void *bias, float *y,
                      float *mean, float *rstd)
{
    const int64_t step = rows_per_piece(C);
    const float *g = widened(math, type, C, gain, 0), *b = widened(math, type, C, bias, C);
    for (int64_t r = 0; r < rows; r += step) {
        int64_t len = rows - r < step ? rows - r : step;
        zero_cpu_chosen(math)->layernorm(len, C, x + r * C, g, b, y + r * C, mean + r,
                                         rstd + r);
        zero_math_poll(math);
    }
}

static void layernorm_backward(const zero_math *math, int64_t rows, int64_t C,
                               const float *x, zero_type type, const void *gain,
                               const float *mean, const float *rstd, const float *dy,
                               float *dx, bool accumulate, float *dgain, float *dbias)
{
    if (!accumulate) {
        memset(dgain, 0, (size_t)C * sizeof *dgain);
        memset(dbias, 0, (size_t)C * sizeof *dbias);
    }
    const int64_t step = rows_per_piece(C);
    const float *g = widened(math, type, C, gain, 0);
    for (int64_t r = 0; r < rows; r += step) {
        int64_t len = rows - r < step ? rows - r : step;
        zero_cpu_chosen(math)->layernorm_backward(len, C, x + r * C, g, mean + r, rstd + r,
                                                  dy + r * C, dx + r * C, dgain, dbias);
        zero_math_poll(math);
    }
}

/* Element i of a typed array. */
static const void *at(zero_type type, const void *x, int64_t i)
{
    return (const char *)x + zero_type_size(type) * (size_t)i;
}

static void embedding(const zero_math *math, int64_t B, int64_t T, int64_t C,
                      const int32_t *tokens, zero_type type, const void *wte,
                      const void *wpe, float *out)
{
    const zero_vector_kernels *kernels = zero_vector_kernels_best();
    for (int64_t i = 0; i < B * T; i++) {
        zero_vector_sum pair = {
            .type = type, .a = at(type, wte, tokens[i] * C), .b = at(type, wpe, i % T * C)};
        kernels->sum(&pair, C, ZERO_FP32, out + i * C, false);
        if ((i + 1) % rows_per_piece(C) == 0) zero_math_poll(math);
    }
}

static void embedding_backward(const zero_math *math, int64_t B, int64_t T, int64_t C,
                               const int32_t *tokens, const float *dout, float *dwte,
                               float *dwpe)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    for (int64_t i = 0; i < B * T; i++) {
        float *word = dwte + tokens[i] * C, *place = dwpe + i % T * C;
        kernels->add(C, word, dout + i * C, word);
        kernels->add(C, place, dout + i * C, place);
        if ((i + 1) % rows_per_piece(C) == 0) zero_math_poll(math);
    }
}

static void cross_entropy(const zero_math *math, int64_t rows, int64_t V,
                          const int32_t *targets, float dscale, float *logits, float *loss)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    for (int64_t r = 0; r < rows; r++) {
        loss[r] = kernels->cross_entropy(V, targets[r], dscale, logits + r * V);
        if ((r + 1) % rows_per_piece(V) == 0) zero_math_poll(math);
    }
}

static void adamw(const zero_math *math, const zero_adamw *h, int64_t n, zero_type type,
                  const void *grad, float *master, float *m, float *v, void *param)
{
    assert((type == ZERO_FP32) == (param == NULL));
    for (int64_t i = 0; i < n; i += PIECE) {
        void *rounded = param ? (uint16_t *)param + i : NULL;
        zero_cpu_chosen(math)->adamw(h, piece_len(n, i), type, at(type, grad, i),
                                     master + i, m + i, v + i, rounded);
        zero_math_poll(math);
    }
}

/* Walks the upper part of the tree, down to subtrees of one piece. */
static double sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x)
{
    if (n <= PIECE) {
        zero_math_poll(math);
        return zero_tree_sum_typed_squares(type, n, x);
    }
    int64_t left = zero_tree_left(n);
    return sum_squares(math, type, left, x) +
           sum_squares(math, type, n - left, at(type, x, left));
}

/* What caches cannot hold is stored past them: 0.24 ns per element instead of 0.36. */
static bool streams(int64_t n, const void *out)
{
    return n >= LARGE && (uintptr_t)out % 64 == 0;
}

static void round_to(const zero_math *math, zero_type type, int64_t n, const float *in,
                     void *out)
{
    const bool past_caches = type != ZERO_FP32 && streams(n, out);
    for (int64_t i = 0; i < n; i += PIECE) {
        void *to = (char *)out + zero_type_size(type) * (size_t)i;
        zero_vector_sum alone = {.type = ZERO_FP32, .a = in + i, .read_ahead = past_caches};
        if (past_caches)
            zero_vector_kernels_best()->sum(&alone, piece_len(n, i), type, to, true);
        else
            zero_convert(ZERO_FP32, type, piece_len(n, i), in + i, to);
        zero_math_poll(math);
    }
    if (past_caches) zero_stream_fence();
}

static void accumulate(const zero_math *math, zero_type type, int64_t n, const float *sum,
                       const float *leaf, float *out)
{
    for (int64_t i = 0; i < n; i += PIECE) {
        zero_vector_kernels_best()->add_rounded(type, piece_len(n, i), sum ? sum + i : NULL,
                                                leaf + i, out + i);
        zero_math_poll(math);
    }
}

const zero_backend zero_backend_cpu = {
    .name = "cpu",
    .open = open,
    .sync = sync,
    .gemm = zero_cpu_gemm,
    .clear = clear,
    .add_bias = add_bias,
    .bias_backward = bias_backward,
    .add_branch = add_branch,
    .dropout = dropout,
    .bias_gelu = bias_gelu,
    .bias_gelu_backward = bias_gelu_backward,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .attention = zero_cpu_attention,
    .attention_backward = zero_cpu_attention_backward,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .adamw = adamw,
    .sum_squares = sum_squares,
    .round = round_to,
    .accumulate = accumulate,
};
