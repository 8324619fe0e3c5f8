/* attention_tiles.cu - attention's forward pass on tensor cores: Dao et al., FlashAttention,
 * arXiv:2205.14135, algorithm 1. Factors are fp16 or bf16; sums, softmax and lse are fp32.
 *
 * A block has 64 queries and walks over the keys that they see, 32 at a time. Each warp computes
 * the scores of its 16 queries, keeps their running maximum and sum, and rounds the exponentials,
 * times dropout's mask, to weights of the values. Rows are divided by their sums at the end. A
 * factor too large for fp16 becomes infinite, so it shows in the result. */
#include "attention_tiles.h"

#define KEYS   32         /* of a step */
#define SCORES (KEYS + 4) /* floats from row to row of a strip of scores */
#define HALF   (KEYS / 2) /* two lanes share a row of scores */

/* Weights take the place of the scores that they were computed from. */
static_assert(pitch<KEYS> * 2 <= SCORES * 4, "a strip of weights fits its strip of scores");
static_assert(STAGE <= SCORES, "a result's part fits the strip of scores");

/* The running maximum and sum of a lane's row. */
struct softmax {
    float most, sum;
};

/* A warp's place in its block's work. */
struct strip {
    float *scores; /* [SIDE][SCORES] */
    float *shrink; /* [SIDE] */
    int row;       /* the strip's first, within the tile */
};

/* A lane's half of a row: scores become powers of 2, those above the diagonal zero. Stores the
 * factor by which the row's result shrinks. A NaN is never the largest, but stays in the sum. */
static __device__ void softmax_step(const zero_attention_call &call, int64_t query,
                                    int64_t key, const strip &w, float (&s)[HALF],
                                    softmax &row)
{
    const float *from = w.scores + lane() % SIDE * SCORES + lane() / SIDE * HALF;
    const int64_t seen = query + w.row + lane() % SIDE - key - lane() / SIDE * HALF;
    float most = row.most, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        s[i] = i <= seen ? from[i] * call.powers : -INFINITY;
        most = fmaxf(most, s[i]);
    }
    most = fmaxf(most, __shfl_xor_sync(ALL, most, SIDE));
#pragma unroll
    for (int i = 0; i < HALF; i++) sum += s[i] = exp2f(s[i] - most);
    sum += __shfl_xor_sync(ALL, sum, SIDE);
    const float shrink = exp2f(row.most - most);
    row.sum = row.sum * shrink + sum;
    row.most = most;
    w.shrink[lane() % SIDE] = shrink;
}

/* The same lanes' weights, times dropout's mask. */
template <typename factor>
static __device__ void store_weights(const zero_attention_call &call,
                                     const zero_head_view &v, int64_t query, int64_t key,
                                     const uint8_t *mask, const strip &w, float (&s)[HALF])
{
    const int row = lane() % SIDE, col = lane() / SIDE * HALF;
    factor *to = (factor *)w.scores + row * pitch<KEYS> + col;
    if (call.dropped) {
        const unsigned first = zero_mask_first(v, query + w.row + row, key);
#pragma unroll
        for (int i = 0; i < HALF; i++)
            s[i] *= zero_mask_at<KEYS>(call, mask, first, w.row + row, col + i);
    }
#pragma unroll
    for (int i = 0; i < HALF; i += 4)
        store_factors(float4{s[i], s[i + 1], s[i + 2], s[i + 3]}, to + i);
}

/* Multiplies each row by its number. */
template <int N>
static __device__ void scale_rows(const places &p, const float *by, sums (&x)[N])
{
    float scale[NUMBERS];
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) scale[i] = by[row_of(p, i)];
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) x[n].x[i] *= scale[i];
}

