/* attention_tiles_backward.cu - attention's backward pass on tensor cores: Dao et al.,
 * FlashAttention, arXiv:2205.14135, algorithm 4, without atomics. Equations: attention.cu.
 *
 * One kernel has 64 queries per block and walks over the keys that they see; a warp has dQ of its
 * queries, and leaves their D. The next has 64 keys per block and walks over the queries that see
 * them; a warp's rows of scores are keys, and it has their dK and dV: those of one head after the
 * other that share the keys. Rounded are q, k, v, dO, P times
 * dropout's mask, and dS, which is scaled by 1/sqrt(size) after the product: in fp16 it stays as large
 * as loss scaling makes it. */
#include "gpu/attention_tiles.h"

/* A step has this many queries, or keys: 48 KiB of shared memory suffice for them. */
template <int SIZE> constexpr int step_rows = SIZE <= 64 ? 32 : 16;

/* A block's tile of scores. */
struct step_tile {
    int64_t query, key; /* the first */
    const float *lse, *mean;
    const uint8_t *mask;
};

/* A score becomes P times dropout's mask, and dO V' becomes dS. `query` and `key` are within the
 * tile, whose rows of the mask have KEYS elements. Queries that do not exist have zeros for dO and
 * D, so their P changes nothing. */
template <int KEYS>
static __device__ void differentiate(const zero_attention_call &call,
                                     const zero_head_view &v, const step_tile &t, int query,
                                     int key, float &score, float &dp)
{
    const int64_t i = t.query + query;
    const bool seen = t.key + key <= i;
    const float p = seen ? exp2f(fmaf(score, call.powers, -t.lse[query])) : 0.0f;
    const float kept =
        call.dropped
            ? zero_mask_at<KEYS>(call, t.mask, zero_mask_first(v, i, t.key), query, key)
            : 1.0f;
    score = p * kept;
    dp = p * (dp * kept - t.mean[query]);
}

/* A warp's strip of weights, rounded. */
template <typename factor, int COLS>
static __device__ void store_weights(const places &p, const sums (&x)[COLS / SIDE],
                                     factor *weights)
{
#pragma unroll
    for (int n = 0; n < COLS / SIDE; n++)
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            weights[row_of(p, i) * pitch<COLS> + n * SIDE + col_of(p, i)] =
                factors<factor>::of(x[n].x[i]);
}

/* ---- dK and dV ---- */

/* A warp's factors: its strip of keys and values, a step's queries and dout, and its weights. */
template <typename factor> struct factors_of_keys {
    const factor *keys, *values, *queries, *douts;
    factor *weights;
};

template <typename factor, int SIZE>
static __device__ void add_queries(const zero_attention_call &call, const zero_head_view &v,
                                   const step_tile &t, const places &p,
                                   const factors_of_keys<factor> &f,
                                   sums (&dk)[SIZE / SIDE], sums (&dv)[SIZE / SIDE])
{
    constexpr int ROWS = step_rows<SIZE>;
    sums s[ROWS / SIDE], ds[ROWS / SIDE];
    dots<factor, SIZE, ROWS>(f.keys, f.queries, s);
    dots<factor, SIZE, ROWS>(f.values, f.douts, ds);
#pragma unroll
    for (int n = 0; n < ROWS / SIDE; n++)
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            differentiate<TILE>(call, v, t, n * SIDE + col_of(p, i),
                                warp() * SIDE + row_of(p, i), s[n].x[i], ds[n].x[i]);
    store_weights<factor, ROWS>(p, s, f.weights);
    __syncwarp();
    mix<factor, SIZE, ROWS>(f.weights, f.douts, dv);
    __syncwarp(); /* P has been used */
    store_weights<factor, ROWS>(p, ds, f.weights);
    __syncwarp();
    mix<factor, SIZE, ROWS>(f.weights, f.queries, dk);
}

