#include "bench_products.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/rng.h"
#include "math/blas.h"
#include "nn/gpt2.h"

#define CHUNK  256  /* rows of the logits at a time, as in nn/gpt2_head.c */
#define PERIOD 4096 /* of the numbers */

/* Numbers that no product can make large or denormal. */
static float *make_floats(int64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    float *x = malloc((size_t)n * sizeof *x);
    if (x) zero_rng_normal(&rng, 0, zero_min(n, PERIOD), x);
    for (int64_t i = PERIOD; x && i < n; i++) x[i] = x[i - PERIOD];
    return x;
}

static int64_t weight_floats(const bench_products *p)
{
    return zero_max(4 * p->hidden * p->hidden, p->vocab * p->hidden);
}

zero_status bench_products_init(bench_products *p, const zero_gpt2_shape *shape,
                                int64_t rows, int64_t microbatches)
{
    *p = (bench_products){.rows = rows,
                          .microbatches = microbatches,
                          .hidden = shape->hidden,
                          .layers = shape->layers,
                          .vocab = shape->vocab};
    int64_t left = zero_max(rows * 4 * p->hidden, zero_min(rows, CHUNK) * p->vocab);
    int64_t most = zero_max(left, weight_floats(p));
    p->left = make_floats(left);
    p->right = make_floats(most);
    p->result = make_floats(most);
    if (p->left && p->right && p->result) return ZERO_OK;
    bench_products_destroy(p);
    return zero_fail(ZERO_ERR_NOMEM, "no memory for products of %.0f MB",
                     4e-6 * (double)(left + 2 * most));
}

zero_status bench_products_use(bench_products *p, const zero_backend *backend,
                               const zero_math *math, zero_type type)
{
    int64_t n = weight_floats(p);
    p->weight = malloc((size_t)n * zero_type_size(type));
    if (!p->weight) return zero_fail(ZERO_ERR_NOMEM, "no memory for weights");
    zero_convert(ZERO_FP32, type, n, p->right, p->weight);
    p->backend = backend;
    p->math = math;
    p->type = type;
    return ZERO_OK;
}

void bench_products_destroy(bench_products *p)
{
    free(p->left);
    free(p->right);
    free(p->result);
    free(p->weight);
    *p = (bench_products){0};
}

static void multiply(const bench_products *p, zero_gemm g)
{
    g.a = p->left;
    if (!g.b) g.b = p->right;
    g.c = p->result;
    g.factors = p->type; /* as in nn/layers.c; BLAS ignores it */
    if (p->backend)
        p->backend->gemm(p->math, &g);
    else
        zero_blas_gemm(&g);
}

static void multiply_weight(const bench_products *p, zero_gemm g)
{
    g.b = p->weight;
    g.b_type = p->type;
    multiply(p, g);
}

/* Forward and both products of backward of y[rows,out] = x[rows,in] w[in,out]. */
static void run_linear(const bench_products *p, int64_t in, int64_t out)
{
    int64_t rows = p->rows;
    multiply_weight(p, (zero_gemm){.m = rows, .n = out, .k = in});
    multiply(p, (zero_gemm){.transpose_a = true, .m = in, .n = out, .k = rows});
    multiply_weight(p, (zero_gemm){.transpose_b = true, .m = rows, .n = in, .k = out});
}

static void run_head(const bench_products *p, int64_t rows)
{
    int64_t C = p->hidden, V = p->vocab;
    multiply_weight(p, (zero_gemm){.transpose_b = true, .m = rows, .n = V, .k = C});
    multiply(p, (zero_gemm){.transpose_a = true, .m = V, .n = C, .k = rows});
    multiply_weight(p, (zero_gemm){.m = rows, .n = C, .k = V});
}

static void run_microbatch(const bench_products *p)
{
    int64_t C = p->hidden;
    for (int64_t layer = 0; layer < p->layers; layer++) {
        run_linear(p, C, 3 * C);
        run_linear(p, C, C);
        run_linear(p, C, 4 * C);
        run_linear(p, 4 * C, C);
    }
    for (int64_t first = 0; first < p->rows; first += CHUNK)
        run_head(p, zero_min(p->rows - first, CHUNK));
}

zero_status bench_products_run(void *products)
{
    const bench_products *p = products;
    for (int64_t m = 0; m < p->microbatches; m++) run_microbatch(p);
    return ZERO_OK;
}

double bench_products_flops(const zero_gpt2_shape *shape, int64_t positions)
{
    return 6.0 * zero_gpt2_multiplied(shape) * (double)positions;
}
