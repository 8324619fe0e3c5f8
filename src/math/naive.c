/* naive.c - the oracle: each operation as its definition says, one plain loop nest, sums in
 * double. It polls once per call. */
#include "math/naive.h"

#include "math/cpu_exponential.h"
#include "math/slices.h"

static zero_status naive_open(ZERO_UNUSED zero_math *math)
{
    return ZERO_OK;
}

static zero_status naive_sync(ZERO_UNUSED const zero_math *math)
{
    return ZERO_OK;
}

/* start + the sum over k from `first` on, of element (i, j) */
static double sum_k(const zero_gemm *g, int64_t i, int64_t j, int64_t first, int64_t k,
                    double start)
{
    for (int64_t p = first; p < first + k; p++) {
        double a = zero_naive_get(g->a_type, g->a,
                                  g->transpose_a ? p * g->lda + i : i * g->lda + p);
        double b = zero_naive_get(g->b_type, g->b,
                                  g->transpose_b ? j * g->ldb + p : p * g->ldb + j);
        start += a * b;
    }
    return start;
}

/* The tree over slices first .. first + count - 1. */
static float sum_slices(const zero_gemm *g, int64_t i, int64_t j, int64_t first,
                        int64_t count)
{
    if (count > 1) {
        int64_t left = zero_tree_left(count);
        return sum_slices(g, i, j, first, left) +
               sum_slices(g, i, j, first + left, count - left);
    }
    double sum = 0.0;
    for (int64_t p = 0, run; p < g->k / g->slices; p += run) {
        const int64_t place = zero_slices_place(g, first, p, &run);
        sum = sum_k(g, i, j, place, run, sum);
    }
    return (float)sum;
}

static void gemm(const zero_math *math, const zero_gemm *g)
{
    zero_gemm x = *g; /* with its strides */
    if (!g->lda) x.lda = g->transpose_a ? g->m : g->k;
    if (!g->ldb) x.ldb = g->transpose_b ? g->k : g->n;
    if (!g->ldc) x.ldc = g->n;
    if (g->slices > 1) zero_slices_check(g);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t at = i * x.ldc + j;
            const double start = g->accumulate ? zero_naive_get(g->c_type, g->c, at) : 0.0;
            zero_naive_set(g->c_type, g->c, at,
                           g->slices > 1 ? sum_slices(&x, i, j, 0, g->slices)
                                         : sum_k(&x, i, j, 0, g->k, start));
        }
    zero_math_poll(math);
}

static void add_bias(const zero_math *math, const zero_bias *b)
{
    for (int64_t i = 0; i < b->rows * b->cols; i++)
        zero_naive_set(b->rows_type, b->x, i,
                       zero_naive_get(b->rows_type, b->x, i) +
                           zero_naive_get(b->type, b->bias, i % b->cols));
    zero_math_poll(math);
}

/* dbias[cols] (+)= the sum of x's rows */
static void sum_rows(const zero_bias_grad *b, const void *x)
{
    for (int64_t c = 0; c < b->cols; c++) {
        double sum = b->accumulate ? b->dbias[c] : 0.0;
        for (int64_t r = 0; r < b->rows; r++)
            sum += zero_naive_get(b->rows_type, x, r * b->cols + c);
        b->dbias[c] = (float)sum;
    }
}

