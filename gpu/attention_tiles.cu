/* attention_tiles.cu - attention's forward pass on tensor cores: Dao et al., FlashAttention,
 * arXiv:2205.14135, algorithm 1. Factors are fp16 or bf16; sums, softmax and lse are fp32.
 *
 * A block has 64 queries and walks over the keys that they see, 32 at a time. Each warp computes
 * the scores of its 16 queries, keeps their running maximum and sum, and rounds the exponentials,
 * times dropout's mask, to weights of the values. Rows are divided by their sums at the end. A
 * factor too large for fp16 becomes infinite, so it shows in the result. */
#include "gpu/attention_tiles.h"

#define KEYS   32         /* of a step */
#define SCORES (KEYS + 4) /* floats from row to row of a strip of scores */
#define HALF   (KEYS / 2) /* two lanes share a row of scores */

/* Weights take the place of the scores that they were computed from. */
static_assert(pitch<KEYS> * 2 <= SCORES * 4, "a strip of weights fits its strip of scores");
static_assert(STAGE <= SCORES, "a result's part fits the strip of scores");

/* A warp's part of a block's work. */
template <typename factor> struct strip {
    const factor *queries;       /* 16 of them */
    const factor *keys, *values; /* of a step */
    const uint8_t *mask;         /* of a step, for all queries of the block */
    float *scores;               /* [SIDE][SCORES] */
    float *shrink;               /* [SIDE]: what rows of the result are multiplied by */
    int row;                     /* the first, within the block's tile */
    int64_t query;               /* the first, in the sample */
    places at;
    float most, sum; /* the running maximum and sum of a lane's row */
};

/* A lane's half of a row: scores become powers of 2, those above the diagonal zero. A NaN is never
 * the largest, but stays in the sum. */
template <typename factor>
static __device__ void softmax_step(const zero_attention_call &call, int64_t key,
                                    strip<factor> &w, float (&s)[HALF])
{
    const float *from = w.scores + lane() % SIDE * SCORES + lane() / SIDE * HALF;
    const int64_t seen = w.query + lane() % SIDE - key - lane() / SIDE * HALF;
    float most = w.most, sum = 0.0f;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        s[i] = i <= seen ? from[i] * call.powers : -INFINITY;
        most = fmaxf(most, s[i]);
    }
    most = fmaxf(most, __shfl_xor_sync(ALL, most, SIDE));
#pragma unroll
    for (int i = 0; i < HALF; i++) sum += s[i] = exp2f(s[i] - most);
    sum += __shfl_xor_sync(ALL, sum, SIDE);
    const float shrink = exp2f(w.most - most);
    w.sum = w.sum * shrink + sum;
    w.most = most;
    if (lane() < SIDE) w.shrink[lane()] = shrink;
}

/* The same lanes' weights, times dropout's mask. */
template <typename factor>
static __device__ void store_weights(const zero_attention_call &call,
                                     const zero_head_view &v, int64_t key,
                                     const strip<factor> &w, float (&s)[HALF])
{
    typedef factors<factor> f;
    const int row = lane() % SIDE, col = lane() / SIDE * HALF;
    factor *to = (factor *)w.scores + row * pitch<KEYS> + col;
    if (call.dropped) {
        const unsigned first = zero_mask_first(v, w.query + row, key);
#pragma unroll
        for (int i = 0; i < HALF; i++)
            s[i] *= zero_mask_at<KEYS>(call, w.mask, first, w.row + row, col + i);
    }
#pragma unroll
    for (int i = 0; i < HALF; i += 4)
        *(zero_neighbours<factor, 4> *)(to + i) = {f::of(s[i]), f::of(s[i + 1]),
                                                   f::of(s[i + 2]), f::of(s[i + 3])};
}

/* Multiplies each row by its number in `shrink`. */
template <typename factor, int N>
static __device__ void scale_rows(const strip<factor> &w, sums (&x)[N])
{
    float scale[NUMBERS];
#pragma unroll
    for (int i = 0; i < NUMBERS; i++) scale[i] = w.shrink[row_of(w.at, i)];
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) x[n].x[i] *= scale[i];
}

