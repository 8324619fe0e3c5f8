/* cached.cu - keys and values that stay from token to token, and the attention of one query over
 * them: a block per head of a text.
 *
 *     scores      `lanes` lanes have a key, W numbers each; a warp has 32 / lanes keys at a time
 *     softmax     the block's maximum, then exponentials and their sum
 *     values      the same lanes have a value; each adds its own values in order, then lanes and
 *                 warps add up
 *
 * Which lane has which number depends on the size of a head and on the text's own length, so neither
 * the company of a text nor the type of rows shows in the order of sums. */
#include <math.h>

#include "gpu/past.h"

#define WARPS   (THREADS / WARP)
#define CHANNEL 8 /* numbers of a lane at once, where that divides the head */
#define PIECE   (WARP * CHANNEL) /* numbers that the lanes of a warp have, at most */

/* A zero_cached as kernels need it. */
typedef struct {
    int64_t T, H, size, group, room; /* group: H / K */
    int64_t values;                  /* from a key to its value */
    /* Floats: of a text, of its keys and values, of a head's workspace. */
    int64_t part, kept, of_head;
    zero_cuda_past past;
    zero_heads q, k, v;
    float *cache;
    void *out;
} cached;

static cached cached_of(const zero_cached *a)
{
    cached c = {};
    c.T = a->T;
    c.H = a->H, c.size = a->D, c.group = a->H / a->K;
    c.room = a->room;
    c.values = a->room * a->K * a->D;
    c.part = zero_cache_floats(a->rows_type, a->room, a->H, a->K, a->D);
    c.kept = zero_cache_kept(a->rows_type, a->room, a->K, a->D);
    c.of_head = zero_cache_room(a->room, a->D);
    c.past = zero_cuda_past_of(a->past, a->B);
    c.q = a->q, c.k = a->k, c.v = a->v;
    c.cache = a->cache;
    c.out = a->out;
    return c;
}

/* ---- remember ---- */

template <zero_type rows> struct keeping {
    cached a;

    /* W numbers of one head's key, and of its value, in row i. They are not rounded again. */
    template <int W> __device__ void at(int64_t i, int64_t c) const
    {
        typedef group<typename stored<rows>::number, W> numbers;
        typedef typename stored<rows>::number number;
        const int64_t b = i / a.T, t = zero_cuda_past_at(a.past, b) + i % a.T;
        const int64_t k = c / a.size, channel = c % a.size;
        number *to = (number *)(a.cache + b * a.part) + (k * a.room + t) * a.size + channel;
        *(numbers *)to = *(const numbers *)((const number *)a.k.x + i * a.k.stride +
                                            k * a.k.head + channel);
        *(numbers *)(to + a.values) =
            *(const numbers *)((const number *)a.v.x + i * a.v.stride + k * a.v.head +
                               channel);
    }
};

/* Whether numbers are W at a time wherever a head begins. */
template <int W> static bool heads_aligned(const zero_cached *a)
{
    bool all = a->D % W == 0 && aligned<W>(a->rows_type, a->cache) &&
               aligned<W>(a->rows_type, a->out);
    const zero_heads *const heads[] = {&a->q, &a->k, &a->v};
    for (const zero_heads *x : heads)
        all = all && (!x->x || (aligned<W>(a->rows_type, x->x) && x->stride % W == 0 &&
                                x->head % W == 0));
    return all;
}

void zero_cuda_remember(cudaStream_t stream, const zero_cached *a)
{
    for_type(a->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        launch_table<CHANNEL>(stream, a->B * a->T, a->K * a->D, heads_aligned<CHANNEL>(a),
                              keeping<rows>{cached_of(a)});
    });
}

/* ---- recall ---- */

/* One head of one text, for the threads of its block. */
typedef struct {
    const void *query, *keys, *values; /* element 0 of each */
    float *scores;                     /* [n] */
    int64_t n, size;
    int lanes;   /* that have a key together */
    float scale; /* to powers of 2 */
} head;

/* The share of a thread: numbers `channel` .. of every step-th key from `first` on. */
typedef struct {
    int64_t first, step;
    int64_t channel;
} place;

template <int W> static __device__ place place_of(const head &h)
{
    const int together = WARP / h.lanes, lane = (int)threadIdx.x % WARP;
    return {(int64_t)threadIdx.x / WARP * together + lane / h.lanes,
            (int64_t)WARPS * together, lane % h.lanes * W};
}

/* W numbers, as far as the head has them. */
template <zero_type rows, int W, bool together>
static __device__ floats<W> channels(const void *x, int64_t i, int64_t c, int64_t size)
{
    floats<W> out = {};
    if constexpr (together) {
        if (c < size) out = load<rows, W>(x, i * size + c);
    } else {
        for (int k = 0; k < W; k++)
            if (c + k < size) out.at[k] = load<rows, 1>(x, i * size + c + k).at[0];
    }
    return out;
}