template <typename factor, zero_type type, int SIZE>
static __device__ void backward_keys_tile(const zero_attention_call &call)
{
    constexpr int ROWS = step_rows<SIZE>;
    SHARED(factor, keys, TILE * pitch<SIZE>);
    SHARED(factor, values, TILE * pitch<SIZE>);
    SHARED(factor, queries, ROWS * pitch<SIZE>);
    SHARED(factor, douts, ROWS * pitch<SIZE>);
    SHARED(factor, weights, TILE * pitch<ROWS>);
    SHARED(float, lse, ROWS);
    SHARED(float, mean, ROWS);
    SHARED(uint8_t, mask, ROWS * ZERO_MASK_BYTES(TILE));
    const int64_t head = (int64_t)blockIdx.x * call.group;
    const zero_head_view own = zero_head_of(call, head);
    const int64_t key = (int64_t)blockIdx.y * TILE, row = warp() * SIDE;
    const factors_of_keys<factor> f = {keys + row * pitch<SIZE>, values + row * pitch<SIZE>,
                                       queries, douts, weights + row * pitch<ROWS>};
    const places p = find_places((float *)weights);
    sums dk[SIZE / SIDE], dv[SIZE / SIDE];
    clear(dk), clear(dv);
    load_tile<factor, SIZE, TILE>(call, zero_rows_of_qkv<type>(call, own, ZERO_KEYS, key),
                                  keys);
    load_tile<factor, SIZE, TILE>(call, zero_rows_of_qkv<type>(call, own, ZERO_VALUES, key),
                                  values);
    for (int g = 0; g < call.group; g++) {
        const zero_head_view v = zero_head_of(call, head + g);
        for (int64_t query = key; query < v.T; query += ROWS) {
            const step_tile t = {query, key, lse, mean, mask};
            __syncthreads(); /* everybody is done with the last queries */
            load_tile<factor, SIZE, ROWS>(
                call, zero_rows_of_qkv<type>(call, v, ZERO_QUERIES, query), queries);
            load_tile<factor, SIZE, ROWS>(
                call, zero_rows_of_out<type>(v, call.a.dout, query), douts);
            load_means<ROWS>(call, v, query, mean);
            load_lse<ROWS>(call, v, query, lse);
            if (call.dropped)
                zero_draw_mask<ROWS, TILE, THREADS>(call, v, query, key, mask);
            __syncthreads();
            if (key + row < query + ROWS)
                add_queries<factor, SIZE>(call, v, t, p, f, dk, dv);
        }
    }
    /* Each warp stages in its own strips, which nobody else reads. */
    store_strip<SIZE>(call, dk, call.scale, (float *)(keys + row * pitch<SIZE>),
                      zero_result_in_dqkv<type>(call, own, ZERO_KEYS, key + row));
    store_strip<SIZE>(call, dv, 1.0f, (float *)(values + row * pitch<SIZE>),
                      zero_result_in_dqkv<type>(call, own, ZERO_VALUES, key + row));
}

template <typename factor, zero_type type, int SIZE>
static __global__ void __launch_bounds__(THREADS, 2)
    backward_keys(const zero_attention_call call)
{
    if constexpr (factors<factor>::taken) backward_keys_tile<factor, type, SIZE>(call);
}

/* ---- dQ ---- */

/* A warp's factors: its strip of queries and dout, a step's keys and values, and its weights. */
template <typename factor> struct factors_of_queries {
    const factor *queries, *douts, *keys, *values;
    factor *weights;
};

