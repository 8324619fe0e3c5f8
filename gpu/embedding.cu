/* embedding.cu - token and position embeddings, with the CPU's bits: one addition, and
 * gradients in the order of the positions.
 *
 * Gradients of words need neither atomics nor a sort. Each position has a block. If an
 * earlier position has its token, the block ends; else it adds all positions with this
 * token, in order:
 *
 *     tokens       7   3   7   9   3   7
 *     blocks       0   1   .   3   .   .      block 0 adds rows 0, 2, 5 to dwte[7]
 *
 * Tokens are read from the caches: n^2/2 of them at most, for n positions. */
#include "gpu/past.h"

#define WARPS       (THREADS / WARP)
#define COLUMNS     4    /* that a thread adds: neighbours, if they are aligned */
#define WORD_BLOCKS 2048 /* at most */
#define AHEAD       8 /* rows of a token that are loaded before the first of them is added */

template <zero_type type, zero_type rows> struct embedding_sum {
    zero_embedding e;
    zero_cuda_past past;

    template <int W> __device__ void at(int64_t i, int64_t c) const
    {
        const int64_t t = zero_cuda_past_at(past, i / e.T) + i % e.T;
        floats<W> word = load<type, W>(e.wte, e.tokens[i] * e.C + c);
        if (e.wpe) {
            const floats<W> place = load<type, W>(e.wpe, t * e.C + c);
            for (int k = 0; k < W; k++) word.at[k] += place.at[k];
        }
        store<rows, W>(word, e.out, i * e.C + c);
    }
};

void zero_cuda_embedding(cudaStream_t stream, const zero_embedding *e)
{
    for_types(e->type, e->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        constexpr int W = together_of<rows>;
        const bool together = aligned<W>(type, e->wte) && aligned<W>(type, e->wpe) &&
                              aligned<W>(rows, e->out);
        const embedding_sum<type, rows> op = {*e, zero_cuda_past_of(e->past, e->B)};
        launch_table<W>(stream, e->B * e->T, e->C, together, op);
    });
}

/* ---- backward ---- */

template <zero_type rows> struct place_sum {
    zero_embedding_grad e;

    template <int W> __device__ void at(int64_t t, int64_t c) const
    {
        floats<W> sum = load<ZERO_FP32, W>(e.dwpe, t * e.C + c);
        for (int64_t b = 0; b < e.B; b++) {
            const floats<W> d = load<rows, W>(e.dout, (b * e.T + t) * e.C + c);
            for (int k = 0; k < W; k++) sum.at[k] += d.at[k];
        }
        store<ZERO_FP32, W>(sum, e.dwpe, t * e.C + c);
    }
};

/* Whether a position before i has its token. All threads of the block get the answer. */
static __device__ bool came_before(const int32_t *tokens, int64_t i, uint32_t *of_warp)
{
    const int32_t token = tokens[i];
    bool found = false;
    for (int64_t j = threadIdx.x; j < i && !found; j += THREADS) found = tokens[j] == token;
    const bool any = __any_sync(ALL, found);
    if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = any;
    __syncthreads();
    uint32_t in_any = 0;
    for (int w = 0; w < WARPS; w++) in_any |= of_warp[w];
    __syncthreads();
    return in_any;
}

static inline __device__ int count_bits(uint32_t x)
{
    x = x - (x >> 1 & 0x55555555u);
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}

/* Lists the positions first .. first + THREADS - 1, below n, that have this token: in order,
 * as distances from `first`. Returns how many, to all threads. Others may still read the
 * last list when this is called: it is written after a barrier. */
static __device__ int find(const int32_t *tokens, int64_t first, int64_t n, int32_t token,
                           uint32_t *of_warp, uint8_t *list)
{
    const int64_t i = first + threadIdx.x;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const bool same = i < n && tokens[i] == token;
    const uint32_t lanes = __ballot_sync(ALL, same);
    if (lane == 0) of_warp[warp] = lanes;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < WARPS; w++) {
        if (w == warp) before = all;
        all += count_bits(of_warp[w]);
    }
    if (same) list[before + count_bits(lanes & ((1u << lane) - 1))] = (uint8_t)threadIdx.x;
    __syncthreads();
    return all;
}

/* Adds AHEAD rows of the list, or the n that are left, in order. */
template <zero_type rows, int W>
static __device__ void add_rows(const zero_embedding_grad &e, int64_t first, int64_t c,
                                const uint8_t *list, int n, floats<W> &sum)
{
    floats<W> d[AHEAD] = {};
    UNROLL for (int l = 0; l < AHEAD; l++)
    {
        if (l < n) d[l] = load<rows, W>(e.dout, (first + list[l]) * e.C + c);
    }
    UNROLL for (int l = 0; l < AHEAD; l++)
    {
        for (int k = 0; k < W && l < n; k++) sum.at[k] += d[l].at[k];
    }
}

/* Adds this position and all later ones of its token to the token's gradient: a thread has
 * groups of W columns, from c on, THREADS of them apart. */
template <zero_type rows, int W>
static __device__ void add_token(const zero_embedding_grad &e, int64_t first, int64_t c,
                                 uint32_t *of_warp, uint8_t *list)
{
    constexpr int groups = COLUMNS / W, step = THREADS * W;
    const int64_t n = e.B * e.T;
    const int32_t token = e.tokens[first];
    float *word = e.dwte + token * e.C;
    floats<W> sum[groups] = {};
    for (int g = 0; g < groups; g++)
        if (c + g * step < e.C) sum[g] = load<ZERO_FP32, W>(word, c + g * step);
    for (int64_t i = first; i < n; i += THREADS) {
        const int all = find(e.tokens, i, n, token, of_warp, list);
        for (int l = 0; l < all; l += AHEAD)
            for (int g = 0; g < groups; g++)
                if (c + g * step < e.C)
                    add_rows<rows>(e, i, c + g * step, list + l, all - l, sum[g]);
    }
    for (int g = 0; g < groups; g++)
        if (c + g * step < e.C) store<ZERO_FP32, W>(sum[g], word, c + g * step);
}

template <zero_type rows, int W>
static __global__ void __launch_bounds__(THREADS) add_words(zero_embedding_grad e)
{
    SHARED(uint32_t, of_warp, WARPS);
    SHARED(uint8_t, list, THREADS);
    const int64_t n = e.B * e.T;
    const int64_t begin = (int64_t)blockIdx.y * THREADS * COLUMNS;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        if (!came_before(e.tokens, i, of_warp))
            add_token<rows, W>(e, i, begin + threadIdx.x * W, of_warp, list);
    }
}

void zero_cuda_embedding_backward(cudaStream_t stream, const zero_embedding_grad *e)
{
    const int64_t n = e->B * e->T;
    if (n <= 0 || e->C <= 0) return;
    dim3 grid(block_count(n, WORD_BLOCKS),
              (unsigned)zero_divide_up(e->C, THREADS * COLUMNS));
    for_type(e->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        const bool places = aligned<W>(rows, e->dout) && aligned<W>(ZERO_FP32, e->dwpe);
        const bool words = e->C % COLUMNS == 0 && aligned<COLUMNS>(rows, e->dout) &&
                           aligned<COLUMNS>(ZERO_FP32, e->dwte);
        if (e->dwpe) launch_table<W>(stream, e->T, e->C, places, place_sum<rows>{*e});
        auto kernel = words ? add_words<rows, COLUMNS> : add_words<rows, 1>;
        LAUNCH(kernel, grid, THREADS, stream, *e);
    });
}