/* All lanes of a warp take as many turns, since they add up together. */
template <zero_type rows, int W, bool together>
static __device__ void score_keys(const head &h, const place &p)
{
    const floats<W> query = channels<rows, W, together>(h.query, 0, p.channel, h.size);
    const int64_t from = p.first - (int)threadIdx.x % WARP / h.lanes; /* of the warp */
#pragma unroll 4
    for (int64_t i = 0; from + i < h.n; i += p.step) {
        const int64_t j = p.first + i;
        float sum = 0.0f;
        for (int64_t c = p.channel; c < h.size && j < h.n; c += h.lanes * W) {
            const floats<W> key = channels<rows, W, together>(h.keys, j, c, h.size);
            const floats<W> q =
                c == p.channel ? query : channels<rows, W, together>(h.query, 0, c, h.size);
            for (int k = 0; k < W; k++) sum = fmaf(q.at[k], key.at[k], sum);
        }
        for (int offset = h.lanes / 2; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(ALL, sum, offset);
        if (j < h.n && p.channel == 0) h.scores[j] = sum * h.scale;
    }
}

/* f over all lanes of the block, in the order of warps; every thread gets it. */
template <class function>
static __device__ float over_block(float x, const function &f, float *of_warp)
{
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        x = f(x, __shfl_xor_sync(ALL, x, offset));
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = x;
    __syncthreads();
    x = of_warp[0];
    for (int w = 1; w < WARPS; w++) x = f(x, of_warp[w]);
    __syncthreads();
    return x;
}

/* Scores become powers; returns their sum. */
static __device__ float powers(const head &h, float *of_warp)
{
    float most = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < h.n; j += THREADS) most = fmaxf(most, h.scores[j]);
    most = over_block(
        most, [](float x, float y) { return fmaxf(x, y); }, of_warp);
    for (int64_t j = threadIdx.x; j < h.n; j += THREADS)
        sum += h.scores[j] = exp2f(h.scores[j] - most);
    return over_block(
        sum, [](float x, float y) { return x + y; }, of_warp);
}

/* Adds numbers c .. of the values of this thread's keys, in order, then those of the warp's other keys;
 * `of_warps` gets the sum of each warp. */
template <zero_type rows, int W, bool together>
static __device__ void add_values(const head &h, const place &p, int64_t c, float *of_warps)
{
    floats<W> sum = {};
#pragma unroll 4
    for (int64_t j = p.first; j < h.n; j += p.step) {
        const floats<W> value = channels<rows, W, together>(h.values, j, c, h.size);
        const float power = h.scores[j];
        for (int k = 0; k < W; k++) sum.at[k] = fmaf(power, value.at[k], sum.at[k]);
    }
    for (int k = 0; k < W; k++)
        for (int offset = h.lanes; offset < WARP; offset *= 2)
            sum.at[k] += __shfl_xor_sync(ALL, sum.at[k], offset);
    if ((int)threadIdx.x % WARP >= h.lanes) return;
    for (int k = 0; k < W; k++)
        of_warps[threadIdx.x / WARP * PIECE + p.channel + k] = sum.at[k];
}

template <zero_type rows, int W, bool together>
static __device__ void mix_values(const head &h, const place &p, float over_sum, void *out,
                                  int64_t first, float *of_warps)
{
    const int64_t piece = h.lanes * W;
    for (int64_t at = 0; at < h.size; at += piece) {
        add_values<rows, W, together>(h, p, at + p.channel, of_warps);
        __syncthreads();
        const int64_t c = threadIdx.x;
        if (c < piece && at + c < h.size) {
            float sum = of_warps[c];
            for (int w = 1; w < WARPS; w++) sum += of_warps[w * PIECE + c];
            store<rows, 1>({{sum * over_sum}}, out, first + at + c);
        }
        __syncthreads();
    }
}

template <zero_type rows, int W, bool together>
static __global__ void __launch_bounds__(THREADS, 2)
    recall(cached a, int lanes, float scale)
{
    typedef typename stored<rows>::number number;
    SHARED(float, of_warps, WARPS *PIECE);
    const int64_t b = blockIdx.y, h = blockIdx.x;
    const number *part = (const number *)(a.cache + b * a.part);
    const number *keys = part + h / a.group * a.room * a.size;
    const head of = {(const number *)a.q.x + b * a.q.stride + h * a.q.head,
                     keys,
                     keys + a.values,
                     a.cache + b * a.part + a.kept + h * a.of_head,
                     zero_cuda_past_at(a.past, b) + 1,
                     a.size,
                     lanes,
                     scale};
    const place p = place_of<W>(of);
    score_keys<rows, W, together>(of, p);
    __syncthreads();
    const float sum = powers(of, of_warps);
    mix_values<rows, W, together>(of, p, 1.0f / sum, a.out, (b * a.H + h) * a.size,
                                  of_warps);
}

#define LOG2_E 1.4426950408889634

template <zero_type rows> static auto recall_kernel(const zero_cached *a)
{
    if (a->D % CHANNEL != 0) return recall<rows, 1, true>;
    return heads_aligned<CHANNEL>(a) ? recall<rows, CHANNEL, true>
                                     : recall<rows, CHANNEL, false>;
}

void zero_cuda_recall(cudaStream_t stream, const zero_cached *a)
{
    const int64_t size = a->D, width = size % CHANNEL == 0 ? CHANNEL : 1;
    const float scale = (float)(LOG2_E / sqrt((double)size));
    int lanes = 1;
    while (lanes < WARP && lanes * width < size) lanes *= 2;
    if (a->B <= 0) return;
    for_type(a->rows_type, [&](auto of) {
        auto kernel = recall_kernel<decltype(of)::value>(a);
        LAUNCH(kernel, dim3((unsigned)a->H, (unsigned)a->B), THREADS, stream, cached_of(a),
               lanes, scale);
    });
}