/* y = y shrunk + weights * values */
template <typename factor, int SIZE>
static __device__ void add_keys(const zero_attention_call &call, const zero_head_view &v,
                                int64_t key, strip<factor> &w, sums (&y)[SIZE / SIDE])
{
    sums scores[KEYS / SIDE];
    float s[HALF];
    dots<factor, SIZE, KEYS>(w.queries, w.keys, scores);
#pragma unroll
    for (int n = 0; n < KEYS / SIDE; n++)
        nvcuda::wmma::store_matrix_sync(w.scores + n * SIDE, scores[n], SCORES,
                                        nvcuda::wmma::mem_row_major);
    __syncwarp();
    softmax_step(call, key, w, s);
    __syncwarp(); /* all scores have been read */
    store_weights(call, v, key, w, s);
    __syncwarp();
    scale_rows(w, y);
    mix<factor, SIZE, KEYS>((const factor *)w.scores, w.values, y);
}

template <typename factor, zero_type type, int SIZE>
static __device__ void finish(const zero_attention_call &call, const zero_head_view &v,
                              const strip<factor> &w, sums (&y)[SIZE / SIDE])
{
    const int64_t t = w.query + lane();
    __syncwarp(); /* `shrink` has been used */
    if (lane() < SIDE) w.shrink[lane()] = 1.0f / w.sum;
    if (lane() < SIDE && t < v.T)
        call.a.lse[v.lse + t] = fmaf(w.most, ZERO_ATTENTION_LOG_2, logf(w.sum));
    __syncwarp();
    scale_rows(w, y);
    store_strip<SIZE>(call, y, 1.0f, w.scores, zero_result_in_out<type>(call, v, w.query));
}

/* Blocks with the most keys begin first. */
template <typename factor, zero_type type, int SIZE>
static __device__ void forward_tile(const zero_attention_call &call)
{
    SHARED(factor, queries, TILE * pitch<SIZE>);
    SHARED(factor, keys, KEYS * pitch<SIZE>);
    SHARED(factor, values, KEYS * pitch<SIZE>);
    SHARED(float, scores, TILE *SCORES);
    SHARED(float, shrink, TILE);
    SHARED(uint8_t, mask, TILE * ZERO_MASK_BYTES(KEYS));
    const zero_head_view v = zero_head_of(call, blockIdx.x);
    const int64_t query = (int64_t)(gridDim.y - 1 - blockIdx.y) * TILE;
    const int row = warp() * SIDE;
    strip<factor> w = {queries + row * pitch<SIZE>, keys,         values, mask,
                       scores + row * SCORES,       shrink + row, row,    query + row,
                       find_places(scores),         -INFINITY,    0.0f};
    sums y[SIZE / SIDE];
    clear(y);
    load_tile<factor, SIZE, TILE>(
        call, zero_rows_of_qkv<type>(call, v, ZERO_QUERIES, query), queries);
    for (int64_t key = 0; key < query + TILE && key < v.T; key += KEYS) {
        __syncthreads(); /* everybody is done with the last keys */
        load_tile<factor, SIZE, KEYS>(call, zero_rows_of_qkv<type>(call, v, ZERO_KEYS, key),
                                      keys);
        load_tile<factor, SIZE, KEYS>(
            call, zero_rows_of_qkv<type>(call, v, ZERO_VALUES, key), values);
        if (call.dropped) zero_draw_mask<TILE, KEYS, THREADS>(call, v, query, key, mask);
        __syncthreads();
        if (key < w.query + SIDE) add_keys<factor, SIZE>(call, v, key, w, y);
    }
    finish<factor, type, SIZE>(call, v, w, y);
}

template <typename factor, zero_type type, int SIZE>
static __global__ void __launch_bounds__(THREADS, 2) forward(const zero_attention_call call)
{
    if constexpr (factors<factor>::taken) forward_tile<factor, type, SIZE>(call);
}

bool zero_attention_tiles_take(int capability, const zero_attention *a)
{
    const bool has_type = (a->factors == ZERO_FP16 && capability >= 70) ||
                          (a->factors == ZERO_BF16 && capability >= 80);
    const bool has_rows = a->rows_type == ZERO_FP32 || a->rows_type == a->factors;
    return has_type && has_rows && a->D <= 128;
}

void zero_attention_tiles_forward(cudaStream_t stream, const zero_attention_call *call)
{
    for_call(call, [&](auto of, auto of_rows, auto size) {
        typedef typename decltype(of)::number factor;
        constexpr zero_type type = decltype(of_rows)::value;
        constexpr int SIZE = decltype(size)::value;
        LAUNCH((forward<factor, type, SIZE>), grid_of(call, 1), THREADS, stream, *call);
    });
}
