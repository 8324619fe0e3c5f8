/* naive.c - the oracle: each operation as its definition says, one plain loop nest, sums in
 * double. It polls once per call. */
#include "math/naive.h"

#include <math.h>

#include "base/tree.h"
#include "math/slices.h"

static zero_status naive_open(zero_math *math)
{
    (void)math;
    return ZERO_OK;
}

static zero_status naive_sync(const zero_math *math)
{
    (void)math;
    return ZERO_OK;
}

/* A product with its strides. */
typedef struct {
    zero_gemm g;
    int64_t piece; /* of k: one slice's of one part */
} product;

/* start + the sum over k from `first` on, of element (i, j) */
static double sum_k(const zero_gemm *g, int64_t i, int64_t j, int64_t first, int64_t k,
                    double start)
{
    for (int64_t p = first; p < first + k; p++) {
        float a = g->transpose_a ? g->a[p * g->lda + i] : g->a[i * g->lda + p];
        float b = zero_naive_get(g->b_type, g->b,
                                 g->transpose_b ? j * g->ldb + p : p * g->ldb + j);
        start += (double)a * (double)b;
    }
    return start;
}

/* The tree over slices first .. first + count - 1. */
static float sum_slices(const product *x, int64_t i, int64_t j, int64_t first,
                        int64_t count)
{
    const zero_gemm *g = &x->g;
    if (count > 1) {
        int64_t left = zero_tree_left(count);
        return sum_slices(x, i, j, first, left) +
               sum_slices(x, i, j, first + left, count - left);
    }
    double sum = 0.0;
    for (int64_t p = first * x->piece; p < g->k; p += g->slices * x->piece)
        sum = sum_k(g, i, j, p, x->piece, sum);
    return (float)sum;
}

static product describe(const zero_gemm *g)
{
    product x = {.g = *g};
    if (!g->lda) x.g.lda = g->transpose_a ? g->m : g->k;
    if (!g->ldb) x.g.ldb = g->transpose_b ? g->k : g->n;
    if (!g->ldc) x.g.ldc = g->n;
    if (g->slices > 1) x.piece = zero_slices_piece(g);
    return x;
}

static void gemm(const zero_math *math, const zero_gemm *g)
{
    const product x = describe(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float *c = &g->c[i * x.g.ldc + j];
            if (x.piece > 0)
                *c = sum_slices(&x, i, j, 0, g->slices);
            else
                *c = (float)sum_k(&x.g, i, j, 0, g->k, g->accumulate ? (double)*c : 0.0);
        }
    zero_math_poll(math);
}

static void add_bias(const zero_math *math, int64_t rows, int64_t cols, zero_type type,
                     const void *bias, float *x)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) x[r * cols + c] += zero_naive_get(type, bias, c);
    zero_math_poll(math);
}

static void bias_backward(const zero_math *math, int64_t rows, int64_t cols,
                          const float *dy, bool accumulate, float *dbias)
{
    for (int64_t c = 0; c < cols; c++) {
        double sum = accumulate ? (double)dbias[c] : 0.0;
        for (int64_t r = 0; r < rows; r++) sum += (double)dy[r * cols + c];
        dbias[c] = (float)sum;
    }
    zero_math_poll(math);
}

static void dropout(const zero_math *math, const zero_dropout *d, int64_t B, int64_t n,
                    const float *x, float *y)
{
    for (int64_t b = 0; b < B; b++) {
        zero_rng stream = d->stream;
        stream.sample += (uint64_t)b;
        for (int64_t i = 0; i < n; i++) {
            float mask = 1.0f;
            if (d->p > 0.0f) zero_rng_dropout_plain(&stream, d->p, (uint64_t)i, 1, &mask);
            y[b * n + i] = x[b * n + i] * mask;
        }
    }
    zero_math_poll(math);
}

static const double sqrt_2_over_pi = 0.79788456080286535588;

