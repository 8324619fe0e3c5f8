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
#include "gpu/device_code.h"

#define WARPS       (THREADS / WARP)
#define COLUMNS     4    /* that a thread adds at once */
#define WORD_BLOCKS 2048 /* at most */

template <zero_type type> struct embedding_sum {
    zero_embedding e;

    template <int W> __device__ void at(int64_t i, int64_t c) const
    {
        const floats<W> place = load<type, W>(e.wpe, i % e.T * e.C + c);
        floats<W> word = load<type, W>(e.wte, e.tokens[i] * e.C + c);
        for (int k = 0; k < W; k++) word.at[k] += place.at[k];
        store<ZERO_FP32, W>(word, e.out, i * e.C + c);
    }
};

void zero_cuda_embedding(cudaStream_t stream, const zero_embedding *e)
{
    const bool together =
        aligned(e->type, e->wte) && aligned(e->type, e->wpe) && aligned(ZERO_FP32, e->out);
    for_type(e->type, [&](auto of) {
        const embedding_sum<decltype(of)::value> op = {*e};
        launch_table(stream, e->B * e->T, e->C, together, op);
    });
}

/* ---- backward ---- */

struct place_sum {
    zero_embedding_grad e;

    template <int W> __device__ void at(int64_t t, int64_t c) const
    {
        floats<W> sum = load<ZERO_FP32, W>(e.dwpe, t * e.C + c);
        for (int64_t b = 0; b < e.B; b++) {
            const floats<W> d = load<ZERO_FP32, W>(e.dout, (b * e.T + t) * e.C + c);
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

/* Adds this position and all later ones of its token to the token's gradient: a thread has
 * columns c, c + THREADS, ... */
static __device__ void add_token(const zero_embedding_grad &e, int64_t first, int64_t c,
                                 uint32_t *of_warp, uint8_t *list)
{
    const int64_t n = e.B * e.T;
    const int32_t token = e.tokens[first];
    float *word = e.dwte + token * e.C, sum[COLUMNS];
    for (int k = 0; k < COLUMNS; k++)
        sum[k] = c + k * THREADS < e.C ? word[c + k * THREADS] : 0.0f;
    for (int64_t i = first; i < n; i += THREADS) {
        const int all = find(e.tokens, i, n, token, of_warp, list);
        for (int l = 0; l < all; l++) {
            const float *d = (const float *)e.dout + (i + list[l]) * e.C;
            for (int k = 0; k < COLUMNS; k++)
                if (c + k * THREADS < e.C) sum[k] += d[c + k * THREADS];
        }
    }
    for (int k = 0; k < COLUMNS; k++)
        if (c + k * THREADS < e.C) word[c + k * THREADS] = sum[k];
}

static __global__ void __launch_bounds__(THREADS) add_words(zero_embedding_grad e)
{
    SHARED(uint32_t, of_warp, WARPS);
    SHARED(uint8_t, list, THREADS);
    const int64_t n = e.B * e.T;
    const int64_t begin = (int64_t)blockIdx.y * THREADS * COLUMNS;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        if (!came_before(e.tokens, i, of_warp))
            add_token(e, i, begin + threadIdx.x, of_warp, list);
    }
}

void zero_cuda_embedding_backward(cudaStream_t stream, const zero_embedding_grad *e)
{
    const int64_t n = e->B * e->T;
    const bool together = aligned(ZERO_FP32, e->dout) && aligned(ZERO_FP32, e->dwpe);
    if (n <= 0 || e->C <= 0) return;
    launch_table(stream, e->T, e->C, together, place_sum{*e});
    dim3 grid(block_count(n, WORD_BLOCKS),
              (unsigned)zero_divide_up(e->C, THREADS * COLUMNS));
    LAUNCH(add_words, grid, THREADS, stream, *e);
}
