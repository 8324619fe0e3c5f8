/* few_rows.cu - products c[m,n] = a[m,k] b[k,n] whose a has few rows, one for each text: b is read as it
 * is, and each of its numbers meets up to 8 rows of a at once. cuBLAS chooses its kernels by m, so a
 * text's bits would depend on how many others there are; here an element's sum has one order.
 *
 *     b as it is      a block has COLUMNS of c and a part of k, whose rows its warps take by turns; their
 *                     sums, then those of the parts of k, are added in order
 *     b transposed    a warp has a column of c: a row of b, which its lanes share
 *
 * How k is cut depends on k and n alone. Each product of two numbers is added by one fmaf(). */
#include "gpu/device_code.h"

#define ROWS    8  /* of a that meet a number of b, if there is more than one */
#define TALL    16 /* warps of a block: rows of b at a time */
#define WIDE    2  /* columns of a lane */
#define COLUMNS (WARP * WIDE)
#define DEEP    128 /* rows of b for which a block has a's numbers; whole turns of its warps */
#define BLOCKS  256 /* that fill a GPU: k is cut for it */
#define NEXT    4   /* neighbours along a row of a transposed b, for a lane */

/* A product with its strides, and where its sums go. */
typedef struct {
    int64_t m, n, k, lda, ldb, ldc;
    const void *a, *b;
    void *c;
    zero_type c_type;
    int64_t part; /* rows of b in a part of k */
    float *sums;  /* [parts, m, n] */
} product;

template <zero_type rows> static __device__ float number_of(const void *x, int64_t i)
{
    return load<rows, 1>(x, i).at[0];
}

/* W numbers from x[i] on, of which `n` are there; the rest is 0. */
template <zero_type type, int W, bool together>
static __device__ floats<W> some(const void *x, int64_t i, int64_t n)
{
    floats<W> out = {};
    if constexpr (together) {
        if (n > 0) out = load<type, W>(x, i);
    } else {
        for (int k = 0; k < W; k++)
            if (k < n) out.at[k] = number_of<type>(x, i + k);
    }
    return out;
}

static __device__ void put(const product &p, int64_t row, int64_t column, float x)
{
    const int64_t at = row * p.ldc + column;
    if (p.c_type == ZERO_FP32)
        store<ZERO_FP32, 1>({{x}}, p.c, at);
    else if (p.c_type == ZERO_BF16)
        store<ZERO_BF16, 1>({{x}}, p.c, at);
    else
        store<ZERO_FP16, 1>({{x}}, p.c, at);
}

/* ---- b as it is ---- */

/* x[DEEP][M] = M rows of a from `first` on, columns k .. end - 1; the rest is 0. */
template <zero_type rows, int M>
static __device__ void take_rows(const product &p, int64_t first, int64_t k, int64_t end,
                                 float *x)
{
    for (int i = (int)(threadIdx.y * WARP + threadIdx.x); i < DEEP * M; i += TALL * WARP) {
        const int64_t row = first + i / DEEP, at = k + i % DEEP;
        x[i % DEEP * M + i / DEEP] =
            row < p.m && at < end ? number_of<rows>(p.a, row * p.lda + at) : 0.0f;
    }
}

template <zero_type type, zero_type rows, int M, bool together>
static __global__ void __launch_bounds__(TALL *WARP, 2) add_rows(product p)
{
    SHARED(float, x, DEEP *M);
    SHARED(float, of_warps, TALL *M *COLUMNS);
    const int64_t first = (int64_t)blockIdx.z * M, begin = (int64_t)blockIdx.y * p.part;
    const int64_t end = least(begin + p.part, p.k);
    const int64_t column = (int64_t)blockIdx.x * COLUMNS + threadIdx.x * WIDE;
    floats<WIDE> sum[M] = {};
    for (int64_t k = begin; k < end; k += DEEP) {
        take_rows<rows, M>(p, first, k, end, x);
        __syncthreads();
        UNROLL
        for (int turn = 0; turn < DEEP / TALL; turn++) {
            const int r = turn * TALL + (int)threadIdx.y;
            const floats<WIDE> b = some<type, WIDE, together>(
                p.b, (k + r) * p.ldb + column, k + r < end ? p.n - column : 0);
            for (int q = 0; q < M; q++)
                for (int w = 0; w < WIDE; w++)
                    sum[q].at[w] = fmaf(x[r * M + q], b.at[w], sum[q].at[w]);
        }
        __syncthreads();
    }
    for (int q = 0; q < M; q++)
        for (int w = 0; w < WIDE; w++)
            of_warps[(threadIdx.y * M + q) * COLUMNS + threadIdx.x * WIDE + w] =
                sum[q].at[w];
    __syncthreads();
    for (int i = (int)(threadIdx.y * WARP + threadIdx.x); i < M * COLUMNS;
         i += TALL * WARP) {
        const int64_t row = first + i / COLUMNS,
                      at = (int64_t)blockIdx.x * COLUMNS + i % COLUMNS;
        float all = of_warps[i];
        for (int w = 1; w < TALL; w++) all += of_warps[w * M * COLUMNS + i];
        if (row < p.m && at < p.n) p.sums[(blockIdx.y * p.m + row) * p.n + at] = all;
    }
}

/* c from the sums of all parts of k. */
struct adding_parts {
    product p;
    int64_t parts;

    template <int W> __device__ void at(int64_t row, int64_t column) const
    {
        const float *from = p.sums + row * p.n + column;
        float sum = from[0];
        for (int64_t i = 1; i < parts; i++) sum += from[i * p.m * p.n];
        put(p, row, column, sum);
    }
};