static void bias_backward(const zero_math *math, const zero_bias_grad *b)
{
    sum_rows(b, b->dy);
    zero_math_poll(math);
}

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y)
{
    for (int64_t b = 0; b < B; b++) {
        zero_rng stream = d->stream;
        stream.sample += (uint64_t)b;
        for (int64_t i = 0; i < n; i++) {
            float mask = 1.0f;
            if (d->p > 0.0f) zero_rng_dropout_plain(&stream, d->p, (uint64_t)i, 1, &mask);
            zero_naive_set(rows_type, y, b * n + i,
                           zero_naive_get(rows_type, x, b * n + i) * mask);
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
        float mask = 1.0f, in = (float)zero_naive_get(b->rows_type, b->in, i);
        if (b->bias) in += (float)zero_naive_get(b->type, b->bias, i % b->cols);
        if (b->dropout.p > 0.0f)
            zero_rng_dropout_plain(&stream, b->dropout.p, (uint64_t)(i % n), 1, &mask);
        zero_naive_set(b->rows_type, b->out, i,
                       zero_naive_get(b->rows_type, b->residual, i) + in * mask);
    }
    zero_math_poll(math);
}

static void bias_gelu(const zero_math *math, const zero_bias *b)
{
    add_bias(math, b);
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        double v = zero_naive_get(b->rows_type, b->x, i);
        double u = sqrt_2_over_pi * (v + 0.044715 * v * v * v);
        zero_naive_set(b->rows_type, b->y, i,
                       b->is_exact ? exact_gelu((float)v) : 0.5 * v * (1.0 + tanh(u)));
    }
    zero_math_poll(math);
}

static void bias_gelu_backward(const zero_math *math, const zero_bias_grad *b)
{
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        double v = zero_naive_get(b->rows_type, b->x, i);
        double u = sqrt_2_over_pi * (v + 0.044715 * v * v * v);
        double t = tanh(u), du = sqrt_2_over_pi * (1.0 + 3.0 * 0.044715 * v * v);
        double slope = 0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * du;
        if (b->is_exact) slope = exact_gelu_slope((float)v);
        double dy = zero_naive_get(b->rows_type, b->dy, i);
        zero_naive_set(b->rows_type, b->dx, i, dy * slope);
    }
    sum_rows(b, b->dx);
    zero_math_poll(math);
}

static double sigmoid(double z)
{
    return 1.0 / (1.0 + exp(-z));
}

static void swiglu(const zero_math *math, const zero_swiglu *s)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t i = 0; i < s->F; i++) {
            double z = zero_naive_get(s->rows_type, s->x, 2 * r * s->F + i);
            double u = zero_naive_get(s->rows_type, s->x, (2 * r + 1) * s->F + i);
            zero_naive_set(s->rows_type, s->y, r * s->F + i, z * sigmoid(z) * u);
        }
    zero_math_poll(math);
}

static void swiglu_backward(const zero_math *math, const zero_swiglu *s)
{
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t i = 0; i < s->F; i++) {
            const int64_t left = 2 * r * s->F + i, right = left + s->F;
            double z = zero_naive_get(s->rows_type, s->x, left);
            double u = zero_naive_get(s->rows_type, s->x, right);
            double dy = zero_naive_get(s->rows_type, s->d, left), p = sigmoid(z);
            zero_naive_set(s->rows_type, s->d, left, dy * u * p * (1.0 + z * (1.0 - p)));
            zero_naive_set(s->rows_type, s->d, right, dy * z * p);
        }
    zero_math_poll(math);
}

static void layernorm(const zero_math *math, const zero_layernorm_args *n)
{
    const double C = (double)n->C;
    for (int64_t r = 0; r < n->rows; r++) {
        double mu = 0.0, variance = 0.0;
        for (int64_t c = 0; n->mean && c < n->C; c++)
            mu += zero_naive_get(n->rows_type, n->x, r * n->C + c) / C;
        for (int64_t c = 0; c < n->C; c++) {
            double from_mu = zero_naive_get(n->rows_type, n->x, r * n->C + c) - mu;
            variance += from_mu * from_mu / C;
        }
        double scale = 1.0 / sqrt(variance + n->eps);
        for (int64_t c = 0; c < n->C; c++) {
            double gain = zero_naive_get(n->type, n->gain, c);
            double bias = n->bias ? zero_naive_get(n->type, n->bias, c) : 0.0;
            double x = zero_naive_get(n->rows_type, n->x, r * n->C + c);
            zero_naive_set(n->rows_type, n->y, r * n->C + c,
                           (x - mu) * scale * gain + bias);
        }
        if (n->mean) n->mean[r] = (float)mu;
        n->rstd[r] = (float)scale;
    }
    zero_math_poll(math);
}

static double mean_of(const zero_layernorm_grad_args *n, int64_t r)
{
    return n->mean ? n->mean[r] : 0.0;
}

