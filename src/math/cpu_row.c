#include "math/cpu_row.h"

/* Elements of 16 bits that are widened at a time. */
#define TILE ZERO_VECTOR_TILE

static int64_t tile_len(int64_t n, int64_t at)
{
    return zero_min(n - at, TILE);
}

int64_t zero_row_piece(int64_t cols)
{
    return cols < ZERO_CPU_PIECE ? ZERO_CPU_PIECE / cols : 1;
}

const float *zero_row_weights(const zero_math *math, zero_type type, int64_t n,
                              const void *x, int64_t at)
{
    if (type == ZERO_FP32 || !x) return x;
    assert(at + n <= zero_math_scratch());
    zero_convert(type, ZERO_FP32, n, x, math->scratch + at);
    return math->scratch + at;
}

/* out = x, or x + more, rounded. */
static void add(zero_type type, int64_t n, const void *x, const float *more, zero_type to,
                void *out)
{
    const zero_vector_sum sum = {.type = type,
                                 .a = x,
                                 .read_ahead = type != ZERO_FP32,
                                 .depth = more != NULL,
                                 .pending = {more}};
    zero_vector_kernels_best()->sum(&sum, n, to, out, false);
}

void zero_row_widen(zero_type type, int64_t n, const void *x, float *out)
{
    add(type, n, x, NULL, ZERO_FP32, out);
}

void zero_row_round(zero_type type, int64_t n, const float *x, void *out)
{
    add(ZERO_FP32, n, x, NULL, type, out);
}

void zero_row_add_bias(const zero_math *math, zero_type type, int64_t n, const float *bias,
                       void *x)
{
    if (type == ZERO_FP32)
        zero_cpu_kernels_of(math)->add(n, x, bias, x);
    else
        add(type, n, x, bias, type, x);
}

void zero_row_sum(const zero_math *math, zero_type type, int64_t n, const void *x,
                  float *sum)
{
    if (type == ZERO_FP32)
        zero_cpu_kernels_of(math)->add(n, sum, x, sum);
    else
        add(type, n, x, sum, ZERO_FP32, sum);
}

void zero_row_swiglu(const zero_math *math, zero_type type, int64_t n, const void *z,
                     const void *u, void *y)
{
    float wide[2][TILE];
    if (type == ZERO_FP32) {
        zero_cpu_kernels_of(math)->swiglu(n, z, u, y);
        return;
    }
    for (int64_t at = 0; at < n; at += TILE) {
        const int64_t len = tile_len(n, at);
        zero_row_widen(type, len, zero_type_at(type, z, at), wide[0]);
        zero_row_widen(type, len, zero_type_at(type, u, at), wide[1]);
        zero_cpu_kernels_of(math)->swiglu(len, wide[0], wide[1], wide[0]);
        zero_row_round(type, len, wide[0], zero_type_to(type, y, at));
    }
}

void zero_row_swiglu_backward(const zero_math *math, zero_type type, int64_t n,
                              const void *z, const void *u, void *d, void *du)
{
    float wide[3][TILE];
    if (type == ZERO_FP32) {
        zero_cpu_kernels_of(math)->swiglu_backward(n, z, u, d, du);
        return;
    }
    for (int64_t at = 0; at < n; at += TILE) {
        const int64_t len = tile_len(n, at);
        zero_row_widen(type, len, zero_type_at(type, z, at), wide[0]);
        zero_row_widen(type, len, zero_type_at(type, u, at), wide[1]);
        zero_row_widen(type, len, zero_type_at(type, d, at), wide[2]);
        zero_cpu_kernels_of(math)->swiglu_backward(len, wide[0], wide[1], wide[2], wide[0]);
        zero_row_round(type, len, wide[2], zero_type_to(type, d, at));
        zero_row_round(type, len, wide[0], zero_type_to(type, du, at));
    }
}

/* ---- dropout ---- */

/* y = x * the masks from element `at` of the row on. */
static void drop(const zero_math *math, const zero_row_mask *mask, int64_t at, int64_t n,
                 const float *x, float *y)
{
    float masks[TILE];
    for (int64_t i = 0; i < n; i += TILE) {
        const int64_t len = tile_len(n, i);
        zero_rng_dropout(&mask->stream, mask->p, (uint64_t)(mask->first + at + i), len,
                         masks);
        zero_cpu_kernels_of(math)->multiply(len, x + i, masks, y + i);
    }
}

void zero_row_drop(const zero_math *math, zero_type type, const zero_row_mask *mask,
                   int64_t n, const void *x, void *y)
{
    float tile[TILE];
    if (mask->p <= 0.0f) {
        memmove(y, x, (size_t)n * zero_type_size(type));
        return;
    }
    if (type == ZERO_FP32) {
        drop(math, mask, 0, n, x, y);
        return;
    }
    for (int64_t at = 0; at < n; at += TILE) {
        const int64_t len = tile_len(n, at);
        zero_row_widen(type, len, zero_type_at(type, x, at), tile);
        drop(math, mask, at, len, tile, tile);
        zero_row_round(type, len, tile, zero_type_to(type, y, at));
    }
}

/* Bias, mask and residual while the row is in L1. */
static void add_wide_branch(const zero_math *math, const zero_row_mask *mask, int64_t n,
                            const float *bias, const float *residual, const float *in,
                            float *out)
{
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    if (mask->p <= 0.0f && bias) {
        kernels->add_branch(n, bias, residual, in, out);
        return;
    }
    if (bias) kernels->add(n, in, bias, out);
    if (mask->p > 0.0f) drop(math, mask, 0, n, bias ? out : in, out);
    kernels->add(n, residual, mask->p > 0.0f ? out : in, out);
}

void zero_row_add_branch(const zero_math *math, zero_type type, const zero_row_mask *mask,
                         int64_t n, const float *bias, const void *residual, const void *in,
                         void *out)
{
    float tile[TILE];
    if (type == ZERO_FP32) {
        add_wide_branch(math, mask, n, bias, residual, in, out);
        return;
    }
    if (mask->p <= 0.0f && bias) {
        zero_cpu_kernels_of(math)->half_add_branch(type, n, bias, residual, in, out);
        return;
    }
    for (int64_t at = 0; at < n; at += TILE) {
        const int64_t len = tile_len(n, at);
        add(type, len, zero_type_at(type, in, at), bias ? bias + at : NULL, ZERO_FP32,
            tile);
        if (mask->p > 0.0f) drop(math, mask, at, len, tile, tile);
        add(type, len, zero_type_at(type, residual, at), tile, type,
            zero_type_to(type, out, at));
    }
}
