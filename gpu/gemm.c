/* gemm.c - products by cuBLAS, which is column-major: our c = op(a) op(b), row by row, is its
 * c' = op(b)' op(a)', so the factors change places and nothing is transposed.
 *
 * Factors that do not have the type of the product are converted into the workspace first. If they do
 * not fit there, the product is cut into pieces, and a product of pieces of k is added to c in fp32.
 * The cut depends on shapes alone, so equal calls have equal bits.
 *
 * cuBLAS rounds its fp32 sums to a c of the factors' type itself. Sums that it cannot round, or that
 * pieces of k add to, are made in the workspace and rounded once.
 *
 * Products of few rows are kernels of our own (few_rows.cu): cuBLAS' bits would depend on m.
 *
 * Aligned rows are not enough for cuBLAS' fastest kernels: a length that runs along memory must be a
 * multiple of 16 bytes, too, or a product of 16 bits takes 4 to 7 times as long (a vocabulary of 50257,
 * on an H200). So the odd end of a long one is a piece of its own.
 *
 *        k                   n piece                       c[m, n] += a[m, k] b[k, n]
 *     m  [ a ]   x   k piece [  b  ]                       per k piece, m piece, n piece
 *      piece                                                                            */
#include "gpu/gemm.h"
#include "gpu/cuda.h"

#include <assert.h>

/* One factor: as it lies in memory, and what is converted of it. */
typedef struct {
    const char *from;
    zero_type type;
    int64_t stride;
    bool is_converted;
    char *room;                 /* for a piece; with is_converted */
    int64_t held_first, held_k; /* the piece in the room; -1: none */
} factor;

/* A piece of a factor as cuBLAS reads it. */
typedef struct {
    const void *at;
    int64_t stride;
} block;

typedef struct {
    const zero_gemm *g;
    zero_type type; /* of both factors of the product */
    factor a, b;
    int64_t m, n, k; /* of a piece */
    int64_t ldc;
    float *sums; /* [m, n] of a piece, in the room; NULL: cuBLAS writes c */
} product;

