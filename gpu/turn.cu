/* turn.cu - rotary positions, and the norm of each head before them.
 *
 * A block has a row: its threads compute the row's angles once, then each warp turns heads. Sines and
 * cosines are made in double, as on the CPU: they are the exact ones rounded, so they do not depend on
 * the GPU. Gradients of gains are sums in two stages: a block has a part of the rows, whose heads each
 * thread adds in order for one channel; then parts are added. */
#include <math.h>

#include "gpu/columns.h"
#include "gpu/past.h"

#define ROW_SLOTS 8192 /* blocks, at most */
#define WARPS     (THREADS / WARP)

/* ---- angles: src/math/cpu_turn.h ---- */

#define QUARTER_1       0x1.921fb544p+0
#define QUARTER_2       0x1.0b4611a6p-34
#define QUARTER_3       0x1.3198a2e037073p-69
#define ROUNDING_DOUBLE 0x1.8p52

static __device__ void sine_and_cosine(float angle, float *sine, float *cosine)
{
    const double x = (double)angle, shifted = x * 0x1.45f306dc9c883p-1 + ROUNDING_DOUBLE;
    const double n = shifted - ROUNDING_DOUBLE;
    const double r = x - n * QUARTER_1 - n * QUARTER_2 - n * QUARTER_3, z = r * r;
    double s = -1.0 / 1307674368000.0, c = 1.0 / 20922789888000.0;
    s = s * z + 1.0 / 6227020800.0;
    c = c * z - 1.0 / 87178291200.0;
    s = s * z - 1.0 / 39916800.0;
    c = c * z + 1.0 / 479001600.0;
    s = s * z + 1.0 / 362880.0;
    c = c * z - 1.0 / 3628800.0;
    s = s * z - 1.0 / 5040.0;
    c = c * z + 1.0 / 40320.0;
    s = s * z + 1.0 / 120.0;
    c = c * z - 1.0 / 720.0;
    s = s * z - 1.0 / 6.0;
    c = c * z + 1.0 / 24.0;
    s = s * z * r + r;
    c = c * z * z - 0.5 * z + 1.0;
    const int64_t quarter = (int64_t)n;
    const double of_sine = quarter & 1 ? c : s, of_cosine = quarter & 1 ? s : c;
    *sine = (float)(quarter & 2 ? -of_sine : of_sine);
    *cosine = (float)((quarter + 1) & 2 ? -of_cosine : of_cosine);
}

/* A row's cosines and sines, for all threads of a block. */
typedef struct {
    float cosine[ZERO_TURN_PAIRS], sine[ZERO_TURN_PAIRS];
} angles;

/* All threads. The last row's angles have been used. */
static __device__ void aim(const zero_turn &a, const zero_cuda_past &past, int64_t row,
                           angles *to)
{
    const float t = (float)(zero_cuda_past_at(past, row / a.T) + row % a.T);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < a.R / 2; i += THREADS)
        sine_and_cosine(t * a.frequency[i], to->sine + i, to->cosine + i);
    __syncthreads();
}

/* ---- heads ---- */

/* Head h of a row, counted through q and k: its first number in the array. */
static __device__ int64_t place(const zero_turn &a, const zero_heads &q,
                                const zero_heads &k, int64_t row, int64_t h)
{
    return h < a.H ? row * q.stride + h * q.head : row * k.stride + (h - a.H) * k.head;
}

static __device__ void *array(const zero_turn &a, const zero_heads &q, const zero_heads &k,
                              int64_t h)
{
    return h < a.H ? q.x : k.x;
}

template <zero_type type> static __device__ float number(const void *x, int64_t i)
{
    return load<type, 1>(x, i).at[0];
}

