#include "bench_kernel_table.h"

static void *at_type(const bench_lanes *l, char *lane, int64_t at)
{
    return lane + (size_t)at * zero_type_size(l->type);
}

/* Rows of activations in a lane of floats, which is as long in 16 bits as in 32. */
static void *rows(const bench_lanes *l, int lane, int64_t at)
{
    return (char *)l->lane[lane] + (size_t)at * zero_type_size(l->rows_type);
}

static void layernorm(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->layernorm(&l->math, &(zero_layernorm_args){.eps = ZERO_LAYERNORM_EPS,
                                                           .rows = n / l->C,
                                                           .C = l->C,
                                                           .x = rows(l, BENCH_X, at),
                                                           .type = l->type,
                                                           .rows_type = l->rows_type,
                                                           .gain = l->param,
                                                           .bias = l->grad,
                                                           .y = rows(l, BENCH_Y, at),
                                                           .mean = l->lse,
                                                           .rstd = l->losses});
}

static void layernorm_backward(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->layernorm_backward(&l->math,
                                   &(zero_layernorm_grad_args){.rows = n / l->C,
                                                               .C = l->C,
                                                               .x = rows(l, BENCH_X, at),
                                                               .type = l->type,
                                                               .rows_type = l->rows_type,
                                                               .gain = l->param,
                                                               .mean = l->mean,
                                                               .rstd = l->rstd,
                                                               .dy = rows(l, BENCH_Y, at),
                                                               .dx = rows(l, BENCH_Z, at),
                                                               .dgain = l->sums,
                                                               .dbias = l->more_sums});
}

static void bias_gelu(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->bias_gelu(&l->math, &(zero_bias){.rows = n / (4 * l->C),
                                                 .cols = 4 * l->C,
                                                 .type = l->type,
                                                 .rows_type = l->rows_type,
                                                 .bias = l->param,
                                                 .x = rows(l, BENCH_X, at),
                                                 .y = rows(l, BENCH_Y, at)});
}

static void bias_gelu_backward(bench_lanes *l, int64_t at, int64_t n)
{
    void *dy = rows(l, BENCH_Y, at); /* in place, as in a block */
    l->backend->bias_gelu_backward(&l->math, &(zero_bias_grad){.rows = n / (4 * l->C),
                                                               .rows_type = l->rows_type,
                                                               .cols = 4 * l->C,
                                                               .x = rows(l, BENCH_X, at),
                                                               .dy = dy,
                                                               .dx = dy,
                                                               .dbias = l->sums});
}

static zero_dropout dropout_of(const bench_lanes *l)
{
    return (zero_dropout){{.purpose = ZERO_RNG_DROPOUT}, l->dropout};
}

static void add_branch(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->add_branch(&l->math, &(zero_branch){.dropout = dropout_of(l),
                                                    .B = l->rows / l->T,
                                                    .T = l->T,
                                                    .cols = n / l->rows,
                                                    .type = l->type,
                                                    .rows_type = l->rows_type,
                                                    .bias = l->param,
                                                    .residual = rows(l, BENCH_X, at),
                                                    .in = rows(l, BENCH_Y, at),
                                                    .out = rows(l, BENCH_Y, at)});
}

static void add_bias(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->add_bias(&l->math, &(zero_bias){.rows = n / (3 * l->C),
                                                .cols = 3 * l->C,
                                                .type = l->type,
                                                .rows_type = l->rows_type,
                                                .bias = l->param,
                                                .x = rows(l, BENCH_Y, at)});
}

static void bias_backward(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->bias_backward(&l->math, &(zero_bias_grad){.rows = n / (3 * l->C),
                                                          .rows_type = l->rows_type,
                                                          .cols = 3 * l->C,
                                                          .dy = rows(l, BENCH_X, at),
                                                          .dbias = l->sums});
}

static zero_attention attention_of(const bench_lanes *l)
{
    return (zero_attention){.B = l->rows / l->T,
                            .T = l->T,
                            .H = l->H,
                            .K = l->H,
                            .D = l->C / l->H,
                            .dropout = dropout_of(l),
                            .factors = l->type,
                            .rows_type = l->rows_type,
                            .lse = l->lse,
                            .work = l->work};
}

static void attention(bench_lanes *l, int64_t at, int64_t n)
{
    (void)n;
    zero_attention a = attention_of(l);
    zero_attention_rows(&a, rows(l, BENCH_X, at), NULL);
    a.out = rows(l, BENCH_Y, at);
    l->backend->attention(&l->math, &a);
}

static void attention_backward(bench_lanes *l, int64_t at, int64_t n)
{
    (void)n;
    zero_attention a = attention_of(l);
    zero_attention_rows(&a, rows(l, BENCH_X, at), rows(l, BENCH_M, at));
    a.out = rows(l, BENCH_Y, at);
    a.dout = rows(l, BENCH_Z, at);
    l->backend->attention_backward(&l->math, &a);
}

static void cross_entropy(bench_lanes *l, int64_t at, int64_t n)
{
    const bool halves = l->backend->halves_logits;
    l->backend->cross_entropy(
        &l->math, &(zero_cross_entropy){.rows = n / l->stride,
                                        .V = l->V,
                                        .stride = l->stride,
                                        .targets = l->tokens,
                                        .dscale = 1e-3f,
                                        .gradient = halves ? l->type : ZERO_FP32,
                                        .logits = l->lane[BENCH_X] + at,
                                        .loss = l->losses});
}

