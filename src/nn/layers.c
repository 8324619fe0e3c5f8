#include "nn/layers.h"

#include "nn/share.h"

void zero_poll(const zero_call *c)
{
    if (c && c->math) zero_math_poll(c->math);
}

const float *zero_weight_floats(const zero_unit *u, const zero_call *c, int k, int t,
                                float *room)
{
    if (!u || !c || !c->param[k] || (c->type != ZERO_FP32 && !room)) return NULL;
    const zero_tensor *tensor = &u->tensors[k][t];
    const void *weight = zero_weight(u, c, k, t);
    if (c->type == ZERO_FP32) return weight;
    zero_convert(c->type, ZERO_FP32, tensor->rows * tensor->cols, weight, room);
    return room;
}

void zero_multiply(const zero_call *c, const zero_gemm *g)
{
    if (c && g && g->a && g->b && g->c) c->backend->gemm(c->math, g);
}

bool zero_call_has_few_rows(const zero_call *c, int64_t rows)
{
    bool generates = !c->training && !c->batch->targets;
    return generates && (c->batch->past || rows <= ZERO_FEW_ROWS);
}

static const zero_tensor *weight_of(const zero_linear *l)
{
    return &l->unit->tensors[l->group][l->weight];
}

int64_t zero_linear_inputs(const zero_linear *l)
{
    const zero_tensor *w = weight_of(l);
    return w->out_in ? w->cols : w->rows;
}

int64_t zero_linear_outputs(const zero_linear *l)
{
    const zero_tensor *w = weight_of(l);
    int64_t n = w->out_in ? w->rows : w->cols;
    for (int i = 1; i < l->stacked; i++) n += w[i].rows;
    return n;
}

static const void *weights_of(const zero_linear *l)
{
    return zero_weight(l->unit, l->call, l->group, l->weight);
}

/* y[rows,out] = x[rows,in] W. Where the weight is cut along the sum, the sum is a tree over
 * this rank's slices: a subtree of the whole tree. */
static zero_gemm product_of(const zero_linear *l, const void *x, zero_type y_type, void *y)
{
    const zero_call *c = l->call;
    const zero_share *share = &l->unit->share;
    const zero_tensor *w = weight_of(l);
    zero_gemm g = {.transpose_b = w->out_in,
                   .factors = c->type,
                   .m = l->rows,
                   .n = zero_linear_outputs(l),
                   .k = zero_linear_inputs(l),
                   .a = x,
                   .b = weights_of(l),
                   .a_type = l->unit->activations,
                   .b_type = c->type,
                   .c_type = y_type,
                   .c = y,
                   .slices = zero_share_one_sum(share),
                   .few_rows = zero_call_has_few_rows(c, l->rows)};
    if (zero_share_has_parts(share) &&
        w->cut == (w->out_in ? ZERO_CUT_COLS : ZERO_CUT_ROWS))
        g.slices = zero_share_slices(share);
    return g;
}

void zero_linear_product(const zero_linear *l, const void *x, zero_type y_type, void *y)
{
    const zero_gemm g = product_of(l, x, y_type, y);
    l->call->backend->gemm(l->call->math, &g);
}

void zero_linear_weight_gradient(const zero_linear *l, const void *x, const void *dy)
{
    const zero_call *c = l->call;
    const bool out_in = weight_of(l)->out_in;
    const int64_t in = zero_linear_inputs(l), out = zero_linear_outputs(l);
    c->backend->gemm(c->math,
                     &(zero_gemm){.transpose_a = true,
                                  .accumulate = c->accumulate[l->group],
                                  .factors = c->type,
                                  .m = out_in ? out : in,
                                  .n = out_in ? in : out,
                                  .k = l->rows,
                                  .a_type = l->unit->activations,
                                  .a = out_in ? dy : x,
                                  .b_type = l->unit->activations,
                                  .b = out_in ? x : dy,
                                  .c = zero_weight_grad(l->unit, c, l->group, l->weight),
                                  .slices = zero_share_one_sum(&l->unit->share)});
}

/* Where outputs are cut, a slice of the sum has its piece of each part: of q, of k, of
 * v. */