static void add_branch(const zero_math *math, const zero_branch *b)
{
    const int64_t n = b->T * b->cols; /* of a sample */
    for (int64_t i = 0; i < b->B * n; i++) {
        zero_rng stream = b->dropout.stream;
        stream.sample += (uint64_t)(i / n);
        float mask = 1.0f, bias = zero_naive_get(b->type, b->bias, i % b->cols);
        if (b->dropout.p > 0.0f)
            zero_rng_dropout_plain(&stream, b->dropout.p, (uint64_t)(i % n), 1, &mask);
        b->out[i] = b->residual[i] + (b->in[i] + bias) * mask;
    }
    zero_math_poll(math);
}

static void bias_gelu(const zero_math *math, int64_t rows, int64_t cols, zero_type type,
                      const void *bias, float *x, float *y)
{
    for (int64_t i = 0; i < rows * cols; i++) {
        x[i] += zero_naive_get(type, bias, i % cols);
        double v = (double)x[i], u = sqrt_2_over_pi * (v + 0.044715 * v * v * v);
        y[i] = (float)(0.5 * v * (1.0 + tanh(u)));
    }
    zero_math_poll(math);
}

static void bias_gelu_backward(const zero_math *math, int64_t rows, int64_t cols,
                               const float *x, const float *dy, float *dx, bool accumulate,
                               float *dbias)
{
    for (int64_t i = 0; i < rows * cols; i++) {
        double v = (double)x[i], u = sqrt_2_over_pi * (v + 0.044715 * v * v * v);
        double t = tanh(u), du = sqrt_2_over_pi * (1.0 + 3.0 * 0.044715 * v * v);
        dx[i] = (float)((double)dy[i] * (0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * du));
    }
    bias_backward(math, rows, cols, dx, accumulate, dbias);
}

static void layernorm(const zero_math *math, const zero_layernorm_args *n)
{
    const double C = (double)n->C;
    for (int64_t r = 0; r < n->rows; r++) {
        const float *x = n->x + r * n->C;
        double mu = 0.0, variance = 0.0;
        for (int64_t c = 0; c < n->C; c++) mu += (double)x[c] / C;
        for (int64_t c = 0; c < n->C; c++)
            variance += ((double)x[c] - mu) * ((double)x[c] - mu) / C;
        double scale = 1.0 / sqrt(variance + (double)ZERO_LAYERNORM_EPS);
        for (int64_t c = 0; c < n->C; c++) {
            double gain = (double)zero_naive_get(n->type, n->gain, c);
            double bias = (double)zero_naive_get(n->type, n->bias, c);
            n->y[r * n->C + c] = (float)(((double)x[c] - mu) * scale * gain + bias);
        }
        n->mean[r] = (float)mu;
        n->rstd[r] = (float)scale;
    }
    zero_math_poll(math);
}

/* With g = dy gain:  dx += rstd (g - mean(g) - xhat mean(g xhat)), for row r. */
static void layernorm_dx(const zero_layernorm_grad_args *n, int64_t r)
{
    const float *x = n->x + r * n->C, *dy = n->dy + r * n->C;
    const double mean = (double)n->mean[r], rstd = (double)n->rstd[r], C = (double)n->C;
    float *dx = n->dx + r * n->C;
    double along_one = 0.0, along_x = 0.0;
    for (int64_t c = 0; c < n->C; c++) {
        double g = (double)dy[c] * (double)zero_naive_get(n->type, n->gain, c);
        along_one += g / C;
        along_x += g * ((double)x[c] - mean) * rstd / C;
    }
    for (int64_t c = 0; c < n->C; c++) {
        double g = (double)dy[c] * (double)zero_naive_get(n->type, n->gain, c);
        double xhat = ((double)x[c] - mean) * rstd;
        dx[c] = (float)((double)dx[c] + rstd * (g - along_one - xhat * along_x));
    }
}

