/* columns.h - sums of columns, in two stages and a fixed order.
 *
 *     rows        warp 0    rows 0, 8, 16, ...  of a part, a column per thread and sum
 *     part 0      warp 1    rows 1, 9, 17, ...      first stage: a sum per part, in the room
 *     part 1      ...                               second stage: the same over the parts
 *     ...
 *
 * The first stage may compute what it adds, and store it: op.at<W>(row, col) returns the
 * terms of W columns, for each of op.sums sums. */
#pragma once

#include "gpu/device_code.h"

#define LEAST_PART 64 /* rows */

namespace
{

/* Where a stage leaves its sums: number s of part p begins at to[s] + p * stride. */
typedef struct {
    float *to[2];
    int64_t stride;
    bool accumulate;
} zero_cuda_sums;

template <int sums, int W> struct terms {
    floats<W> of[sums];
};

/* The sums of this thread's rows, every TABLE_ROWS-th of [row, end). */
template <int W, class operation>
__device__ terms<operation::sums, W> add_rows(int64_t row, int64_t end, int64_t col,
                                              const operation &op)
{
    terms<operation::sums, W> sum = {};
    for (; row < end; row += TABLE_ROWS) {
        const terms<operation::sums, W> term = op.template at<W>(row, col);
        for (int s = 0; s < operation::sums; s++)
            for (int k = 0; k < W; k++) sum.of[s].at[k] += term.of[s].at[k];
    }
    return sum;
}

/* A block sums WARP * W columns of the part blockIdx.y; W divides cols. */
template <int W, class operation>
__global__ void __launch_bounds__(THREADS)
    sum_columns(int64_t rows, int64_t cols, int64_t part_rows, operation op,
                zero_cuda_sums out)
{
    constexpr int sums = operation::sums;
    typedef terms<sums, W> mine;
    SHARED(mine, partial, THREADS);
    const int64_t begin = (int64_t)blockIdx.y * part_rows;
    const int64_t end = least(begin + part_rows, rows);
    const int64_t col = ((int64_t)blockIdx.x * WARP + threadIdx.x) * W;
    if (col < cols)
        partial[threadIdx.y * WARP + threadIdx.x] =
            add_rows<W>(begin + threadIdx.y, end, col, op);
    __syncthreads();
    if (threadIdx.y > 0 || col >= cols) return;
    for (int s = 0; s < sums; s++) {
        float *to = out.to[s] + (int64_t)blockIdx.y * out.stride + col;
        for (int k = 0; k < W; k++) {
            float sum = out.accumulate ? to[k] : 0.0f;
            for (int w = 0; w < TABLE_ROWS; w++)
                sum += partial[w * WARP + threadIdx.x].of[s].at[k];
            to[k] = sum;
        }
    }
}

template <int W, class operation>
void launch_columns(cudaStream_t stream, int64_t rows, int64_t cols, int64_t parts,
                    bool together, const operation &op, const zero_cuda_sums &out)
{
    auto kernel = together ? sum_columns<W, operation> : sum_columns<1, operation>;
    const int64_t per_block = WARP * (together ? W : 1);
    dim3 grid((unsigned)zero_divide_up(cols, per_block), (unsigned)parts);
    LAUNCH(kernel, grid, dim3(WARP, TABLE_ROWS), stream, rows, cols,
           zero_divide_up(rows, parts), op, out);
}

/* The second stage's terms: [parts, n, cols]. */
template <int n> struct parts_of_sums {
    static constexpr int sums = n;
    const float *partial;
    int64_t cols;

    template <int W> __device__ terms<n, W> at(int64_t part, int64_t col) const
    {
        terms<n, W> term;
        for (int s = 0; s < n; s++)
            term.of[s] = load<ZERO_FP32, W>(partial, (part * n + s) * cols + col);
        return term;
    }
};

/* to[s][cols] (+)= the sum over the rows of op's terms. Parts: from shape and room alone. Together:
 * W columns. */
template <int W, class operation>
void sum_over_rows(cudaStream_t stream, int64_t rows, int64_t cols, bool together,
                   const operation &op, zero_cuda_room room, const zero_cuda_sums &out)
{
    constexpr int n = operation::sums;
    if (cols <= 0) return;
    const int64_t fit = (int64_t)(room.bytes / sizeof(float)) / (n * cols);
    int64_t parts = zero_min(zero_min(zero_divide_up(rows, LEAST_PART), fit), 1024);
    together = together && cols % W == 0;
    if (parts <= 1) {
        launch_columns<W>(stream, rows, cols, 1, together, op, out);
        return;
    }
    float *partial = (float *)room.memory;
    const zero_cuda_sums between = {{partial, partial + cols}, n * cols, false};
    launch_columns<W>(stream, rows, cols, parts, together, op, between);
    const parts_of_sums<n> left = {partial, cols};
    together = cols % TOGETHER == 0 && aligned(ZERO_FP32, partial);
    launch_columns<TOGETHER>(stream, parts, cols, 1, together, left, out);
}

} // namespace