/* One warp's step: y = y shrunk + weights * values. */
template <typename factor, int SIZE>
static __device__ void
step(const zero_attention_call &call, const zero_head_view &v, int64_t query, int64_t key,
     const factor *queries, const factor *keys, const factor *values, const uint8_t *mask,
     const places &p, const strip &w, softmax &row, sums (&y)[SIZE / SIDE])
{
    sums scores[KEYS / SIDE];
    float s[HALF];
    dots<factor, SIZE, KEYS>(queries + w.row * pitch<SIZE>, keys, scores);
#pragma unroll
    for (int n = 0; n < KEYS / SIDE; n++)
        nvcuda::wmma::store_matrix_sync(w.scores + n * SIDE, scores[n], SCORES,
                                        nvcuda::wmma::mem_row_major);
    __syncwarp();
    softmax_step(call, query, key, w, s, row);
    __syncwarp(); /* all scores have been read */
    store_weights<factor>(call, v, query, key, mask, w, s);
    __syncwarp();
    scale_rows(p, w.shrink, y);
    mix<factor, SIZE, KEYS>((const factor *)w.scores, values, y);
    __syncwarp(); /* weights have been used */
}

template <int SIZE>
static __device__ void finish(const zero_attention_call &call, const zero_head_view &v,
                              int64_t query, const places &p, const strip &w,
                              const softmax &row, sums (&y)[SIZE / SIDE])
{
    const int64_t t = query + w.row + lane();
    if (lane() < SIDE) {
        w.shrink[lane()] = 1.0f / row.sum;
        if (t < v.T)
            call.a.lse[v.lse + t] = fmaf(row.most, ZERO_ATTENTION_LOG_2, logf(row.sum));
    }
    __syncwarp();
    scale_rows(p, w.shrink, y);
    store_strip<SIZE>(call, y, 1.0f, w.scores, v.T - query - w.row,
                      call.a.out + v.out + (query + w.row) * v.C, v.C);
}

/* Blocks with the most keys begin first. */
template <typename factor, int SIZE>
static __device__ void forward_tile(const zero_attention_call &call)
{
    SHARED(factor, queries, TILE * pitch<SIZE>);
    SHARED(factor, keys, KEYS * pitch<SIZE>);
    SHARED(factor, values, KEYS * pitch<SIZE>);
    SHARED(float, scores, TILE *SCORES);
    SHARED(float, shrink, TILE);
    SHARED(uint8_t, mask, TILE * ZERO_MASK_BYTES(KEYS));
    const zero_head_view v = zero_head_of(call);
    const int64_t query = (int64_t)(gridDim.y - 1 - blockIdx.y) * TILE;
    const strip w = {scores + warp() * SIDE * SCORES, shrink + warp() * SIDE,
                     warp() * SIDE};
    const places p = find_places(scores);
    softmax row = {-INFINITY, 0.0f};
    sums y[SIZE / SIDE];
    clear(y);
    load_tile<factor, SIZE, TILE>(call, zero_rows_of_qkv(call, v, ZERO_QUERIES, query),
                                  queries);
    for (int64_t key = 0; key < query + TILE && key < v.T; key += KEYS) {
        __syncthreads(); /* everybody is done with the last keys */
        load_tile<factor, SIZE, KEYS>(call, zero_rows_of_qkv(call, v, ZERO_KEYS, key),
                                      keys);
        load_tile<factor, SIZE, KEYS>(call, zero_rows_of_qkv(call, v, ZERO_VALUES, key),
                                      values);
        if (call.dropped) zero_draw_mask<TILE, KEYS, THREADS>(call, v, query, key, mask);
        __syncthreads();
        if (key < query + w.row + SIDE)
            step<factor, SIZE>(call, v, query, key, queries, keys, values, mask, p, w, row,
                               y);
    }
    finish<SIZE>(call, v, query, p, w, row, y);
}

template <typename factor, int SIZE>
static __global__ void __launch_bounds__(THREADS) forward(const zero_attention_call call)
{
    if constexpr (factors<factor>::taken) forward_tile<factor, SIZE>(call);
}

bool zero_attention_tiles_take(int capability, const zero_attention *a)
{
    const bool has_type = (a->factors == ZERO_FP16 && capability >= 70) ||
                          (a->factors == ZERO_BF16 && capability >= 80);
    return has_type && a->C / a->H <= 128;
}

void zero_attention_tiles_forward(cudaStream_t stream, const zero_attention_call *call)
{
    for_head_size(call->size, [&](auto size) {
        constexpr int SIZE = decltype(size)::value;
        auto kernel = call->a.factors == ZERO_FP16 ? forward<__half, SIZE>
                                                   : forward<__nv_bfloat16, SIZE>;
        LAUNCH(kernel, grid_of(call), THREADS, stream, *call);
    });
}
