/* norm.cu - layer norm: a warp per row, whose sums have an order that depends on C alone. W,
 * here the neighbours in a lane, is 4 where 4 divides C; arrays that are not aligned to that
 * are loaded one by one.
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

template <int W, bool together> static __device__ void put(const floats<W> &in, float *x)
{
    if constexpr (together)
        store<ZERO_FP32, W>(in, x, 0);
    else
        for (int k = 0; k < W; k++) x[k] = in.at[k];
}

/* y of one row; all lanes of the warp. */
template <zero_type type, int W, bool together>
static __device__ void norm_row(const zero_layernorm_args &n, int64_t row)
{
    const float *x = (const float *)n.x + row * n.C;
    floats<W> kept[KEPT] = {};
    float sum = 0.0f, squares = 0.0f;
    for_row<W>(n.C, [&](int64_t c, int g) {
        const floats<W> in = get<ZERO_FP32, W, together>(x, c);
        if (g >= 0) kept[g] = in;
        for (int k = 0; k < W; k++) sum += in.at[k];
    });
    const float mean = warp_sum(sum) / (float)n.C;
    for_row<W>(n.C, [&](int64_t c, int g) {
        const floats<W> in = g >= 0 ? kept[g] : get<ZERO_FP32, W, together>(x, c);
        for (int k = 0; k < W; k++) squares += (in.at[k] - mean) * (in.at[k] - mean);
    });
    const float variance = warp_sum(squares) / (float)n.C;
    const float rstd = 1.0f / sqrtf(variance + ZERO_LAYERNORM_EPS);
    for_row<W>(n.C, [&](int64_t c, int g) {
        const floats<W> gain = get<type, W, together>(n.gain, c);
        const floats<W> bias = get<type, W, together>(n.bias, c);
        floats<W> y = g >= 0 ? kept[g] : get<ZERO_FP32, W, together>(x, c);
        for (int k = 0; k < W; k++)
            y.at[k] = (y.at[k] - mean) * rstd * gain.at[k] + bias.at[k];
        put<W, together>(y, (float *)n.y + row * n.C + c);
    });
    if (threadIdx.x % WARP > 0) return;
    n.mean[row] = mean;
    n.rstd[row] = rstd;
}

template <zero_type type, int W, bool together>
static __global__ void __launch_bounds__(THREADS, 2) layernorm(zero_layernorm_args n)
{
    int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP;
    for (; row < n.rows; row += (int64_t)gridDim.x * ROWS)
        norm_row<type, W, together>(n, row);
}

void zero_cuda_layernorm(cudaStream_t stream, const zero_layernorm_args *n)
{
    const bool together = aligned(ZERO_FP32, n->x) && aligned(n->type, n->gain) &&
                          aligned(n->type, n->bias) && aligned(ZERO_FP32, n->y);
    if (n->rows <= 0) return;
    for_type(n->type, [&](auto of) {
        constexpr zero_type type = decltype(of)::value;
        auto kernel = layernorm<type, 1, true>;
        if (n->C % TOGETHER == 0)
            kernel = together ? layernorm<type, TOGETHER, true>
                              : layernorm<type, TOGETHER, false>;
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
template <zero_type type, int W, bool together>
static __device__ void look(const zero_layernorm_grad_args &n, const norm_row_of &row,
                            int64_t c, floats<W> &g, floats<W> &xhat)
{
    const floats<W> gain = get<type, W, together>(n.gain, c);
    g = get<ZERO_FP32, W, together>(n.dy, row.first + c);
    xhat = get<ZERO_FP32, W, together>(n.x, row.first + c);
    for (int k = 0; k < W; k++) {
        g.at[k] *= gain.at[k];
        xhat.at[k] = (xhat.at[k] - row.mean) * row.rstd;
    }
}

/* dx += rstd (g - mean(g) - xhat mean(g xhat)) */
template <zero_type type, int W, bool together>
static __device__ void norm_row_backward(const zero_layernorm_grad_args &n,
                                         const norm_row_of &row)
{
    floats<W> kept_g[KEPT] = {}, kept_xhat[KEPT] = {}, g, xhat;
    float along_one = 0.0f, along_x = 0.0f;
    for_row<W>(n.C, [&](int64_t c, int kept) {
        look<type, W, together>(n, row, c, g, xhat);
        if (kept >= 0) kept_g[kept] = g, kept_xhat[kept] = xhat;
        for (int k = 0; k < W; k++) {
            along_one += g.at[k];
            along_x += g.at[k] * xhat.at[k];
        }
    });
    along_one = warp_sum(along_one) / (float)n.C;
    along_x = warp_sum(along_x) / (float)n.C;
    for_row<W>(n.C, [&](int64_t c, int kept) {
        floats<W> dx = get<ZERO_FP32, W, together>(n.dx, row.first + c);
        if (kept >= 0)
            g = kept_g[kept], xhat = kept_xhat[kept];
        else
            look<type, W, together>(n, row, c, g, xhat);
        for (int k = 0; k < W; k++)
            dx.at[k] += row.rstd * (g.at[k] - along_one - xhat.at[k] * along_x);
        put<W, together>(dx, (float *)n.dx + row.first + c);
    });
}

template <zero_type type, int W, bool together>
static __global__ void __launch_bounds__(THREADS, 2)
    layernorm_dx(zero_layernorm_grad_args n)
{
    int64_t row = (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP;
    for (; row < n.rows; row += (int64_t)gridDim.x * ROWS)
        norm_row_backward<type, W, together>(n, {row * n.C, n.mean[row], n.rstd[row]});
}

/* The terms of dgain and dbias. */
struct norm_terms {
    static constexpr int sums = 2;
    int64_t C;
    const float *x, *dy, *mean, *rstd;

    template <int W> __device__ terms<2, W> at(int64_t row, int64_t col) const
    {
        const floats<W> d = load<ZERO_FP32, W>(dy, row * C + col);
        floats<W> xhat = load<ZERO_FP32, W>(x, row * C + col);
        const float centre = mean[row], scale = rstd[row];
        for (int k = 0; k < W; k++) xhat.at[k] = d.at[k] * ((xhat.at[k] - centre) * scale);
        return {{xhat, d}};
    }
};

void zero_cuda_layernorm_backward(cudaStream_t stream, const zero_layernorm_grad_args *n,
                                  zero_cuda_room room)
{
    const bool inputs =
        n->C % TOGETHER == 0 && aligned(ZERO_FP32, n->x) && aligned(ZERO_FP32, n->dy);
    const bool together = inputs && aligned(n->type, n->gain) && aligned(ZERO_FP32, n->dx);
    if (n->rows > 0)
        for_type(n->type, [&](auto of) {
            constexpr zero_type type = decltype(of)::value;
            auto kernel = layernorm_dx<type, 1, true>;
            if (n->C % TOGETHER == 0)
                kernel = together ? layernorm_dx<type, TOGETHER, true>
                                  : layernorm_dx<type, TOGETHER, false>;
            LAUNCH(kernel, block_count(zero_divide_up(n->rows, ROWS), ROW_SLOTS), THREADS,
                   stream, *n);
        });
    const norm_terms op = {n->C, (const float *)n->x, (const float *)n->dy, n->mean,
                           n->rstd};
    const zero_cuda_sums out = {{n->dgain, n->dbias}, 0, n->accumulate};
    sum_over_rows(stream, n->rows, n->C, inputs, op, room, out);
}
