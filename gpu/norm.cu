/* norm.cu - layer norm: a warp per row, whose sums have an order that depends on C alone. W,
 * here the neighbours in a lane, is 4 where 4 divides C; arrays that are not aligned to that
 * are loaded one by one. It is 4 for rows of 16 bits, too, so that sums have the order of fp32: a
 * warp has all of a row in flight at once, in loads of 8 bytes.
 *
 * Rows are read more than once. The first KEPT groups of each lane stay in registers: 1024
 * channels, where a lane loads 4 at once; the rest of a longer row is read again. */
#include <math.h>

#include "gpu/columns.h"

#define KEPT      8
#define ROWS      (THREADS / WARP) /* of a block */
#define ROW_SLOTS 2048             /* blocks, at most */

/* This lane's part of a row: f(c, g) for columns c .. c + W - 1, its g-th group. Groups that
 * are not kept have g = -1. */
template <int W, class function>
static __device__ void for_row(int64_t C, const function &f)
{
    int64_t c = threadIdx.x % WARP * W;
    UNROLL
    for (int g = 0; g < KEPT; g++) {
        if (c < C) f(c, g);
        c += WARP * W;
    }
    for (; c < C; c += WARP * W) f(c, -1);
}

template <zero_type type, int W, bool together>
static __device__ floats<W> get(const void *x, int64_t i)
{
    if constexpr (together) {
        return load<type, W>(x, i);
    } else {
        floats<W> out;
        for (int k = 0; k < W; k++) out.at[k] = load<type, 1>(x, i + k).at[0];
        return out;
    }
}

template <zero_type type, int W, bool together>
static __device__ void put(const floats<W> &in, void *x, int64_t i)
{
    if constexpr (together)
        store<type, W>(in, x, i);
    else
        for (int k = 0; k < W; k++) store<type, 1>({{in.at[k]}}, x, i + k);
}

/* y of one row; all lanes of the warp. */
template <zero_type type, zero_type rows, int W, bool together>
static __device__ void norm_row(const zero_layernorm_args &n, int64_t row)
{
    const int64_t first = row * n.C;
    floats<W> kept[KEPT] = {};
    float sum = 0.0f, squares = 0.0f;
    for_row<W>(n.C, [&](int64_t c, int g) {
        const floats<W> in = get<rows, W, together>(n.x, first + c);
        if (g >= 0) kept[g] = in;
        for (int k = 0; k < W; k++) sum += in.at[k];
    });
    const float mean = n.mean ? warp_sum(sum) / (float)n.C : 0.0f;
    for_row<W>(n.C, [&](int64_t c, int g) {
        const floats<W> in = g >= 0 ? kept[g] : get<rows, W, together>(n.x, first + c);
        for (int k = 0; k < W; k++) squares += (in.at[k] - mean) * (in.at[k] - mean);
    });
    const float variance = warp_sum(squares) / (float)n.C;
    const float rstd = 1.0f / sqrtf(variance + n.eps);
    for_row<W>(n.C, [&](int64_t c, int g) {
        const floats<W> gain = get<type, W, together>(n.gain, c);
        floats<W> y = g >= 0 ? kept[g] : get<rows, W, together>(n.x, first + c);
        if (n.bias) {
            const floats<W> bias = get<type, W, together>(n.bias, c);
            for (int k = 0; k < W; k++)
                y.at[k] = (y.at[k] - mean) * rstd * gain.at[k] + bias.at[k];
        } else {
            for (int k = 0; k < W; k++) y.at[k] = (y.at[k] - mean) * rstd * gain.at[k];
        }
        put<rows, W, together>(y, n.y, first + c);
    });
    if (threadIdx.x % WARP > 0) return;
    if (n.mean) n.mean[row] = mean;
    n.rstd[row] = rstd;
}

template <zero_type type, zero_type rows, int W, bool together>
static __global__ void __launch_bounds__(THREADS, 2) layernorm(zero_layernorm_args n)
{
    int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP;
    for (; row < n.rows; row += (int64_t)gridDim.x * ROWS)
        norm_row<type, rows, W, together>(n, row);
}

void zero_cuda_layernorm(cudaStream_t stream, const zero_layernorm_args *n)
{
    if (n->rows <= 0) return;
    const bool together = aligned(n->rows_type, n->x) && aligned(n->type, n->gain) &&
                          aligned(n->type, n->bias) && aligned(n->rows_type, n->y);
    for_types(n->type, n->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        auto kernel = layernorm<type, rows, 1, true>;
        if (n->C % TOGETHER == 0)
            kernel = together ? layernorm<type, rows, TOGETHER, true>
                              : layernorm<type, rows, TOGETHER, false>;
        LAUNCH(kernel, block_count(zero_divide_up(n->rows, ROWS), ROW_SLOTS), THREADS,
               stream, *n);
    });
}

/* ---- backward ---- */

/* A row of x and dy, and what layernorm() left of it. */
struct norm_row_of {
    int64_t first; /* element */
    float mean, rstd;
};