static zero_gemm input_product_of(const zero_linear *l, const void *dy, zero_type dx_type,
                                  void *dx)
{
    const zero_call *c = l->call;
    const zero_share *share = &l->unit->share;
    const zero_tensor *w = weight_of(l);
    zero_gemm g = {.transpose_b = !w->out_in,
                   .factors = c->type,
                   .m = l->rows,
                   .n = zero_linear_inputs(l),
                   .k = zero_linear_outputs(l),
                   .a = dy,
                   .b = weights_of(l),
                   .a_type = l->unit->activations,
                   .b_type = c->type,
                   .c_type = dx_type,
                   .c = dx,
                   .slices = zero_share_one_sum(share)};
    if (!zero_share_has_parts(share) ||
        w->cut != (w->out_in ? ZERO_CUT_ROWS : ZERO_CUT_COLS))
        return g;
    g.slices = zero_share_slices(share);
    g.slice_parts = w->out_in ? l->stacked : (int)zero_cut_parts(w);
    for (int i = 0; w->out_in && i < l->stacked; i++) g.part[i] = w[i].rows;
    return g;
}

void zero_linear_input_gradient(const zero_linear *l, const void *dy, zero_type dx_type,
                                void *dx, int64_t stride)
{
    zero_gemm g = input_product_of(l, dy, dx_type, dx);
    g.ldc = stride;
    l->call->backend->gemm(l->call->math, &g);
}

static int bias_of(const zero_linear *l)
{
    return l->bias != 0 ? l->bias : l->weight + 1;
}

const void *zero_linear_bias(const zero_linear *l)
{
    return l->bias < 0 ? NULL : zero_weight(l->unit, l->call, l->group, bias_of(l));
}

static float *bias_grad(const zero_linear *l)
{
    return zero_weight_grad(l->unit, l->call, l->group, bias_of(l));
}

static bool is_missing(const zero_unit *unit, const zero_call *call, const void *a,
                       const void *b)
{
    return !unit || !call || !a || !b;
}

static zero_bias added_bias(const zero_linear *l, void *x, void *y)
{
    return (zero_bias){.rows = l->rows,
                       .cols = zero_linear_outputs(l),
                       .type = l->call->type,
                       .rows_type = l->unit->activations,
                       .bias = zero_linear_bias(l),
                       .x = x,
                       .y = y};
}

void zero_linear_forward(const zero_linear *l, const void *x, void *y)
{
    if (!l || is_missing(l->unit, l->call, x, y)) return;
    const zero_backend *ops = l->call->backend;
    const zero_math *math = l->call->math;
    const zero_gemm g = product_of(l, x, l->unit->activations, y);
    const zero_bias b = added_bias(l, y, NULL);
    if (ops->fused && b.bias) {
        ops->fused->add_bias(math, &g, &b);
        return;
    }
    ops->gemm(math, &g);
    if (b.bias) ops->add_bias(math, &b);
}

void zero_linear_gelu(const zero_linear *l, bool is_exact, const void *x, void *before,
                      void *after)
{
    const zero_backend *ops = l->call->backend;
    const zero_math *math = l->call->math;
    const zero_gemm g = product_of(l, x, l->unit->activations, before);
    zero_bias b = added_bias(l, before, after);
    b.is_exact = is_exact;
    if (ops->fused) {
        ops->fused->bias_gelu(math, &g, &b);
        return;
    }
    ops->gemm(math, &g);
    ops->bias_gelu(math, &b);
}

void zero_linear_branch(const zero_linear *l, const void *x, const zero_branch *b)
{
    const zero_backend *ops = l->call->backend;
    const zero_math *math = l->call->math;
    const zero_gemm g = product_of(l, x, l->unit->activations, b->out);
    if (ops->fused) {
        ops->fused->add_branch(math, &g, b);
        return;
    }
    ops->gemm(math, &g);
    ops->add_branch(math, b);
}