static void layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n)
{
    for (int64_t r = 0; r < n->rows; r++) layernorm_dx(n, r);
    for (int64_t c = 0; c < n->C; c++) {
        double gain_sum = n->accumulate ? (double)n->dgain[c] : 0.0;
        double bias_sum = n->accumulate ? (double)n->dbias[c] : 0.0;
        for (int64_t r = 0; r < n->rows; r++) {
            double x = (double)n->x[r * n->C + c], dy = (double)n->dy[r * n->C + c];
            gain_sum += dy * ((x - (double)n->mean[r]) * (double)n->rstd[r]);
            bias_sum += dy;
        }
        n->dgain[c] = (float)gain_sum;
        n->dbias[c] = (float)bias_sum;
    }
    zero_math_poll(math);
}

/* The row of a token in a table of the words from `first` on, or -1: another rank has it. */
static int64_t row_of(int32_t token, int64_t first, int64_t words)
{
    if (words == 0) return token;
    return first <= token && token < first + words ? token - first : -1;
}

static void embedding(const zero_math *math, const zero_embedding *e)
{
    const int64_t C = e->C;
    for (int64_t i = 0; i < e->B * e->T; i++) {
        const int64_t row = row_of(e->tokens[i], e->first, e->words);
        const int64_t t = zero_embedding_position(e, i);
        for (int64_t c = 0; c < C; c++) {
            float sum = 0.0f;
            if (row >= 0)
                sum = zero_naive_get(e->type, e->wte, row * C + c) +
                      zero_naive_get(e->type, e->wpe, t * C + c);
            e->out[i * C + c] = e->words > 0 ? sum + 0.0f : sum;
        }
    }
    zero_math_poll(math);
}

static void embedding_backward(const zero_math *math, const zero_embedding_grad *e)
{
    const int64_t C = e->C;
    for (int64_t i = 0; i < e->B * e->T; i++) {
        const int64_t row = row_of(e->tokens[i], e->first, e->words);
        for (int64_t c = 0; c < C; c++) {
            if (row >= 0) e->dwte[row * C + c] += e->dout[i * C + c];
            e->dwpe[i % e->T * C + c] += e->dout[i * C + c];
        }
    }
    zero_math_poll(math);
}

static void cross_entropy(const zero_math *math, int64_t rows, int64_t V,
                          const int32_t *targets, float dscale, float *logits, float *loss)
{
    for (int64_t r = 0; r < rows; r++, logits += V) {
        double most = -INFINITY, sum = 0.0;
        for (int64_t j = 0; j < V; j++) most = fmax(most, (double)logits[j]);
        for (int64_t j = 0; j < V; j++) sum += exp((double)logits[j] - most);
        loss[r] = (float)(log(sum) + most - (double)logits[targets[r]]);
        if (dscale == 0.0f) continue;
        for (int64_t j = 0; j < V; j++) {
            double p = exp((double)logits[j] - most) / sum;
            logits[j] = (float)((double)dscale * (j == targets[r] ? p - 1.0 : p));
        }
    }
    zero_math_poll(math);
}

const zero_backend zero_backend_naive = {
    .name = "naive",
    .about = "plain loops, for checking",
    .open = naive_open,
    .sync = naive_sync,
    .gemm = gemm,
    .clear = zero_naive_clear,
    .add_bias = add_bias,
    .bias_backward = bias_backward,
    .add_branch = add_branch,
    .dropout = dropout,
    .bias_gelu = bias_gelu,
    .bias_gelu_backward = bias_gelu_backward,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .attention_workspace = zero_naive_attention_workspace,
    .attention = zero_naive_attention,
    .attention_backward = zero_naive_attention_backward,
    .remember = zero_naive_remember,
    .recall = zero_naive_recall,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .softmax_slices = zero_naive_softmax_slices,
    .softmax_loss = zero_naive_softmax_loss,
    .adamw = zero_naive_adamw,
    .sum_squares = zero_naive_sum_squares,
    .exact_squares = zero_naive_exact_squares,
    .round = zero_naive_round,
    .accumulate = zero_naive_accumulate,
};
