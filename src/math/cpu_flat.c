/* cpu_flat.c - the cpu backend's operations on flat ranges: the optimizer's states and gradients.
 * They are taken in pieces, with a poll after each. */
#include "math/cpu_flat.h"

#include <assert.h>
#include <string.h>

#include "base/stream.h"
#include "base/tree.h"
#include "base/type.h"
#include "base/vector.h"
#include "math/cpu_state.h"

#define LARGE (INT64_C(1) << 20) /* elements that no L2 cache holds */

static int64_t piece_len(int64_t n, int64_t at)
{
    return zero_min(n - at, ZERO_CPU_PIECE);
}

void zero_cpu_clear(const zero_math *math, int64_t n, float *x)
{
    for (int64_t at = 0; at < n; at += ZERO_CPU_PIECE) {
        memset(x + at, 0, (size_t)piece_len(n, at) * sizeof *x);
        zero_math_poll(math);
    }
}

void zero_cpu_adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a)
{
    assert((a->type == ZERO_FP32) == (a->param == NULL));
    for (int64_t i = 0; i < a->n; i += ZERO_CPU_PIECE) {
        const zero_adamw_arrays piece = {
            .n = piece_len(a->n, i),
            .type = a->type,
            .grad = zero_type_at(a->type, a->grad, i),
            .master = a->master + i,
            .m = a->m + i,
            .v = a->v + i,
            .param = a->param ? (uint16_t *)a->param + i : NULL,
        };
        zero_cpu_kernels_of(math)->adamw(h, &piece);
        zero_math_poll(math);
    }
}

/* Walks the upper part of the tree, down to subtrees of one piece. */
static double squares(const zero_math *math, zero_type type, int64_t n, const void *x)
{
    if (n <= ZERO_CPU_PIECE) {
        zero_math_poll(math);
        return zero_tree_sum_typed_squares(type, n, x);
    }
    int64_t left = zero_tree_left(n);
    return squares(math, type, left, x) +
           squares(math, type, n - left, zero_type_at(type, x, left));
}

void zero_cpu_sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                          double *sum)
{
    *sum = squares(math, type, n, x);
}

void zero_cpu_exact_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                            zero_exact *sum)
{
    for (int64_t at = 0; at < n; at += ZERO_CPU_PIECE) {
        zero_exact_add_squares(sum, type, piece_len(n, at), zero_type_at(type, x, at));
        zero_math_poll(math);
    }
}

/* Ranges that no cache holds are stored past them: 0.24 ns per element instead of 0.36. */
static bool streams(int64_t n, const void *out)
{
    return n >= LARGE && (uintptr_t)out % 64 == 0;
}

void zero_cpu_round(const zero_math *math, zero_type type, int64_t n, const float *in,
                    void *out)
{
    const bool past_caches = type != ZERO_FP32 && streams(n, out);
    for (int64_t i = 0; i < n; i += ZERO_CPU_PIECE) {
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

void zero_cpu_accumulate(const zero_math *math, zero_type type, int64_t n, const float *sum,
                         const float *leaf, float *out)
{
    for (int64_t i = 0; i < n; i += ZERO_CPU_PIECE) {
        zero_vector_kernels_best()->add_rounded(type, piece_len(n, i), sum ? sum + i : NULL,
                                                leaf + i, out + i);
        zero_math_poll(math);
    }
}
