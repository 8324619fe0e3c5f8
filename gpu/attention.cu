/* attention.cu - attention in fp32, of rows of any type: Dao et al., FlashAttention, arXiv:2205.14135,
 * algorithms 1 and 4, without atomics. This is the reference of attention_tiles.cu, and computes what
 * that cannot.
 *
 * Backward computes probabilities from lse. With P the probabilities, M dropout's mask and
 * D = rowsum(dO * O):
 *
 *     dV = (P M)' dO     dS = P * (M * dO V' - D)     dQ = dS K     dK = dS' Q
 *
 * One kernel walks over keys and has dQ of its queries, whose D it leaves to the next one, which walks
 * over queries, head by head of those that share its keys, and has dK and dV of these: each sum has one
 * order. */
#include <math.h>

#include "gpu/attention_products.h"

/* ---- Scores ---- */

/* A tile of scores. Its rows are queries, or keys. */
struct score_tile {
    int64_t query, key; /* the first */
    const uint8_t *mask;
};

struct place {
    int query, key; /* within the tile */
};

enum rows { QUERIES, KEYS };

template <rows ROWS> static __device__ place place_of(int r, int c)
{
    const int row = 4 * ty() + r, col = tx() + 16 * c;
    return ROWS == QUERIES ? place{row, col} : place{col, row};
}

static __device__ float kept(const zero_attention_call &call, const zero_head_view &v,
                             const score_tile &t, const place &at)
{
    if (!call.dropped) return 1.0f;
    return zero_mask_at<TILE>(call, t.mask, zero_mask_first(v, t.query + at.query, t.key),
                              at.query, at.key);
}

/* weights = x * dropout's mask */
template <rows ROWS>
static __device__ void store_kept(const zero_attention_call &call, const zero_head_view &v,
                                  const score_tile &t, const float (&x)[4][4],
                                  float *weights)
{
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int r = i / 4, c = i % 4;
        weights[(4 * ty() + r) * WEIGHTS + tx() + 16 * c] =
            x[r][c] * kept(call, v, t, place_of<ROWS>(r, c));
    }
}

/* ---- Forward ---- */

static __device__ float row_largest(float x)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

static __device__ float row_sum(float x)
{
#pragma unroll
    for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

/* The running maximum and sum of a thread's rows, and what its results shrink by. */
struct softmax_rows {
    float most[4], sum[4], shrink[4];
};

/* Scores become powers of 2, those above the diagonal zero. A NaN is never the largest, but stays
 * in the sum. */
static __device__ void softmax_step(const zero_attention_call &call, const score_tile &t,
                                    float (&s)[4][4], softmax_rows &rows)
{
#pragma unroll
    for (int r = 0; r < 4; r++) {
        float most = rows.most[r], sum = 0.0f;
#pragma unroll
        for (int c = 0; c < 4; c++) {
            const bool seen = t.key + tx() + 16 * c <= t.query + 4 * ty() + r;
            s[r][c] = seen ? s[r][c] * call.powers : -INFINITY;
            most = fmaxf(most, s[r][c]);
        }
        most = row_largest(most);
#pragma unroll
        for (int c = 0; c < 4; c++) sum += s[r][c] = exp2f(s[r][c] - most);
        rows.shrink[r] = exp2f(rows.most[r] - most);
        rows.sum[r] = rows.sum[r] * rows.shrink[r] + row_sum(sum);
        rows.most[r] = most;
    }
}

template <int COLS> static __device__ void shrink(const softmax_rows &rows, result<COLS> &y)
{
#pragma unroll
    for (int i = 0; i < COLS / 4; i++) y.x[i % 4][i / 4] *= rows.shrink[i % 4];
}

static __device__ void store_lse(const zero_head_view &v, int64_t query,
                                 const softmax_rows &rows, float *lse)
{
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const int64_t t = query + 4 * ty() + r;
        if (tx() == 0 && t < v.T)
            lse[v.lse + t] = fmaf(rows.most[r], ZERO_ATTENTION_LOG_2, logf(rows.sum[r]));
    }
}