static size_t size_of(zero_type type)
{
    return type == ZERO_FP32 ? sizeof(float) : sizeof(uint16_t);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the cut ---- */

#define PIECE 64 /* lengths of pieces are multiples of it */

/* How many of `all` fit, each of `each` elements; at least one piece. */
static int64_t fitting(int64_t all, int64_t each, int64_t elements)
{
    int64_t n = elements / each;
    if (n >= all) return all;
    return n > PIECE ? n / PIECE * PIECE : PIECE;
}

#define LONG 1024 /* shorter products are not worth a second call */

/* A length without its odd end, if it runs along memory. */
static int64_t even(const product *p, bool is_along, int64_t all)
{
    if (!is_along || p->type == ZERO_FP32 || all < LONG || all % 8 == 0) return all;
    return all / PIECE * PIECE;
}

/* Factors begin at multiples of ZERO_MEMORY_ALIGN bytes: cuBLAS chooses faster kernels for them. */
static int64_t aligned(int64_t elements)
{
    const int64_t step = ZERO_MEMORY_ALIGN / 2;
    return (elements + step - 1) / step * step;
}

/* Divides the room between the factors that need it: a small one has what it needs, and the other
 * one has the rest. k is cut only if 256 rows or columns of it do not fit. */
static void cut_factors(product *p, zero_cuda_room room)
{
    const zero_gemm *g = p->g;
    const int64_t all = (int64_t)(room.bytes / size_of(p->type)), half = all / 2;
    const bool both = p->a.is_converted && p->b.is_converted;
    p->m = even(p, g->transpose_a, g->m), p->n = even(p, true, g->n);
    p->k = least(even(p, !g->transpose_a || g->transpose_b, g->k),
                 fitting(g->k, 256, both ? half : all));
    int64_t of_a = both ? half : all, of_b = of_a;
    if (both && g->m * p->k <= half) of_a = aligned(g->m * p->k), of_b = all - of_a;
    if (both && g->m * p->k > half && g->n * p->k <= half)
        of_b = aligned(g->n * p->k), of_a = all - of_b;
    if (p->a.is_converted) p->m = least(p->m, fitting(g->m, p->k, of_a));
    if (p->b.is_converted) p->n = least(p->n, fitting(g->n, p->k, of_b));
    p->a.room = room.memory;
    p->b.room = p->a.room;
    if (both) p->b.room += (size_t)aligned(p->m * p->k) * size_of(p->type);
}

#define SUMS_SHARE  4 /* sums have a quarter of the room */
#define SUMS_LENGTH 1024

static void cut(product *p, zero_cuda_room room)
{
    const zero_gemm *g = p->g;
    const bool rounds = g->c_type == ZERO_FP32 || g->c_type == p->type;
    cut_factors(p, room);
    if (rounds && (g->c_type == ZERO_FP32 || p->k >= g->k)) return;
    const size_t bytes = room.bytes / SUMS_SHARE / ZERO_MEMORY_ALIGN * ZERO_MEMORY_ALIGN;
    const int64_t elements = (int64_t)(bytes / sizeof(float));
    room.bytes -= bytes;
    cut_factors(p, room);
    p->sums = (float *)((char *)room.memory + room.bytes);
    p->m = least(p->m, fitting(g->m, least(p->n, SUMS_LENGTH), elements));
    p->n = least(p->n, fitting(g->n, p->m, elements));
}

/* ---- pieces ---- */

/* `first` counts rows of op(a) or columns of op(b): `n` of them from there, and `k` from k_first
 * on. Transposed or not, they are rows of one kind and columns of the other in memory. */
static block piece_of(zero_cuda *c, const product *p, factor *f, bool k_is_column,
                      int64_t first, int64_t n, int64_t k_first, int64_t k)
{
    const int64_t row = k_is_column ? first : k_first, col = k_is_column ? k_first : first;
    const int64_t rows = k_is_column ? n : k, cols = k_is_column ? k : n;
    const void *at = f->from + (size_t)(row * f->stride + col) * size_of(f->type);
    if (!f->is_converted) return (block){at, f->stride};
    if (f->held_first != first || f->held_k != k_first)
        zero_cuda_convert(c->compute, rows, cols, f->stride, f->type, at, p->type, cols,
                          f->room);
    f->held_first = first;
    f->held_k = k_first;
    return (block){f->room, cols};
}

/* A piece of c, or of the sums that it will be rounded from. */
typedef struct {
    void *at;
    zero_type type;
    int64_t stride;
} target;

static target target_of(const product *p, int64_t i, int64_t j, int64_t n)
{
    const zero_gemm *g = p->g;
    if (p->sums) return (target){p->sums, ZERO_FP32, n};
    return (target){(char *)g->c + (size_t)(i * p->ldc + j) * size_of(g->c_type), g->c_type,
                    p->ldc};
}

static void multiply(const zero_math *math, product *p, int64_t i, int64_t j, int64_t l)
{
    zero_cuda *c = zero_cuda_of(math);
    const zero_gemm *g = p->g;
    const int64_t m = least(p->m, g->m - i), n = least(p->n, g->n - j),
                  k = least(p->k, g->k - l);
    const float one = 1.0f, add = l > 0 || g->accumulate ? 1.0f : 0.0f;
    const cudaDataType type = zero_cuda_data_type(p->type);
    block a = piece_of(c, p, &p->a, !g->transpose_a, i, m, l, k);
    block b = piece_of(c, p, &p->b, g->transpose_b, j, n, l, k);
    target to = target_of(p, i, j, n);
    cublasStatus_t status = cublasGemmEx(
        c->products, zero_cuda_operation(g->transpose_b),
        zero_cuda_operation(g->transpose_a), (int)n, (int)m, (int)k, &one, b.at, type,
        (int)b.stride, a.at, type, (int)a.stride, &add, to.at, zero_cuda_data_type(to.type),
        (int)to.stride, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    (void)!zero_cuda_check_product(c, status, "gemm");
    zero_cuda_end(math, "gemm");
}

/* The sums of a piece, which are whole now, become c. */
static void round_sums(const zero_math *math, const product *p, int64_t i, int64_t j)
{
    zero_cuda *c = zero_cuda_of(math);
    const zero_gemm *g = p->g;
    const int64_t m = least(p->m, g->m - i), n = least(p->n, g->n - j);
    char *to = (char *)g->c + (size_t)(i * p->ldc + j) * size_of(g->c_type);
    if (c->failure.status != ZERO_OK) return;
    zero_cuda_convert(c->compute, m, n, n, ZERO_FP32, p->sums, g->c_type, p->ldc, to);
    zero_cuda_end(math, "gemm");
}

/* Without k there is nothing to add. */
static void clear(const zero_math *math, const product *p)
{
    zero_cuda *c = zero_cuda_of(math);
    const size_t size = size_of(p->g->c_type);
    for (int64_t i = 0; i < p->g->m && !p->g->accumulate; i++) {
        char *row = (char *)p->g->c + (size_t)(i * p->ldc) * size;
        cudaError_t error = cudaMemsetAsync(row, 0, (size_t)p->g->n * size, c->compute);
        (void)!zero_cuda_check(c, error, "gemm");
    }
    zero_cuda_end(math, "gemm");
}

static product describe(const zero_gemm *g)
{
    return (product){
        .g = g,
        .type = g->factors,
        .a = {.from = g->a,
              .type = g->a_type,
              .stride = zero_cuda_or_dense(g->lda, g->transpose_a ? g->m : g->k),
              .is_converted = g->a_type != g->factors,
              .held_first = -1},
        .b = {.from = g->b,
              .type = g->b_type,
              .stride = zero_cuda_or_dense(g->ldb, g->transpose_b ? g->k : g->n),
              .is_converted = g->b_type != g->factors,
              .held_first = -1},
        .ldc = zero_cuda_or_dense(g->ldc, g->n)};
}

/* Pieces of k are the outer loop if c is fp32, since factors are then converted less often. */
static void multiply_pieces(const zero_math *math, product *p)
{
    const zero_cuda *c = zero_cuda_of(math);
    const zero_gemm *g = p->g;
    const int64_t step = p->sums ? g->k : p->k;
    for (int64_t from = 0; from < g->k; from += step)
        for (int64_t i = 0; i < g->m; i += p->m)
            for (int64_t j = 0; j < g->n; j += p->n) {
                for (int64_t l = from; l < least(from + step, g->k); l += p->k)
                    if (c->failure.status == ZERO_OK) multiply(math, p, i, j, l);
                if (p->sums) round_sums(math, p, i, j);
            }
}

void zero_cuda_gemm(const zero_math *math, const zero_gemm *g)
{
    assert(g->slices == 0 && "models whose sums are in slices are refused on devices");
    assert((!g->accumulate || g->c_type == ZERO_FP32) && "sums that go on are fp32");
    zero_cuda *c = zero_cuda_begin(math);
    if (!c || g->m == 0 || g->n == 0) return;
    product p = describe(g);
    if (g->k == 0) {
        clear(math, &p);
        return;
    }
    if (g->few_rows && !g->transpose_a && !g->accumulate) {
        zero_cuda_few_rows(c->compute, g, c->room);
        zero_cuda_end(math, "gemm");
        return;
    }
    cut(&p, c->room);
    multiply_pieces(math, &p);
}

/* ---- what benches measure against ---- */

static void copy(const zero_math *math, void *to, const void *from, size_t bytes)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    cudaError_t error =
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, c->compute);
    (void)!zero_cuda_check(c, error, "copy");
    zero_cuda_end(math, "copy");
}

/* cuBLAS alone: both factors have the type of the product. */
static void product_alone(const zero_math *math, const zero_gemm *g)
{
    zero_gemm alone = *g;
    alone.a_type = g->factors;
    zero_cuda_gemm(math, &alone);
}

const zero_yardstick zero_cuda_yardstick = {.copy = copy, .product = product_alone};