/* One head of one row, for the lanes of a warp or for one thread. */
template <zero_type type, zero_type rows> struct one_head {
    const zero_turn &a;
    const angles &by;
    int64_t row, h;
    const void *gain, *x, *d; /* x: before the norm; d: the gradient after turning */
    int64_t at, from;         /* in x, in d */

    __device__ one_head(const zero_turn &call, const angles &of, int64_t r, int64_t head)
        : a(call), by(of), row(r), h(head), gain(head < call.H ? call.gain_q : call.gain_k),
          x(array(call, call.q, call.k, head)), d(array(call, call.dq, call.dk, head)),
          at(place(call, call.q, call.k, r, head)),
          from(place(call, call.dq, call.dk, r, head))
    {
    }

    __device__ float &rstd() const
    {
        return a.rstd[row * (a.H + a.K) + h];
    }

    __device__ float before(int64_t c) const
    {
        return number<rows>(x, at + c);
    }

    __device__ float gain_of(int64_t c) const
    {
        return number<type>(gain, c);
    }

    /* Channel c turned back. */
    __device__ float back(int64_t c) const
    {
        const int64_t pairs = a.R / 2;
        const float own = number<rows>(d, from + c);
        if (c >= a.R) return own;
        const int64_t i = c < pairs ? c : c - pairs;
        const float other = number<rows>(d, from + (c < pairs ? c + pairs : i));
        return c < pairs ? own * by.cosine[i] + other * by.sine[i]
                         : own * by.cosine[i] - other * by.sine[i];
    }
};

/* ---- forward ---- */

template <zero_type type, zero_type rows>
static __device__ void turn_head(const one_head<type, rows> &x)
{
    const zero_turn &a = x.a;
    const int lane = (int)threadIdx.x % WARP;
    const int64_t pairs = a.R / 2, to = place(a, a.to_q, a.to_k, x.row, x.h);
    void *out = array(a, a.to_q, a.to_k, x.h);
    float scale = 1.0f;
    if (x.gain) {
        float squares = 0.0f;
        for (int64_t c = lane; c < a.D; c += WARP) squares += x.before(c) * x.before(c);
        scale = 1.0f / sqrtf(warp_sum(squares) / (float)a.D + a.eps);
        if (lane == 0) x.rstd() = scale;
    }
    const auto normed = [&](int64_t c) {
        return x.gain ? x.before(c) * scale * x.gain_of(c) : x.before(c);
    };
    for (int64_t i = lane; i < pairs; i += WARP) {
        const float first = normed(i), second = normed(i + pairs);
        const float cosine = x.by.cosine[i], sine = x.by.sine[i];
        store<rows, 1>({{first * cosine - second * sine}}, out, to + i);
        store<rows, 1>({{second * cosine + first * sine}}, out, to + i + pairs);
    }
    for (int64_t c = a.R + lane; c < a.D; c += WARP)
        store<rows, 1>({{normed(c)}}, out, to + c);
}

template <zero_type type, zero_type rows>
static __global__ void __launch_bounds__(THREADS)
    turn_rows(zero_turn a, zero_cuda_past past)
{
    SHARED(angles, by, 1);
    for (int64_t row = blockIdx.x; row < a.B * a.T; row += gridDim.x) {
        aim(a, past, row, by);
        for (int64_t h = threadIdx.x / WARP; h < a.H + a.K; h += WARPS)
            turn_head(one_head<type, rows>(a, *by, row, h));
    }
}

void zero_cuda_turn(cudaStream_t stream, const zero_turn *t)
{
    if (t->B * t->T <= 0) return;
    for_types(t->type, t->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        LAUNCH((turn_rows<type, rows>), block_count(t->B * t->T, ROW_SLOTS), THREADS,
               stream, *t, zero_cuda_past_of(t->past, t->B));
    });
}

/* ---- backward ---- */