/* Blocks with the most keys begin first. */
template <zero_type type, int COLS>
static __global__ void __launch_bounds__(THREADS, 1) forward(const zero_attention_call call)
{
    SHARED(float, room, ROOM);
    SHARED(float, weights, TILE *WEIGHTS);
    SHARED(uint8_t, mask, TILE * ZERO_MASK_BYTES(TILE));
    const zero_head_view v = zero_head_of(call, blockIdx.x);
    const int64_t query = (int64_t)(gridDim.y - 1 - blockIdx.y) * TILE;
    softmax_rows rows;
    result<COLS> y;
    clear(y);
#pragma unroll
    for (int r = 0; r < 4; r++) rows.most[r] = -INFINITY, rows.sum[r] = 0.0f;
    for (int64_t key = 0; key <= query; key += TILE) {
        float s[4][4];
        if (call.dropped) zero_draw_mask<TILE, TILE, THREADS>(call, v, query, key, mask);
        dots(call, zero_rows_of_qkv<type>(call, v, ZERO_QUERIES, query),
             zero_rows_of_qkv<type>(call, v, ZERO_KEYS, key), room, s);
        const score_tile t = {query, key, mask};
        softmax_step(call, t, s, rows);
        store_kept<QUERIES>(call, v, t, s, weights);
        shrink(rows, y);
        mix(call, weights, zero_rows_of_qkv<type>(call, v, ZERO_VALUES, key), room, y);
    }
    if (blockIdx.z == 0) store_lse(v, query, rows, call.a.lse);
#pragma unroll
    for (int r = 0; r < 4; r++) rows.shrink[r] = 1.0f / rows.sum[r];
    shrink(rows, y);
    store(call, y, 1.0f, zero_result_in_out<type>(call, v, query));
}

/* ---- Backward ---- */

/* lse of a tile's queries in base 2; zero for queries that do not exist. */
static __device__ void load_lse(const zero_attention_call &call, const zero_head_view &v,
                                int64_t query, float *lse)
{
    const int i = (int)threadIdx.x;
    if (i >= TILE) return;
    lse[i] = query + i < v.T ? call.a.lse[v.lse + query + i] * ZERO_ATTENTION_LOG2_E : 0.0f;
}

/* D of these queries, as find_means() left it. */
static __device__ void load_means(const zero_attention_call &call, const zero_head_view &v,
                                  int64_t query, float *mean)
{
    const int i = (int)threadIdx.x;
    if (i >= TILE) return;
    mean[i] = query + i < v.T ? call.means[v.mean + query + i] : 0.0f;
}

/* D of a tile's queries; zero for queries that do not exist. */
template <zero_type type>
static __device__ void find_means(const zero_attention_call &call, const zero_head_view &v,
                                  int64_t query, float *mean)
{
    const zero_head_rows<type> y = zero_rows_of_out<type>(v, call.a.out, query);
    const zero_head_rows<type> dy = zero_rows_of_out<type>(v, call.a.dout, query);
    const int lane = (int)threadIdx.x % WARP;
    for (int row = (int)threadIdx.x / WARP; row < TILE; row += THREADS / WARP) {
        float sum = 0.0f;
        for (int c = 4 * lane; c < call.size; c += 4 * WARP)
            sum = zero_dot_four(zero_load_four(call, y, row, c),
                                zero_load_four(call, dy, row, c), sum);
#pragma unroll
        for (int step = WARP / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(ALL, sum, step);
        if (lane != 0) continue;
        mean[row] = sum;
        if (row < y.n && blockIdx.z == 0) call.means[v.mean + query + row] = sum;
    }
}

/* Scores become P. Queries that do not exist have zeros for dO and D, so their P changes nothing. */
template <rows ROWS>
static __device__ void probabilities(const zero_attention_call &call, const score_tile &t,
                                     const float *lse, float (&p)[4][4])
{
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const place at = place_of<ROWS>(i / 4, i % 4);
        const bool seen = t.key + at.key <= t.query + at.query;
        float *x = &p[i / 4][i % 4];
        *x = seen ? exp2f(fmaf(*x, call.powers, -lse[at.query])) : 0.0f;
    }
}