template <typename factor, int SIZE>
static __device__ void
add_keys(const zero_attention_call &call, const zero_head_view &v, const step_tile &t,
         const places &p, const factors_of_queries<factor> &f, sums (&dq)[SIZE / SIDE])
{
    constexpr int ROWS = step_rows<SIZE>;
    sums s[ROWS / SIDE], ds[ROWS / SIDE];
    dots<factor, SIZE, ROWS>(f.queries, f.keys, s);
    dots<factor, SIZE, ROWS>(f.douts, f.values, ds);
#pragma unroll
    for (int n = 0; n < ROWS / SIDE; n++)
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            differentiate<ROWS>(call, v, t, warp() * SIDE + row_of(p, i),
                                n * SIDE + col_of(p, i), s[n].x[i], ds[n].x[i]);
    store_weights<factor, ROWS>(p, ds, f.weights);
    __syncwarp();
    mix<factor, SIZE, ROWS>(f.weights, f.keys, dq);
}

template <typename factor, zero_type type, int SIZE>
static __device__ void backward_queries_tile(const zero_attention_call &call)
{
    constexpr int ROWS = step_rows<SIZE>;
    SHARED(factor, queries, TILE * pitch<SIZE>);
    SHARED(factor, douts, TILE * pitch<SIZE>);
    SHARED(factor, keys, ROWS * pitch<SIZE>);
    SHARED(factor, values, ROWS * pitch<SIZE>);
    SHARED(factor, weights, TILE * pitch<ROWS>);
    SHARED(float, lse, TILE);
    SHARED(float, mean, TILE);
    SHARED(uint8_t, mask, TILE * ZERO_MASK_BYTES(ROWS));
    const zero_head_view v = zero_head_of(call, blockIdx.x);
    const int64_t query = (int64_t)(gridDim.y - 1 - blockIdx.y) * TILE, row = warp() * SIDE;
    const factors_of_queries<factor> f = {queries + row * pitch<SIZE>,
                                          douts + row * pitch<SIZE>, keys, values,
                                          weights + row * pitch<ROWS>};
    const places p = find_places((float *)weights);
    sums dq[SIZE / SIDE];
    clear(dq);
    load_tile<factor, SIZE, TILE>(
        call, zero_rows_of_qkv<type>(call, v, ZERO_QUERIES, query), queries);
    load_douts<factor, type, SIZE, TILE>(call, v, query, douts, mean);
    load_lse<TILE>(call, v, query, lse);
    for (int64_t key = 0; key < query + TILE && key < v.T; key += ROWS) {
        const step_tile t = {query, key, lse, mean, mask};
        __syncthreads(); /* everybody is done with the last keys */
        load_tile<factor, SIZE, ROWS>(call, zero_rows_of_qkv<type>(call, v, ZERO_KEYS, key),
                                      keys);
        load_tile<factor, SIZE, ROWS>(
            call, zero_rows_of_qkv<type>(call, v, ZERO_VALUES, key), values);
        if (call.dropped) zero_draw_mask<TILE, ROWS, THREADS>(call, v, query, key, mask);
        __syncthreads();
        if (key < query + row + SIDE) add_keys<factor, SIZE>(call, v, t, p, f, dq);
    }
    /* Each warp stages in its own strip, which nobody else reads. */
    store_strip<SIZE>(call, dq, call.scale, (float *)(queries + row * pitch<SIZE>),
                      zero_result_in_dqkv<type>(call, v, ZERO_QUERIES, query + row));
}

template <typename factor, zero_type type, int SIZE>
static __global__ void __launch_bounds__(THREADS, 2)
    backward_queries(const zero_attention_call call)
{
    if constexpr (factors<factor>::taken) backward_queries_tile<factor, type, SIZE>(call);
}

void zero_attention_tiles_backward(cudaStream_t stream, const zero_attention_call *call)
{
    for_call(call, [&](auto of, auto of_rows, auto size) {
        typedef typename decltype(of)::number factor;
        constexpr zero_type type = decltype(of_rows)::value;
        constexpr int SIZE = decltype(size)::value;
        LAUNCH((backward_queries<factor, type, SIZE>), grid_of(call, 1), THREADS, stream,
               *call);
        LAUNCH((backward_keys<factor, type, SIZE>), grid_of(call, call->group), THREADS,
               stream, *call);
    });
}