/* Rows of b in a part of k, so that all blocks of a row of a fill a GPU: by n and k, and by the room for
 * one row of sums. */
static int64_t part_of(const zero_gemm *g, zero_cuda_room room)
{
    const int64_t tiles = zero_divide_up(g->n, COLUMNS);
    int64_t parts = zero_max(BLOCKS / tiles, 1);
    parts = zero_min(parts, (int64_t)(room.bytes / sizeof(float)) / g->n);
    return zero_round_up(zero_divide_up(g->k, zero_max(parts, 1)), TALL);
}

template <zero_type type, zero_type rows, bool together>
static void launch_rows(cudaStream_t stream, const product &p)
{
    const int64_t parts = zero_divide_up(p.k, p.part);
    const int M = p.m > 1 ? ROWS : 1;
    auto kernel =
        p.m > 1 ? add_rows<type, rows, ROWS, together> : add_rows<type, rows, 1, together>;
    LAUNCH(kernel,
           dim3((unsigned)zero_divide_up(p.n, COLUMNS), (unsigned)parts,
                (unsigned)zero_divide_up(p.m, M)),
           dim3(WARP, TALL), stream, p);
    launch_table<1>(stream, p.m, p.n, false, adding_parts{p, parts});
}

/* ---- b transposed ---- */

template <zero_type type, zero_type rows, int M, bool together>
static __global__ void __launch_bounds__(THREADS, 2) dot_rows(product p)
{
    const int64_t column = (int64_t)blockIdx.x * TABLE_ROWS + threadIdx.y;
    const int64_t first = (int64_t)blockIdx.y * M;
    float sum[M] = {};
    for (int64_t k = threadIdx.x * NEXT; k < p.k && column < p.n; k += WARP * NEXT) {
        const floats<NEXT> b = some<type, NEXT, together>(p.b, column * p.ldb + k, p.k - k);
        for (int q = 0; q < M; q++) {
            /* Past the last row the last one is read again; nobody keeps that sum. */
            const floats<NEXT> a = some<rows, NEXT, together>(
                p.a, least(first + q, p.m - 1) * p.lda + k, p.k - k);
            for (int w = 0; w < NEXT; w++) sum[q] = fmaf(a.at[w], b.at[w], sum[q]);
        }
    }
    for (int q = 0; q < M; q++) {
        const float all = warp_sum(sum[q]);
        if (threadIdx.x == 0 && column < p.n && first + q < p.m)
            put(p, first + q, column, all);
    }
}

template <zero_type type, zero_type rows, bool together>
static void launch_dots(cudaStream_t stream, const product &p)
{
    const int M = p.m > 1 ? ROWS : 1;
    auto kernel =
        p.m > 1 ? dot_rows<type, rows, ROWS, together> : dot_rows<type, rows, 1, together>;
    LAUNCH(
        kernel,
        dim3((unsigned)zero_divide_up(p.n, TABLE_ROWS), (unsigned)zero_divide_up(p.m, M)),
        dim3(WARP, TABLE_ROWS), stream, p);
}

/* ---- both ---- */

static int64_t or_dense(int64_t stride, int64_t dense)
{
    return stride != 0 ? stride : dense;
}

static product describe(const zero_gemm *g, zero_cuda_room room)
{
    product p = {};
    p.m = g->m, p.n = g->n, p.k = g->k;
    p.lda = or_dense(g->lda, g->k);
    p.ldb = or_dense(g->ldb, g->transpose_b ? g->k : g->n);
    p.ldc = or_dense(g->ldc, g->n);
    p.a = g->a, p.b = g->b, p.c = g->c;
    p.c_type = g->c_type;
    p.part = part_of(g, room);
    p.sums = (float *)room.memory;
    return p;
}

template <zero_type type, zero_type rows>
static void multiply(cudaStream_t stream, bool transposed, const product &p)
{
    if (transposed) {
        const bool together = p.k % NEXT == 0 && p.lda % NEXT == 0 && p.ldb % NEXT == 0 &&
                              aligned<NEXT>(rows, p.a) && aligned<NEXT>(type, p.b);
        together ? launch_dots<type, rows, true>(stream, p)
                 : launch_dots<type, rows, false>(stream, p);
    } else {
        const bool together =
            p.n % WIDE == 0 && p.ldb % WIDE == 0 && aligned<WIDE>(type, p.b);
        together ? launch_rows<type, rows, true>(stream, p)
                 : launch_rows<type, rows, false>(stream, p);
    }
}

void zero_cuda_few_rows(cudaStream_t stream, const zero_gemm *g, zero_cuda_room room)
{
    if (g->m <= 0 || g->n <= 0) return;
    product p = describe(g, room);
    const int64_t sums = zero_divide_up(p.k, p.part) * p.n * (int64_t)sizeof(float);
    const int64_t step =
        g->transpose_b ? g->m : zero_max((int64_t)room.bytes / sums, 1); /* rows of sums */
    for (int64_t row = 0; row < g->m; row += step) {
        const size_t a = g->a_type == ZERO_FP32 ? 4 : 2, c = g->c_type == ZERO_FP32 ? 4 : 2;
        p.m = zero_min(step, g->m - row);
        p.a = (const char *)g->a + (size_t)(row * p.lda) * a;
        p.c = (char *)g->c + (size_t)(row * p.ldc) * c;
        for_types(g->b_type, g->a_type, [&](auto of, auto of_rows) {
            multiply<decltype(of)::value, decltype(of_rows)::value>(stream, g->transpose_b,
                                                                    p);
        });
    }
}