/* weights = dS, from dO V' */
template <rows ROWS>
static __device__ void store_gradient(const zero_attention_call &call,
                                      const zero_head_view &v, const score_tile &t,
                                      const float *mean, const float (&p)[4][4],
                                      const float (&dp)[4][4], float *weights)
{
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int r = i / 4, c = i % 4;
        const place at = place_of<ROWS>(r, c);
        weights[(4 * ty() + r) * WEIGHTS + tx() + 16 * c] =
            p[r][c] * (dp[r][c] * kept(call, v, t, at) - mean[at.query]);
    }
}

template <zero_type type, int COLS>
static __global__ void __launch_bounds__(THREADS, 1)
    backward_keys(const zero_attention_call call)
{
    SHARED(float, room, ROOM);
    SHARED(float, weights, TILE *WEIGHTS);
    SHARED(float, lse, TILE);
    SHARED(float, mean, TILE);
    SHARED(uint8_t, mask, TILE * ZERO_MASK_BYTES(TILE));
    const int64_t head = (int64_t)blockIdx.x * call.group;
    const int64_t key = (int64_t)blockIdx.y * TILE;
    result<COLS> dk, dv;
    clear(dk), clear(dv);
    for (int g = 0; g < call.group; g++) {
        const zero_head_view v = zero_head_of(call, head + g);
        for (int64_t query = key; query < v.T; query += TILE) {
            const zero_head_rows<type> queries =
                zero_rows_of_qkv<type>(call, v, ZERO_QUERIES, query);
            const zero_head_rows<type> douts =
                zero_rows_of_out<type>(v, call.a.dout, query);
            const score_tile t = {query, key, mask};
            float p[4][4], dp[4][4];
            load_lse(call, v, query, lse);
            load_means(call, v, query, mean);
            if (call.dropped)
                zero_draw_mask<TILE, TILE, THREADS>(call, v, query, key, mask);
            dots(call, zero_rows_of_qkv<type>(call, v, ZERO_KEYS, key), queries, room, p);
            probabilities<KEYS>(call, t, lse, p);
            store_kept<KEYS>(call, v, t, p, weights);
            mix(call, weights, douts, room, dv);
            dots(call, zero_rows_of_qkv<type>(call, v, ZERO_VALUES, key), douts, room, dp);
            store_gradient<KEYS>(call, v, t, mean, p, dp, weights);
            mix(call, weights, queries, room, dk);
        }
    }
    const zero_head_view v = zero_head_of(call, head);
    store(call, dk, call.scale, zero_result_in_dqkv<type>(call, v, ZERO_KEYS, key));
    store(call, dv, 1.0f, zero_result_in_dqkv<type>(call, v, ZERO_VALUES, key));
}

template <zero_type type, int COLS>
static __global__ void __launch_bounds__(THREADS, 1)
    backward_queries(const zero_attention_call call)
{
    SHARED(float, room, ROOM);
    SHARED(float, weights, TILE *WEIGHTS);
    SHARED(float, lse, TILE);
    SHARED(float, mean, TILE);
    SHARED(uint8_t, mask, TILE * ZERO_MASK_BYTES(TILE));
    const zero_head_view v = zero_head_of(call, blockIdx.x);
    const int64_t query = (int64_t)(gridDim.y - 1 - blockIdx.y) * TILE;
    result<COLS> dq;
    clear(dq);
    load_lse(call, v, query, lse);
    find_means<type>(call, v, query, mean);
    for (int64_t key = 0; key <= query; key += TILE) {
        const zero_head_rows<type> keys = zero_rows_of_qkv<type>(call, v, ZERO_KEYS, key);
        const score_tile t = {query, key, mask};
        float p[4][4], dp[4][4];
        if (call.dropped) zero_draw_mask<TILE, TILE, THREADS>(call, v, query, key, mask);
        dots(call, zero_rows_of_qkv<type>(call, v, ZERO_QUERIES, query), keys, room, p);
        probabilities<QUERIES>(call, t, lse, p);
        dots(call, zero_rows_of_out<type>(v, call.a.dout, query),
             zero_rows_of_qkv<type>(call, v, ZERO_VALUES, key), room, dp);
        store_gradient<QUERIES>(call, v, t, mean, p, dp, weights);
        mix(call, weights, keys, room, dq);
    }
    store(call, dq, call.scale, zero_result_in_dqkv<type>(call, v, ZERO_QUERIES, query));
}