static void embedding(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->embedding(&l->math, &(zero_embedding){.B = n / l->C / l->T,
                                                      .T = l->T,
                                                      .C = l->C,
                                                      .tokens = l->tokens,
                                                      .type = l->type,
                                                      .rows_type = l->rows_type,
                                                      .wte = l->param,
                                                      .wpe = l->grad,
                                                      .out = rows(l, BENCH_X, at)});
}

static void embedding_backward(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->embedding_backward(&l->math,
                                   &(zero_embedding_grad){.B = n / l->C / l->T,
                                                          .T = l->T,
                                                          .C = l->C,
                                                          .tokens = l->tokens,
                                                          .rows_type = l->rows_type,
                                                          .dout = rows(l, BENCH_X, at),
                                                          .dwte = l->lane[BENCH_Y],
                                                          .dwpe = l->lane[BENCH_Z]});
}

static void clear(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->clear(&l->math, n, l->lane[BENCH_X] + at);
}

static void adamw(bench_lanes *l, int64_t at, int64_t n)
{
    const zero_adamw h = {.lr = 1e-4f,
                          .beta1 = 0.9f,
                          .beta2 = 0.95f,
                          .eps = 1e-8f,
                          .weight_decay = 0.1f,
                          .grad_scale = 1.0f,
                          .step = 10};
    void *param = l->type == ZERO_FP32 ? NULL : at_type(l, l->param, at);
    l->backend->adamw(&l->math, &h,
                      &(zero_adamw_arrays){.n = n,
                                           .type = l->type,
                                           .grad = at_type(l, l->grad, at),
                                           .master = l->lane[BENCH_X] + at,
                                           .m = l->lane[BENCH_M] + at,
                                           .v = l->lane[BENCH_V] + at,
                                           .param = param});
}

static void sum_squares(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->sum_squares(&l->math, l->type, n, at_type(l, l->grad, at), l->square);
}

static void round_group(bench_lanes *l, int64_t at, int64_t n)
{
    l->backend->round(&l->math, l->type, n, l->lane[BENCH_X] + at, at_type(l, l->grad, at));
}

static void accumulate(bench_lanes *l, int64_t at, int64_t n)
{
    float *sum = l->lane[BENCH_Y] + at;
    l->backend->accumulate(&l->math, l->type, n, sum, l->lane[BENCH_X] + at, sum);
}

/* clang-format off */
const bench_kernel bench_kernels[BENCH_KERNELS] = {
    {"layernorm", layernorm, BENCH_CHANNELS, 1, 1, 2, 0, 0, 0, 2, 1, BENCH_ALWAYS, false},
    {"layernorm backward", layernorm_backward, BENCH_CHANNELS, 1, 1, 4, 0, 0, 0, 2, 1, BENCH_ALWAYS, false},
    {"bias, gelu", bias_gelu, BENCH_CHANNELS, 4, 4, 3, 0, 0, 0, 4, 0, BENCH_ALWAYS, false},
    {"bias, gelu backward", bias_gelu_backward, BENCH_CHANNELS, 4, 4, 3, 0, 0, 0, 4, 0, BENCH_ALWAYS, false},
    {"add branch", add_branch, BENCH_CHANNELS, 1, 1, 3, 0, 0, 0, 2, 0, BENCH_ALWAYS, false},
    {"add bias", add_bias, BENCH_CHANNELS, 3, 3, 2, 0, 0, 0, 3, 0, BENCH_ALWAYS, false},
    {"bias backward", bias_backward, BENCH_CHANNELS, 3, 3, 1, 0, 0, 0, 5, 0, BENCH_ALWAYS, true},
    {"attention", attention, BENCH_CHANNELS, 1, 3, 0, 0, 0, 2, 1, 0, BENCH_ALWAYS, false},
    {"attention backward", attention_backward, BENCH_CHANNELS, 1, 3, 0, 0, 0, 4, 1, 0, BENCH_ALWAYS, false},
    {"cross-entropy", cross_entropy, BENCH_WORDS, 1, 1, 0, 2, 0, 0, 0, 1, BENCH_ALWAYS, false},
    {"embedding", embedding, BENCH_CHANNELS, 1, 1, 1, 0, 2, 0, 0, 1, BENCH_ALWAYS, false},
    {"embedding backward", embedding_backward, BENCH_CHANNELS, 1, 1, 1, 4, 0, 0, 0, 1, BENCH_ALWAYS, false},
    {"clear", clear, BENCH_CHANNELS, 1, 1, 0, 1, 0, 0, 0, 1, BENCH_ALWAYS, false},
    {"adamw", adamw, BENCH_PARAMETERS, 1, 1, 0, 7, 0, 0, 0, 1, BENCH_ALWAYS, false},
    {"sum of squares", sum_squares, BENCH_PARAMETERS, 1, 1, 0, 0, 1, 0, 0, 1, BENCH_ALWAYS, true},
    {"round", round_group, BENCH_PARAMETERS, 1, 1, 0, 1, 1, 0, 0, 1, BENCH_HALVES, false},
    {"accumulate", accumulate, BENCH_PARAMETERS, 1, 1, 0, 3, 0, 0, 0, 1, BENCH_SUMS, false},
};
/* clang-format on */
