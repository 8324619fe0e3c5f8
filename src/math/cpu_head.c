#include "math/cpu_head.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define LOG2_E 1.4426950408889634

/* Blocks of two panels in bf16, for whose tiles a sum over less is too short; of 48 queries in
 * fp32, which for T 2048 is 3 % faster than 96 and 10 than 192. */
static void choose_products(zero_head *k)
{
    const zero_packed_kernels *bf16 = zero_cpu_bf16_of(k->math);
    const bool in_bf16 = k->a->in_bf16 && bf16 && bf16->multiply_part;
    k->panels = in_bf16 ? NULL : zero_cpu_panels_of(k->math);
    k->packed = in_bf16 ? bf16 : &k->panels->packed;
    k->rows = k->packed->rows;
    k->block = in_bf16 ? 2 * k->rows : 48;
    assert(k->rows <= ZERO_SCORE_ROWS && k->block <= ZERO_HEAD_BLOCK);
    assert(k->block % k->rows == 0);
}

zero_head zero_head_at(const zero_math *math, const zero_attention *a, int64_t b, int64_t h,
                       float **work)
{
    assert(a->C % a->H == 0);
    zero_head k = {.math = math, .a = a, .b = b, .h = h};
    k.kernels = zero_cpu_kernels_of(math);
    choose_products(&k);
    k.size = a->C / a->H;
    k.width = zero_round_up(k.size, k.packed->cols);
    k.stride = zero_head_stride(a->T);
    k.scale = (float)(1.0 / sqrt((double)k.size));
    k.scale_base2 = (float)(LOG2_E / sqrt((double)k.size));
    k.left = zero_head_take(work, ZERO_SCORE_ROWS / 2 * (k.stride + k.width));
    return k;
}

int64_t zero_head_in_qkv(const zero_head *k, int64_t t, zero_head_part part)
{
    return ((k->b * k->a->T + t) * 3 + (int64_t)part) * k->a->C + k->h * k->size;
}

int64_t zero_head_in_out(const zero_head *k, int64_t t)
{
    return (k->b * k->a->T + t) * k->a->C + k->h * k->size;
}

int64_t zero_head_in_lse(const zero_head *k, int64_t t)
{
    return (k->b * k->a->H + k->h) * k->a->T + t;
}

float *zero_head_take(float **work, int64_t n)
{
    const uintptr_t bytes = ZERO_HEAD_LINE * sizeof(float), at = (uintptr_t)*work;
    float *taken = *work + (bytes - at % bytes) % bytes / sizeof(float);
    *work = taken + n;
    return taken;
}

void zero_head_pack_rows(const zero_head *k, const float *x, int64_t stride, int64_t n,
                         void *out)
{
    zero_operand rows = {.data = x, .stride = stride, .along_k = true};
    k->packed->pack_b(&rows, n, k->size, out);
}

void zero_head_pack_channels(const zero_head *k, const float *x, int64_t stride, int64_t n,
                             void *out)
{
    zero_operand channels = {.data = x, .stride = stride};
    k->packed->pack_b(&channels, k->size, n, out);
}

void zero_head_copy(const zero_head *k, const float *x, int64_t stride, int64_t n,
                    float factor, float *out)
{
    for (int64_t r = 0; r < k->rows; r++, x += stride, out += k->size) {
        if (r < n)
            k->kernels->scale(k->size, factor, x, out);
        else
            memset(out, 0, (size_t)k->size * sizeof *out);
    }
}

/* Reads a where it is. Of the last panel perhaps only the left half is needed. */
static void multiply_fp32(const zero_head *k, const zero_left *a, int64_t n, const float *b,
                          int64_t b_k, bool add, float *c, int64_t ldc)
{
    const int64_t cols = k->packed->cols;
    for (int64_t j = 0; j < n; j += cols) {
        const float *panel = b + j * b_k;
        if (2 * (n - j) <= cols)
            k->panels->multiply_left(a->k, a->x, a->row, a->along, panel, add, c + j, ldc);
        else
            k->panels->multiply(a->k, a->x, a->row, a->along, panel, add, c + j, ldc);
    }
}

static void multiply_bf16(const zero_head *k, const zero_left *a, int64_t n,
                          const uint16_t *b, int64_t b_from, int64_t b_k, bool add,
                          float *c, int64_t ldc)
{
    const zero_packed_kernels *packed = k->packed;
    const int64_t depth = zero_round_up(b_k, packed->depth);
    zero_operand left = {.data = a->x, .along_k = a->along == 1};
    left.stride = left.along_k ? a->row : a->along;
    packed->pack_a(&left, k->rows, a->k, k->left);
    for (int64_t j = 0; j < n; j += packed->cols)
        packed->multiply_part(zero_round_up(a->k, packed->depth), k->left, b + j * depth,
                              b_from, depth, add, c + j, ldc);
}

void zero_head_multiply(const zero_head *k, const zero_left *a, int64_t n, const void *b,
                        int64_t b_from, int64_t b_k, bool add, float *c, int64_t ldc)
{
    if (k->panels)
        multiply_fp32(k, a, n, (const float *)b + b_from * k->packed->cols, b_k, add, c,
                      ldc);
    else
        multiply_bf16(k, a, n, b, b_from, b_k, add, c, ldc);
}

void zero_head_scores(const zero_head *k, const float *x, const void *y, int64_t n,
                      float *score)
{
    const zero_left left = {x, k->size, 1, k->size};
    zero_head_multiply(k, &left, n, y, 0, k->size, false, score, k->stride);
}

void zero_head_mix(const zero_head *k, const float *weight, const void *y, int64_t n,
                   float *out)
{
    const zero_left left = {weight, k->stride, 1, n};
    zero_head_multiply(k, &left, k->size, y, 0, k->a->T, false, out, k->width);
}

/* Row i of the mask is elements (h T + i) T ... of the sample's stream. */
void zero_head_drop(const zero_head *k, int64_t i, float *mask, float *row)
{
    const zero_dropout *d = &k->a->dropout;
    zero_rng stream = d->stream;
    stream.sample += (uint64_t)k->b;
    uint64_t first = (uint64_t)((k->h * k->a->T + i) * k->a->T);
    zero_rng_dropout(&stream, d->p, first, i + 1, mask);
    k->kernels->multiply(i + 1, row, mask, row);
}
