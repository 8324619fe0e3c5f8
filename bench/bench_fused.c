#include "bench_fused.h"

/* c = a w, all of them lanes: rows of activations, and weights. */
static zero_gemm product_of(const bench_lanes *l, int64_t in, int64_t out)
{
    return (zero_gemm){.factors = l->type,
                       .m = l->rows,
                       .n = out,
                       .k = in,
                       .a = l->lane[BENCH_X],
                       .b = l->param,
                       .c = l->lane[BENCH_Y],
                       .a_type = l->rows_type,
                       .b_type = l->type,
                       .c_type = l->rows_type};
}

static zero_bias bias_of(const bench_lanes *l, int64_t cols)
{
    return (zero_bias){.rows = l->rows,
                       .cols = cols,
                       .type = l->type,
                       .rows_type = l->rows_type,
                       .bias = l->grad,
                       .x = l->lane[BENCH_Y],
                       .y = l->lane[BENCH_Z]};
}

static void add_bias(const bench_fused *f)
{
    const bench_lanes *l = f->lanes;
    const zero_gemm g = product_of(l, l->C, 3 * l->C);
    const zero_bias b = bias_of(l, 3 * l->C);
    if (!f->by_two_calls) {
        l->backend->fused->add_bias(&l->math, &g, &b);
        return;
    }
    l->backend->gemm(&l->math, &g);
    l->backend->add_bias(&l->math, &b);
}

static void bias_gelu(const bench_fused *f)
{
    const bench_lanes *l = f->lanes;
    const zero_gemm g = product_of(l, l->C, 4 * l->C);
    const zero_bias b = bias_of(l, 4 * l->C);
    if (!f->by_two_calls) {
        l->backend->fused->bias_gelu(&l->math, &g, &b);
        return;
    }
    l->backend->gemm(&l->math, &g);
    l->backend->bias_gelu(&l->math, &b);
}

static void add_branch(const bench_fused *f, int64_t in)
{
    const bench_lanes *l = f->lanes;
    const zero_gemm g = product_of(l, in, l->C);
    const zero_branch b = {.dropout = {{.purpose = ZERO_RNG_DROPOUT}, l->dropout},
                           .B = l->rows / l->T,
                           .T = l->T,
                           .cols = l->C,
                           .type = l->type,
                           .rows_type = l->rows_type,
                           .bias = l->grad,
                           .residual = l->lane[BENCH_Z],
                           .in = g.c,
                           .out = g.c};
    if (!f->by_two_calls) {
        l->backend->fused->add_branch(&l->math, &g, &b);
        return;
    }
    l->backend->gemm(&l->math, &g);
    l->backend->add_branch(&l->math, &b);
}

static void bias_gelu_backward(const bench_fused *f)
{
    const bench_lanes *l = f->lanes;
    zero_gemm g = product_of(l, l->C, 4 * l->C);
    g.transpose_b = true;
    const zero_bias_grad b = {.rows = l->rows,
                              .cols = 4 * l->C,
                              .rows_type = l->rows_type,
                              .x = l->lane[BENCH_Z],
                              .dy = g.c,
                              .dx = g.c,
                              .dbias = l->sums};
    if (!f->by_two_calls) {
        l->backend->fused->bias_gelu_backward(&l->math, &g, &b);
        return;
    }
    l->backend->gemm(&l->math, &g);
    l->backend->bias_gelu_backward(&l->math, &b);
}

zero_status bench_fused_run(void *fused)
{
    const bench_fused *f = fused;
    add_bias(f);
    add_branch(f, f->lanes->C);
    bias_gelu(f);
    add_branch(f, 4 * f->lanes->C);
    bias_gelu_backward(f);
    return f->lanes->backend->sync(&f->lanes->math);
}