template <zero_type type, zero_type rows>
static __device__ void turn_head_back(const one_head<type, rows> &x)
{
    const zero_turn &a = x.a;
    const int lane = (int)threadIdx.x % WARP;
    const int64_t pairs = a.R / 2;
    const float scale = x.gain ? x.rstd() : 1.0f;
    float along_x = 0.0f;
    if (x.gain) {
        for (int64_t c = lane; c < a.D; c += WARP)
            along_x += x.back(c) * x.gain_of(c) * (x.before(c) * scale);
        along_x = warp_sum(along_x) / (float)a.D;
    }
    const auto slope = [&](int64_t c) {
        const float g = x.back(c);
        if (!x.gain) return g;
        return scale * (g * x.gain_of(c) - x.before(c) * scale * along_x);
    };
    /* A pair is read before it is written, by the same lane. */
    for (int64_t i = lane; i < pairs; i += WARP) {
        const float first = slope(i), second = slope(i + pairs);
        store<rows, 1>({{first}}, (void *)x.d, x.from + i);
        store<rows, 1>({{second}}, (void *)x.d, x.from + i + pairs);
    }
    for (int64_t c = a.R + lane; c < a.D; c += WARP)
        store<rows, 1>({{slope(c)}}, (void *)x.d, x.from + c);
}

template <zero_type type, zero_type rows>
static __global__ void __launch_bounds__(THREADS)
    turn_rows_back(zero_turn a, zero_cuda_past past)
{
    SHARED(angles, by, 1);
    for (int64_t row = blockIdx.x; row < a.B * a.T; row += gridDim.x) {
        aim(a, past, row, by);
        for (int64_t h = threadIdx.x / WARP; h < a.H + a.K; h += WARPS)
            turn_head_back(one_head<type, rows>(a, *by, row, h));
    }
}

/* partial[part, 2 D]: a thread has a channel of gain_q and of gain_k. */
template <zero_type type, zero_type rows>
static __global__ void __launch_bounds__(THREADS)
    sum_gains(zero_turn a, zero_cuda_past past, int64_t part_rows, float *partial)
{
    SHARED(angles, by, 1);
    const int64_t c = (int64_t)blockIdx.y * THREADS + threadIdx.x;
    const int64_t begin = (int64_t)blockIdx.x * part_rows;
    const int64_t end = least(begin + part_rows, a.B * a.T);
    float of_q = 0.0f, of_k = 0.0f;
    for (int64_t row = begin; row < end; row++) {
        aim(a, past, row, by);
        for (int64_t h = 0; h < a.H + a.K && c < a.D; h++) {
            const one_head<type, rows> x(a, *by, row, h);
            float &sum = h < a.H ? of_q : of_k;
            sum += x.back(c) * (x.before(c) * x.rstd());
        }
    }
    if (c >= a.D) return;
    partial[blockIdx.x * 2 * a.D + c] = of_q;
    partial[blockIdx.x * 2 * a.D + a.D + c] = of_k;
}

void zero_cuda_turn_backward(cudaStream_t stream, const zero_turn *t, zero_cuda_room room)
{
    const int64_t n = t->B * t->T, fit = (int64_t)(room.bytes / sizeof(float)) / (2 * t->D);
    assert((!t->gain_q || t->slices == 1) && "models in slices are refused on devices");
    if (n <= 0) return;
    const zero_cuda_past past = zero_cuda_past_of(t->past, t->B);
    const int64_t wanted = zero_min(zero_min(zero_divide_up(n, 8), fit), 1024);
    const int64_t part_rows = zero_divide_up(n, wanted);
    const int64_t parts = zero_divide_up(n, part_rows);
    for_types(t->type, t->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        float *partial = (float *)room.memory;
        if (t->gain_q) {
            LAUNCH((sum_gains<type, rows>),
                   dim3((unsigned)parts, (unsigned)zero_divide_up(t->D, THREADS)), THREADS,
                   stream, *t, past, part_rows, partial);
            const zero_cuda_sums out = {{t->sums, NULL}, 0, t->accumulate};
            launch_columns<1>(stream, parts, 2 * t->D, 1, false,
                              parts_of_sums<1>{partial, 2 * t->D}, out);
        }
        LAUNCH((turn_rows_back<type, rows>), block_count(n, ROW_SLOTS), THREADS, stream, *t,
               past);
    });
}