void zero_linear_gelu_backward(const zero_linear *l, bool is_exact, const void *dy,
                               const zero_linear *fc, const void *before, void *d)
{
    const zero_call *c = l->call;
    const zero_type activations = l->unit->activations;
    const zero_gemm g = input_product_of(l, dy, activations, d);
    const zero_bias_grad b = {.rows = fc->rows,
                              .cols = zero_linear_outputs(fc),
                              .rows_type = activations,
                              .x = before,
                              .dy = d,
                              .dx = d,
                              .is_exact = is_exact,
                              .accumulate = c->accumulate[fc->group],
                              .dbias = bias_grad(fc)};
    if (c->backend->fused) {
        c->backend->fused->bias_gelu_backward(c->math, &g, &b);
        return;
    }
    c->backend->gemm(c->math, &g);
    c->backend->bias_gelu_backward(c->math, &b);
}

/* The bias comes first: dy has just been written, and part of it may still be in a
 * cache. */
void zero_linear_parameter_gradients(const zero_linear *l, const void *x, const void *dy)
{
    const zero_call *c = l->call;
    if (l->bias >= 0)
        c->backend->bias_backward(c->math,
                                  &(zero_bias_grad){.rows = l->rows,
                                                    .cols = zero_linear_outputs(l),
                                                    .rows_type = l->unit->activations,
                                                    .dy = dy,
                                                    .accumulate = c->accumulate[l->group],
                                                    .dbias = bias_grad(l)});
    zero_linear_weight_gradient(l, x, dy);
}

void zero_linear_backward(const zero_linear *l, const void *x, const void *dy, void *dx)
{
    if (!l || is_missing(l->unit, l->call, x, dy)) return;
    zero_linear_parameter_gradients(l, x, dy);
    if (dx) zero_linear_input_gradient(l, dy, l->unit->activations, dx, 0);
}

void zero_layer_norm_forward(const zero_layer_norm *n, const void *x, void *y,
                             float *moments)
{
    if (!n || is_missing(n->unit, n->call, x, y) || !moments) return;
    const zero_call *c = n->call;
    c->backend->layernorm(
        c->math,
        &(zero_layernorm_args){
            .rows = n->rows,
            .C = n->unit->tensors[n->group][n->gain].cols,
            .x = x,
            .type = c->type,
            .rows_type = n->unit->activations,
            .eps = n->eps > 0.0f ? n->eps : 1e-5f,
            .gain = zero_weight(n->unit, c, n->group, n->gain),
            .bias = n->is_rms ? NULL : zero_weight(n->unit, c, n->group, n->gain + 1),
            .y = y,
            .mean = n->is_rms ? NULL : moments,
            .rstd = n->is_rms ? moments : moments + n->rows});
}

void zero_layer_norm_backward(const zero_layer_norm *n, const void *x, const float *moments,
                              const void *dy, void *dx)
{
    if (!n || is_missing(n->unit, n->call, x, moments) || !dy || !dx) return;
    const zero_call *c = n->call;
    float *dgain = zero_weight_grad(n->unit, c, n->group, n->gain);
    c->backend->layernorm_backward(
        c->math,
        &(zero_layernorm_grad_args){
            .rows = n->rows,
            .C = n->unit->tensors[n->group][n->gain].cols,
            .x = x,
            .type = c->type,
            .rows_type = n->unit->activations,
            .gain = zero_weight(n->unit, c, n->group, n->gain),
            .mean = n->is_rms ? NULL : moments,
            .rstd = n->is_rms ? moments : moments + n->rows,
            .dy = dy,
            .dx = dx,
            .accumulate = c->accumulate[n->group],
            .dgain = dgain,
            .dbias =
                n->is_rms ? NULL : zero_weight_grad(n->unit, c, n->group, n->gain + 1)});
}

void zero_mask_apply(const zero_mask *m, int64_t n, const void *x, void *y)
{
    if (!m || !m->call || !x || !y) return;
    const zero_call *c = m->call;
    const zero_batch *b = c->batch;
    const zero_dropout d = {.p = c->training ? m->p : 0.0f,
                            .stream = {.seed = (uint64_t)m->seed,
                                       .purpose = ZERO_RNG_MASK,
                                       .step = (uint64_t)b->step,
                                       .sample = (uint64_t)b->first_sample,
                                       .tensor = (uint64_t)m->number}};
    if (d.p > 0.0f)
        c->backend->dropout(c->math, &d, m->type, b->B, n, x, y);
    else if (x != y)
        memmove(y, x, (size_t)(b->B * n) * zero_type_size(m->type));
}
