/* cpu.c - the cpu backend: cuts the work into pieces and polls between them; the arithmetic
 * is in cpu_kernels.c, cpu_gemm.c and cpu_attention.c. */
#include "math/cpu.h"

#include <string.h>

#include "base/tree.h"

#define PIECE \
    65536 /* elements between two polls: well below a tile of GEMM; a subtree of tree.h */

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
    return ZERO_OK;
}

static zero_status sync(const zero_math *math)
{
    (void)math; /* every call has finished when it returns */
    return ZERO_OK;
}

static void add_bias(const zero_math *math, int64_t rows, int64_t cols, const float *bias,
                     float *x)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    for (int64_t r = 0; r < rows; r++) {
        kernels->add(cols, x + r * cols, bias, x + r * cols);
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

static void add(const zero_math *math, int64_t n, const float *a, const float *b,
                float *out)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        zero_cpu_chosen(math)->add(piece_len(n, at), a + at, b + at, out + at);
        zero_math_poll(math);
    }
}

void zero_cpu_drop(const zero_math *math, const zero_rng *stream, float p, int64_t first,
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
                zero_cpu_drop(math, &stream, d->p, at, len, x + at, y + at);
            else
                memmove(y + at, x + at, (size_t)len * sizeof *y);
            zero_math_poll(math);
        }
    }
}

static void gelu(const zero_math *math, int64_t n, const float *x, float *y)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        zero_cpu_chosen(math)->gelu(piece_len(n, at), x + at, y + at);
        zero_math_poll(math);
    }
}

static void gelu_backward(const zero_math *math, int64_t n, const float *x, const float *dy,
                          float *dx)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        zero_cpu_chosen(math)->gelu_backward(piece_len(n, at), x + at, dy + at, dx + at);
        zero_math_poll(math);
    }
}

static void layernorm(const zero_math *math, int64_t rows, int64_t C, const float *x,
                      const float *gain, const float *bias, float *y, float *mean,
                      float *rstd)
{
    const int64_t step = rows_per_piece(C);
    for (int64_t r = 0; r < rows; r += step) {
        int64_t len = rows - r < step ? rows - r : step;
        zero_cpu_chosen(math)->layernorm(len, C, x + r * C, gain, bias, y + r * C, mean + r,
                                         rstd + r);
        zero_math_poll(math);
    }
}

static void layernorm_backward(const zero_math *math, int64_t rows, int64_t C,
                               const float *x, const float *gain, const float *mean,
                               const float *rstd, const float *dy, float *dx,
                               bool accumulate, float *dgain, float *dbias)
{
    if (!accumulate) {
        memset(dgain, 0, (size_t)C * sizeof *dgain);
        memset(dbias, 0, (size_t)C * sizeof *dbias);
    }
    const int64_t step = rows_per_piece(C);
    for (int64_t r = 0; r < rows; r += step) {
        int64_t len = rows - r < step ? rows - r : step;
        zero_cpu_chosen(math)->layernorm_backward(len, C, x + r * C, gain, mean + r,
                                                  rstd + r, dy + r * C, dx + r * C, dgain,
                                                  dbias);
        zero_math_poll(math);
    }
}

static void embedding(const zero_math *math, int64_t B, int64_t T, int64_t C,
                      const int32_t *tokens, const float *wte, const float *wpe, float *out)
{
    const zero_cpu_kernels *kernels = zero_cpu_chosen(math);
    for (int64_t i = 0; i < B * T; i++) {
        kernels->add(C, wte + tokens[i] * C, wpe + i % T * C, out + i * C);
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

static void adamw(const zero_math *math, const zero_adamw *h, int64_t n, const float *grad,
                  float *param, float *m, float *v)
{
    for (int64_t at = 0; at < n; at += PIECE) {
        zero_cpu_chosen(math)->adamw(h, piece_len(n, at), grad + at, param + at, m + at,
                                     v + at);
        zero_math_poll(math);
    }
}

/* Walks the upper part of the tree of base/tree.h, down to subtrees of one piece. */
static double sum_squares(const zero_math *math, int64_t n, const float *x)
{
    if (n <= PIECE) {
        zero_math_poll(math);
        return zero_tree_sum_squares(n, x);
    }
    int64_t left = PIECE;
    while (2 * left < n) left *= 2;
    return sum_squares(math, left, x) + sum_squares(math, n - left, x + left);
}

const zero_backend zero_backend_cpu = {
    .name = "cpu",
    .open = open,
    .sync = sync,
    .gemm = zero_cpu_gemm,
    .clear = clear,
    .add_bias = add_bias,
    .bias_backward = bias_backward,
    .add = add,
    .dropout = dropout,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .attention = zero_cpu_attention,
    .attention_backward = zero_cpu_attention_backward,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .adamw = adamw,
    .sum_squares = sum_squares,
};