/* ---- Launchers ---- */

static zero_attention_call call_of(const zero_attention *a)
{
    const zero_dropout *d = &a->dropout;
    const double size = (double)a->D;
    zero_attention_call call;
    call.a = *a;
    call.size = (int)a->D;
    call.group = (int)(a->H / a->K);
    call.scale = (float)(1.0 / sqrt(size));
    call.powers = (float)(1.4426950408889634 / sqrt(size));
    /* base/rng.c compares the 32 bits, as a double, with p * 2^32. */
    call.dropped = d->p > 0.0f ? (uint32_t)ceil((double)d->p * 0x1p32) : 0;
    call.keep = 1.0f / (1.0f - d->p);
    call.first = 0, call.heads = a->B * a->H;
    call.means = NULL;
    const int64_t each = a->rows_type == ZERO_FP32 ? 4 : 8; /* in 16 bytes */
    uintptr_t all = (uintptr_t)a->out | (uintptr_t)a->dout;
    int64_t steps = a->D;
    const zero_heads *const heads[] = {&a->q, &a->k, &a->v, &a->dq, &a->dk, &a->dv};
    for (const zero_heads *x : heads) all |= (uintptr_t)x->x, steps |= x->stride | x->head;
    call.wide = steps % each == 0 && all % 16 == 0;
    return call;
}

/* Blocks of `group` heads. */
static dim3 grid_of(const zero_attention_call *call, int cols, int group)
{
    const zero_attention *a = &call->a;
    return dim3((unsigned)(call->heads / group), (unsigned)((a->T + TILE - 1) / TILE),
                (unsigned)((call->size + cols - 1) / cols));
}

template <zero_type type, int COLS>
static void launch_forward(cudaStream_t s, const zero_attention_call *c)
{
    LAUNCH((forward<type, COLS>), grid_of(c, COLS, 1), THREADS, s, *c);
}

template <zero_type type, int COLS>
static void launch_backward(cudaStream_t s, const zero_attention_call *c)
{
    LAUNCH((backward_queries<type, COLS>), grid_of(c, COLS, 1), THREADS, s, *c);
    LAUNCH((backward_keys<type, COLS>), grid_of(c, COLS, c->group), THREADS, s, *c);
}

extern "C" void zero_cuda_attention(cudaStream_t stream, int capability,
                                    const zero_attention *a)
{
    const zero_attention_call call = call_of(a);
    if (zero_attention_tiles_take(capability, a)) {
        zero_attention_tiles_forward(stream, &call);
        return;
    }
    for_type(a->rows_type, [&](auto of) {
        constexpr zero_type type = decltype(of)::value;
        if (call.size <= 64)
            launch_forward<type, 64>(stream, &call);
        else
            launch_forward<type, 128>(stream, &call);
    });
}

static void launch_backward_of(cudaStream_t stream, int capability,
                               const zero_attention_call *call)
{
    if (zero_attention_tiles_take(capability, &call->a)) {
        zero_attention_tiles_backward(stream, call);
        return;
    }
    for_type(call->a.rows_type, [&](auto of) {
        constexpr zero_type type = decltype(of)::value;
        if (call->size <= 64)
            launch_backward<type, 64>(stream, call);
        else
            launch_backward<type, 128>(stream, call);
    });
}

/* As many groups of heads at a time as the room has D of. */
extern "C" void zero_cuda_attention_backward(cudaStream_t stream, int capability,
                                             const zero_attention *a, zero_cuda_room room)
{
    zero_attention_call call = call_of(a);
    const int64_t all = call.heads, group = call.group;
    const int64_t most = (int64_t)(room.bytes / sizeof(float)) / (group * a->T) * group;
    call.means = (float *)room.memory;
    for (; call.first < all; call.first += most) {
        call.heads = zero_min(all - call.first, most);
        launch_backward_of(stream, capability, &call);
    }
}
