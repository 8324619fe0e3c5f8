/* pointwise.cu - biases and GELU. 0.5 (1 + tanh u) is the logistic function of 2u, as the
 * cpu backend computes it. */
#include <math.h>

#include "gpu/columns.h"

/* ---- biases ---- */

template <zero_type type, zero_type rows> struct biasing {
    int64_t cols;
    const void *bias;
    void *x;

    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        const floats<W> more = load<type, W>(bias, col);
        floats<W> value = load<rows, W>(x, row * cols + col);
        for (int k = 0; k < W; k++) value.at[k] += more.at[k];
        store<rows, W>(value, x, row * cols + col);
    }
};

/* op<type, rows>(cols, bias, ...) over b's rows, together if bias, x and y are aligned. */
template <template <zero_type, zero_type> class operation, class... fields>
static void launch_biased(cudaStream_t stream, const zero_bias *b, const void *y,
                          fields... more)
{
    for_types(b->type, b->rows_type, [&](auto of, auto of_rows) {
        constexpr zero_type type = decltype(of)::value, rows = decltype(of_rows)::value;
        constexpr int W = together_of<rows>;
        const operation<type, rows> op = {b->cols, b->bias, more...};
        const bool together =
            aligned<W>(type, b->bias) && aligned<W>(rows, b->x) && aligned<W>(rows, y);
        launch_table<W>(stream, b->rows, b->cols, together, op);
    });
}

void zero_cuda_add_bias(cudaStream_t stream, const zero_bias *b)
{
    launch_biased<biasing>(stream, b, NULL, b->x);
}

template <zero_type rows> struct bias_terms {
    static constexpr int sums = 1;
    int64_t cols;
    const void *dy;

    template <int W> __device__ terms<1, W> at(int64_t row, int64_t col) const
    {
        return {{load<rows, W>(dy, row * cols + col)}};
    }
};

void zero_cuda_bias_backward(cudaStream_t stream, const zero_bias_grad *b,
                             zero_cuda_room room)
{
    const zero_cuda_sums out = {{b->dbias, NULL}, 0, b->accumulate};
    for_type(b->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        const bias_terms<rows> op = {b->cols, b->dy};
        sum_over_rows<W>(stream, b->rows, b->cols, aligned<W>(rows, b->dy), op, room, out);
    });
}

/* ---- GELU: u = sqrt(2/pi) (x + 0.044715 x^3) ---- */

#define TWO_U_X1 1.5957691216f   /* 2 sqrt(2/pi) */
#define TWO_U_X3 0.071354816273f /* 2 sqrt(2/pi) 0.044715 */

static inline __device__ float exponential_of_minus_2u(float x, float x_squared)
{
    return expf(x * (-TWO_U_X1 - TWO_U_X3 * x_squared));
}

static inline __device__ float gelu(float x, bool is_exact)
{
    if (is_exact) return 0.5f * x * erfcf(x * -0.70710678f);
    return x / (1.0f + exponential_of_minus_2u(x, x * x));
}

static inline __device__ float gelu_slope(float x, bool is_exact)
{
    /* Beyond 10 the derivative is 0 or 1 in floats, but x * x would overflow early. */
    float z = x < -10.0f ? -10.0f : x;
    z = z > 10.0f ? 10.0f : z;
    const float zz = z * z;
    if (is_exact)
        return 0.5f * erfcf(x * -0.70710678f) + z * 0.39894228f * expf(-0.5f * zz);
    const float s = 1.0f / (1.0f + exponential_of_minus_2u(z, zz));
    return s + s * (z * (1.0f - s) * (TWO_U_X1 + 3.0f * TWO_U_X3 * zz));
}

/* GELU is of x as it is stored. */
template <zero_type type, zero_type rows> struct bias_and_gelu {
    int64_t cols;
    const void *bias;
    void *x, *y;
    bool is_exact;

    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        const int64_t i = row * cols + col;
        const floats<W> more = load<type, W>(bias, col);
        floats<W> before = load<rows, W>(x, i), after;
        for (int k = 0; k < W; k++) {
            before.at[k] += more.at[k];
            after.at[k] = gelu(rounded<rows>(before.at[k]), is_exact);
        }
        store<rows, W>(before, x, i);
        store<rows, W>(after, y, i);
    }
};