/* g = dy gain and xhat of W columns. */
template <zero_type type, zero_type rows, int W, bool together>
static __device__ void look(const zero_layernorm_grad_args &n, const norm_row_of &row,
                            int64_t c, floats<W> &g, floats<W> &xhat)
{
    const floats<W> gain = get<type, W, together>(n.gain, c);
    g = get<rows, W, together>(n.dy, row.first + c);
    xhat = get<rows, W, together>(n.x, row.first + c);
    for (int k = 0; k < W; k++) {
        g.at[k] *= gain.at[k];
        xhat.at[k] = (xhat.at[k] - row.mean) * row.rstd;
    }
}

/* dx += rstd (g - mean(g) - xhat mean(g xhat)); without a mean nothing depends on mean(g). */
template <zero_type type, zero_type rows, int W, bool together>
static __device__ void norm_row_backward(const zero_layernorm_grad_args &n,
                                         const norm_row_of &row)
{
    floats<W> kept_g[KEPT] = {}, kept_xhat[KEPT] = {}, g, xhat;
    float along_one = 0.0f, along_x = 0.0f;
    for_row<W>(n.C, [&](int64_t c, int kept) {
        look<type, rows, W, together>(n, row, c, g, xhat);
        if (kept >= 0) kept_g[kept] = g, kept_xhat[kept] = xhat;
        for (int k = 0; k < W; k++) {
            along_one += g.at[k];
            along_x += g.at[k] * xhat.at[k];
        }
    });
    along_one = n.mean ? warp_sum(along_one) / (float)n.C : 0.0f;
    along_x = warp_sum(along_x) / (float)n.C;
    for_row<W>(n.C, [&](int64_t c, int kept) {
        floats<W> dx = get<rows, W, together>(n.dx, row.first + c);
        if (kept >= 0)
            g = kept_g[kept], xhat = kept_xhat[kept];
        else
            look<type, rows, W, together>(n, row, c, g, xhat);
        for (int k = 0; k < W; k++)
            dx.at[k] += row.rstd * (g.at[k] - along_one - xhat.at[k] * along_x);
        put<rows, W, together>(dx, n.dx, row.first + c);
    });
}

template <zero_type type, zero_type rows, int W, bool together>
static __global__ void __launch_bounds__(THREADS, 2)
    layernorm_dx(zero_layernorm_grad_args n)
{
    int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP;
    for (; row < n.rows; row += (int64_t)gridDim.x * ROWS)
        norm_row_backward<type, rows, W, together>(
            n, {row * n.C, n.mean ? n.mean[row] : 0.0f, n.rstd[row]});
}

/* The terms of dgain, and of dbias if there is one. */
template <zero_type rows, int n> struct norm_terms {
    static constexpr int sums = n;
    int64_t C;
    const void *x, *dy;
    const float *mean, *rstd;

    template <int W> __device__ terms<n, W> at(int64_t row, int64_t col) const
    {
        const floats<W> d = load<rows, W>(dy, row * C + col);
        floats<W> xhat = load<rows, W>(x, row * C + col);
        const float centre = mean ? mean[row] : 0.0f, scale = rstd[row];
        for (int k = 0; k < W; k++) xhat.at[k] = d.at[k] * ((xhat.at[k] - centre) * scale);
        if constexpr (n == 1)
            return {{xhat}};
        else
            return {{xhat, d}};
    }
};

static void launch_dx(cudaStream_t stream, const zero_layernorm_grad_args *n)
{
    const bool together = aligned(n->rows_type, n->x) && aligned(n->rows_type, n->dy) &&
                          aligned(n->type, n->gain) && aligned(n->rows_type, n->dx);
    for_types(n->type, n->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        auto kernel = layernorm_dx<type, rows, 1, true>;
        if (n->C % TOGETHER == 0)
            kernel = together ? layernorm_dx<type, rows, TOGETHER, true>
                              : layernorm_dx<type, rows, TOGETHER, false>;
        LAUNCH(kernel, block_count(zero_divide_up(n->rows, ROWS), ROW_SLOTS), THREADS,
               stream, *n);
    });
}

void zero_cuda_layernorm_backward(cudaStream_t stream, const zero_layernorm_grad_args *n,
                                  zero_cuda_room room)
{
    if (n->rows > 0) launch_dx(stream, n);
    const zero_cuda_sums out = {{n->dgain, n->dbias}, 0, n->accumulate};
    for_type(n->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        const bool together = aligned<W>(rows, n->x) && aligned<W>(rows, n->dy);
        const norm_terms<rows, 1> gain = {n->C, n->x, n->dy, n->mean, n->rstd};
        const norm_terms<rows, 2> both = {n->C, n->x, n->dy, n->mean, n->rstd};
        if (n->dbias)
            sum_over_rows<W>(stream, n->rows, n->C, together, both, room, out);
        else
            sum_over_rows<W>(stream, n->rows, n->C, together, gain, room, out);
    });
}
