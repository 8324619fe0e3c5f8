#include "bench_products.h"

#include "base/fail.h"
#include "base/number.h"
#include "base/rng.h"
#include "math/blas.h"
#include "math/device.h"
#include "nn/shape.h"

#define PERIOD 4096 /* of the numbers */

/* Numbers that no product can make large or denormal. */
static zero_status fill(bench_products *p, void *to, int64_t n, zero_type type)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    float normal[PERIOD], typed[PERIOD];
    zero_rng_normal(&rng, 0, PERIOD, normal);
    zero_convert(ZERO_FP32, type, PERIOD, normal, typed);
    return bench_block_fill(&p->block, to, (size_t)n * zero_type_size(type), typed,
                            PERIOD * zero_type_size(type));
}

/* Words with those that fill up a row of logits. */
static int64_t filled(const bench_products *p)
{
    return zero_round_up(p->vocab, p->by.logits.step);
}

/* Numbers of 16 bits are in the place of floats. */
static zero_type operand_type(const bench_products *p)
{
    return p->by.by_yardstick ? p->by.type : p->by.rows_type;
}

static zero_status take_memory(bench_products *p, int64_t left, int64_t weight)
{
    const size_t f = sizeof(float), typed = zero_type_size(p->by.type);
    const size_t operand = p->by.by_yardstick ? typed : f;
    int64_t most = zero_max(left, weight);
    ZERO_TRY(bench_block_init(
        &p->block, p->by.backend, p->by.math,
        bench_block_bytes(left, operand) + bench_block_bytes(most, operand) +
            bench_block_bytes(weight, typed) + bench_block_bytes(most, f)));
    p->left = bench_block_part(&p->block, left, operand);
    p->right = bench_block_part(&p->block, most, operand);
    p->weight = bench_block_part(&p->block, weight, typed);
    p->result = bench_block_part(&p->block, most, f);
    const int64_t halves = (int64_t)(operand / zero_type_size(operand_type(p)));
    ZERO_TRY(fill(p, p->left, left * halves, operand_type(p)));
    ZERO_TRY(fill(p, p->right, most * halves, operand_type(p)));
    return fill(p, p->weight, weight, p->by.type);
}

zero_status bench_products_init(bench_products *p, const bench_products_by *by,
                                const zero_shape *shape, int64_t rows, int64_t microbatches)
{
    *p = (bench_products){.by = *by,
                          .rows = rows,
                          .microbatches = microbatches,
                          .hidden = shape->hidden,
                          .layers = shape->layers,
                          .vocab = shape->vocab};
    if (p->by.logits.rows == 0) p->by.logits = zero_device_logits(zero_device_name_at(0));
    const int64_t words = filled(p);
    int64_t left =
        zero_max(rows * 4 * p->hidden, zero_min(rows, p->by.logits.rows) * words);
    return take_memory(p, left, zero_max(4 * p->hidden * p->hidden, words * p->hidden));
}

void bench_products_destroy(bench_products *p)
{
    bench_block_destroy(&p->block);
    *p = (bench_products){0};
}

static void multiply(const bench_products *p, zero_gemm g)
{
    g.a = p->left;
    if (!g.b) {
        g.b = p->right;
        g.b_type = operand_type(p);
    }
    g.c = p->result;
    g.factors = p->by.type; /* as in nn/layers.c; BLAS ignores it */
    if (p->by.by_yardstick)
        p->by.backend->yardstick->product(p->by.math, &g);
    else if (p->by.backend)
        p->by.backend->gemm(p->by.math, &g);
    else
        zero_blas_gemm(&g);
}

static void multiply_weight(const bench_products *p, zero_gemm g)
{
    g.b = p->weight;
    g.b_type = p->by.type;
    multiply(p, g);
}

/* Forward and both products of backward of y[rows,out] = x[rows,in] w[in,out]. */
static void run_linear(const bench_products *p, int64_t in, int64_t out)
{
    const int64_t rows = p->rows;
    const zero_type t = p->by.rows_type;
    multiply_weight(p, (zero_gemm){.m = rows, .n = out, .k = in, .a_type = t, .c_type = t});
    multiply(p,
             (zero_gemm){.transpose_a = true, .m = in, .n = out, .k = rows, .a_type = t});
    multiply_weight(
        p,
        (zero_gemm){
            .transpose_b = true, .m = rows, .n = in, .k = out, .a_type = t, .c_type = t});
}

/* Logits are fp32, their gradient what the backend makes of it: in the same places, or by the yardstick
 * factors without gaps. */
static void run_head(const bench_products *p, int64_t rows)
{
    const bool whole = p->by.by_yardstick;
    const int64_t C = p->hidden, stride = filled(p), V = whole ? stride : p->vocab;
    const zero_type t = p->by.rows_type;
    const bool halves = p->by.backend && p->by.backend->halves_logits;
    const zero_type d = halves ? p->by.type : ZERO_FP32;
    const int64_t apart = whole ? 0 : stride * (int64_t)(sizeof(float) / zero_type_size(d));
    multiply_weight(
        p, (zero_gemm){
               .transpose_b = true, .m = rows, .n = V, .k = C, .a_type = t, .ldc = stride});
    multiply(
        p, (zero_gemm){
               .transpose_a = true, .m = V, .n = C, .k = rows, .a_type = d, .lda = apart});
    multiply_weight(
        p, (zero_gemm){.m = rows, .n = C, .k = V, .a_type = d, .lda = apart, .c_type = t});
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
    for (int64_t first = 0; first < p->rows; first += p->by.logits.rows)
        run_head(p, zero_min(p->rows - first, p->by.logits.rows));
}

zero_status bench_products_run(void *products)
{
    const bench_products *p = products;
    for (int64_t m = 0; m < p->microbatches; m++) run_microbatch(p);
    return p->by.backend ? p->by.backend->sync(p->by.math) : ZERO_OK;
}

double bench_products_flops(const zero_shape *shape, int64_t positions)
{
    return 6.0 * zero_shape_multiplied(shape) * (double)positions;
}