void zero_cuda_bias_gelu(cudaStream_t stream, const zero_bias *b)
{
    launch_biased<bias_and_gelu>(stream, b, b->y, b->x, b->y, b->is_exact);
}

/* ---- SwiGLU ---- */

template <zero_type rows> struct gating {
    int64_t F;
    const void *x;
    void *y;

    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        const floats<W> z = load<rows, W>(x, 2 * row * F + col);
        floats<W> u = load<rows, W>(x, (2 * row + 1) * F + col);
        for (int k = 0; k < W; k++) u.at[k] *= z.at[k] / (1.0f + expf(-z.at[k]));
        store<rows, W>(u, y, row * F + col);
    }
};

void zero_cuda_swiglu(cudaStream_t stream, const zero_swiglu *s)
{
    for_type(s->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        launch_table<W>(stream, s->rows, s->F,
                        aligned<W>(rows, s->x) && aligned<W>(rows, s->y),
                        gating<rows>{s->F, s->x, s->y});
    });
}

template <zero_type rows> struct gating_backward {
    int64_t F;
    const void *x;
    void *d;

    /* With s = sigmoid(z):  dz = dy u s (1 + z (1 - s)),  du = dy z s. */
    template <int W> __device__ void at(int64_t row, int64_t col) const
    {
        const int64_t i = 2 * row * F + col;
        const floats<W> z = load<rows, W>(x, i);
        floats<W> u = load<rows, W>(x, i + F), dy = load<rows, W>(d, i);
        for (int k = 0; k < W; k++) {
            const float s = 1.0f / (1.0f + expf(-z.at[k])), of_y = dy.at[k];
            dy.at[k] = of_y * u.at[k] * (s * (1.0f + z.at[k] * (1.0f - s)));
            u.at[k] = of_y * (z.at[k] * s);
        }
        store<rows, W>(dy, d, i);
        store<rows, W>(u, d, i + F);
    }
};

void zero_cuda_swiglu_backward(cudaStream_t stream, const zero_swiglu *s)
{
    for_type(s->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        launch_table<W>(stream, s->rows, s->F,
                        aligned<W>(rows, s->x) && aligned<W>(rows, s->d),
                        gating_backward<rows>{s->F, s->x, s->d});
    });
}

/* ---- GELU, backward ---- */

/* dx, as it is stored, is also the bias' gradient of its row. */
template <zero_type rows> struct gelu_terms {
    static constexpr int sums = 1;
    int64_t cols;
    const void *x, *dy;
    void *dx; /* may be dy */
    bool is_exact;

    template <int W> __device__ terms<1, W> at(int64_t row, int64_t col) const
    {
        const int64_t i = row * cols + col;
        const floats<W> at = load<rows, W>(x, i);
        floats<W> d = load<rows, W>(dy, i);
        for (int k = 0; k < W; k++) d.at[k] *= gelu_slope(at.at[k], is_exact);
        store<rows, W>(d, dx, i);
        for (int k = 0; k < W; k++) d.at[k] = rounded<rows>(d.at[k]);
        return {{d}};
    }
};

void zero_cuda_bias_gelu_backward(cudaStream_t stream, const zero_bias_grad *b,
                                  zero_cuda_room room)
{
    const zero_cuda_sums out = {{b->dbias, NULL}, 0, b->accumulate};
    for_type(b->rows_type, [&](auto of) {
        constexpr zero_type rows = decltype(of)::value;
        constexpr int W = together_of<rows>;
        const bool together =
            aligned<W>(rows, b->x) && aligned<W>(rows, b->dy) && aligned<W>(rows, b->dx);
        const gelu_terms<rows> op = {b->cols, b->x, b->dy, b->dx, b->is_exact};
        sum_over_rows<W>(stream, b->rows, b->cols, together, op, room, out);
    });
}
