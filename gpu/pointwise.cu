/* pointwise.cu - biases and GELU. 0.5 (1 + tanh u) is the logistic function of 2u, as the
 * cpu backend computes it. */
#include <math.h>

#include "gpu/columns.h"

/* ---- biases ---- */

template <zero_type type> struct biasing {
    int64_t cols;
    const void *bias;
    float *x;

    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        const floats<W> more = load<type, W>(bias, col);
        floats<W> value = load<ZERO_FP32, W>(x, row * cols + col);
        for (int k = 0; k < W; k++) value.at[k] += more.at[k];
        store<ZERO_FP32, W>(value, x, row * cols + col);
    }
};

void zero_cuda_add_bias(cudaStream_t stream, const zero_bias *b)
{
    const bool together = aligned(b->type, b->bias) && aligned(ZERO_FP32, b->x);
    for_type(b->type, [&](auto of) {
        const biasing<decltype(of)::value> op = {b->cols, b->bias, (float *)b->x};
        launch_table(stream, b->rows, b->cols, together, op);
    });
}

struct bias_terms {
    static constexpr int sums = 1;
    int64_t cols;
    const float *dy;

    template <int W> __device__ terms<1, W> at(int64_t row, int64_t col) const
    {
        return {{load<ZERO_FP32, W>(dy, row * cols + col)}};
    }
};

void zero_cuda_bias_backward(cudaStream_t stream, const zero_bias_grad *b,
                             zero_cuda_room room)
{
    const bias_terms op = {b->cols, (const float *)b->dy};
    const zero_cuda_sums out = {{b->dbias, NULL}, 0, b->accumulate};
    sum_over_rows(stream, b->rows, b->cols, aligned(ZERO_FP32, b->dy), op, room, out);
}

/* ---- GELU: u = sqrt(2/pi) (x + 0.044715 x^3) ---- */

#define TWO_U_X1 1.5957691216f   /* 2 sqrt(2/pi) */
#define TWO_U_X3 0.071354816273f /* 2 sqrt(2/pi) 0.044715 */

static inline __device__ float exponential_of_minus_2u(float x, float x_squared)
{
    return expf(x * (-TWO_U_X1 - TWO_U_X3 * x_squared));
}

static inline __device__ float gelu(float x)
{
    return x / (1.0f + exponential_of_minus_2u(x, x * x));
}

static inline __device__ float gelu_slope(float x)
{
    /* Beyond 10 the derivative is 0 or 1 in floats, but x * x would overflow early. */
    float z = x < -10.0f ? -10.0f : x;
    z = z > 10.0f ? 10.0f : z;
    const float zz = z * z, s = 1.0f / (1.0f + exponential_of_minus_2u(z, zz));
    return s + s * (z * (1.0f - s) * (TWO_U_X1 + 3.0f * TWO_U_X3 * zz));
}

template <zero_type type> struct bias_and_gelu {
    int64_t cols;
    const void *bias;
    float *x, *y;

    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        const int64_t i = row * cols + col;
        const floats<W> more = load<type, W>(bias, col);
        floats<W> before = load<ZERO_FP32, W>(x, i), after;
        for (int k = 0; k < W; k++) {
            before.at[k] += more.at[k];
            after.at[k] = gelu(before.at[k]);
        }
        store<ZERO_FP32, W>(before, x, i);
        store<ZERO_FP32, W>(after, y, i);
    }
};

void zero_cuda_bias_gelu(cudaStream_t stream, const zero_bias *b)
{
    const bool together =
        aligned(b->type, b->bias) && aligned(ZERO_FP32, b->x) && aligned(ZERO_FP32, b->y);
    for_type(b->type, [&](auto of) {
        const bias_and_gelu<decltype(of)::value> op = {b->cols, b->bias, (float *)b->x,
                                                       (float *)b->y};
        launch_table(stream, b->rows, b->cols, together, op);
    });
}

/* dx, which is stored, is also the bias' gradient of its row. */
struct gelu_terms {
    static constexpr int sums = 1;
    int64_t cols;
    const float *x, *dy;
    float *dx; /* may be dy */

    template <int W> __device__ terms<1, W> at(int64_t row, int64_t col) const
    {
        const int64_t i = row * cols + col;
        const floats<W> at = load<ZERO_FP32, W>(x, i);
        floats<W> d = load<ZERO_FP32, W>(dy, i);
        for (int k = 0; k < W; k++) d.at[k] *= gelu_slope(at.at[k]);
        store<ZERO_FP32, W>(d, dx, i);
        return {{d}};
    }
};

void zero_cuda_bias_gelu_backward(cudaStream_t stream, const zero_bias_grad *b,
                                  zero_cuda_room room)
{
    const bool together =
        aligned(ZERO_FP32, b->x) && aligned(ZERO_FP32, b->dy) && aligned(ZERO_FP32, b->dx);
    const gelu_terms op = {b->cols, (const float *)b->x, (const float *)b->dy,
                           (float *)b->dx};
    const zero_cuda_sums out = {{b->dbias, NULL}, 0, b->accumulate};
    sum_over_rows(stream, b->rows, b->cols, together, op, room, out);
}