/* With g = dy gain:  dx += rstd (g - mean(g) - xhat mean(g xhat)), for row r; nothing
 * depends on the mean of g where none is subtracted. */
static void layernorm_dx(const zero_layernorm_grad_args *n, int64_t r)
{
    const double mean = mean_of(n, r), rstd = n->rstd[r], C = (double)n->C;
    double along_one = 0.0, along_x = 0.0;
    for (int64_t c = 0; c < n->C; c++) {
        const int64_t at = r * n->C + c;
        double g =
            zero_naive_get(n->rows_type, n->dy, at) * zero_naive_get(n->type, n->gain, c);
        along_one += n->mean ? g / C : 0.0;
        along_x += g * (zero_naive_get(n->rows_type, n->x, at) - mean) * rstd / C;
    }
    for (int64_t c = 0; c < n->C; c++) {
        const int64_t at = r * n->C + c;
        double g =
            zero_naive_get(n->rows_type, n->dy, at) * zero_naive_get(n->type, n->gain, c);
        double xhat = (zero_naive_get(n->rows_type, n->x, at) - mean) * rstd;
        double dx = zero_naive_get(n->rows_type, n->dx, at) +
                    rstd * (g - along_one - xhat * along_x);
        zero_naive_set(n->rows_type, n->dx, at, dx);
    }
}

static void layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n)
{
    for (int64_t r = 0; r < n->rows; r++) layernorm_dx(n, r);
    for (int64_t c = 0; c < n->C; c++) {
        double gain_sum = n->accumulate ? n->dgain[c] : 0.0;
        double bias_sum = n->accumulate && n->dbias ? n->dbias[c] : 0.0;
        for (int64_t r = 0; r < n->rows; r++) {
            double x = zero_naive_get(n->rows_type, n->x, r * n->C + c);
            double dy = zero_naive_get(n->rows_type, n->dy, r * n->C + c);
            gain_sum += dy * ((x - mean_of(n, r)) * n->rstd[r]);
            bias_sum += dy;
        }
        n->dgain[c] = (float)gain_sum;
        if (n->dbias) n->dbias[c] = (float)bias_sum;
    }
    zero_math_poll(math);
}

/* The row of a token in a table of the words from `first` on, or -1: another rank has
 * it. */
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
            double sum = 0.0;
            if (row >= 0) sum = zero_naive_get(e->type, e->wte, row * C + c);
            if (row >= 0 && e->wpe) sum += zero_naive_get(e->type, e->wpe, t * C + c);
            zero_naive_set(e->rows_type, e->out, i * C + c, e->words > 0 ? sum + 0.0 : sum);
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
            const float dout = (float)zero_naive_get(e->rows_type, e->dout, i * C + c);
            if (row >= 0) e->dwte[row * C + c] += dout;
            if (e->dwpe) e->dwpe[i % e->T * C + c] += dout;
        }
    }
    zero_math_poll(math);
}

static void cross_entropy(const zero_math *math, const zero_cross_entropy *e)
{
    float *logits = e->logits;
    assert(e->gradient == ZERO_FP32);
    for (int64_t r = 0; r < e->rows; r++, logits += zero_logits_stride(e)) {
        double most = -INFINITY, sum = 0.0;
        if (e->targets[r] < 0) {
            e->loss[r] = 0.0f;
            for (int64_t j = 0; e->dscale != 0.0f && j < e->V; j++) logits[j] = 0.0f;
            continue;
        }
        for (int64_t j = 0; j < e->V; j++) most = fmax(most, logits[j]);
        for (int64_t j = 0; j < e->V; j++) sum += exp(logits[j] - most);
        e->loss[r] = (float)(log(sum) + most - logits[e->targets[r]]);
        if (e->dscale == 0.0f) continue;
        for (int64_t j = 0; j < e->V; j++) {
            double p = exp(logits[j] - most) / sum;
            logits[j] = (float)(e->dscale * (j == e->targets[r] ? p - 1.0 : p));
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
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .turn = zero_naive_turn,
    .turn_backward = zero_naive_turn_backward,
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
