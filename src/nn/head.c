/* head.c - the last unit: final norm, logits by a table of words, cross-entropy.
 *
 * The logits of a whole microbatch, [B*T, V], would be the largest array of a small model,
 * so rows are taken in chunks: a chunk's logits become its loss and its gradient at once.
 * When training, forward therefore stops at the norm, and backward goes through the chunks.
 * A device likes larger ones (math/device.c), with rows of logits that begin at aligned
 * addresses, and reads d(logits) as the factors of its products. */
#include "nn/head.h"

#include "math/device.h"
#include "nn/layers.h"
#include "nn/share.h"

/* Floats from row to row of a chunk's logits. */
static int64_t stride_of(const zero_unit *u)
{
    return zero_round_up(zero_head_words(u)->rows, u->logits.step);
}

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_shape *s = zero_shape_of(u);
    int64_t rows = B * T, words = zero_head_words(u)->rows;
    const int64_t room = zero_unit_room(u, rows * s->hidden);
    zero_unit_sizes n = {.saved = room + 2 * rows,
                         .backward_work = room,
                         .logits = zero_head_chunk_rows(u, rows, 0) * stride_of(u),
                         .row_loss = rows,
                         .flops = 2.0 * (double)rows * (double)s->hidden * (double)words};
    if (!zero_share_has_parts(&u->share)) return n;
    n.backward_work += zero_head_parts_work(u, rows);
    n.logits = zero_max(n.logits, B * s->vocab); /* generating, of all ranks' words */
    return n;
}

const void *zero_head_rows_at(const zero_unit *u, const void *x, int64_t first)
{
    return zero_type_at(u->activations, x, first * zero_shape_of(u)->hidden);
}

void *zero_head_rows_to(const zero_unit *u, void *x, int64_t first)
{
    return zero_type_to(u->activations, x, first * zero_shape_of(u)->hidden);
}

void zero_head_logits(const zero_unit *u, const zero_call *c, const void *normed,
                      int64_t rows, int64_t stride, float *logits)
{
    const zero_tensor *wte = zero_head_words(u);
    c->backend->gemm(c->math, &(zero_gemm){.transpose_b = true,
                                           .factors = c->type,
                                           .m = rows,
                                           .n = wte->rows,
                                           .k = wte->cols,
                                           .a_type = u->activations,
                                           .a = normed,
                                           .b = zero_head_weight(u, c),
                                           .b_type = c->type,
                                           .c = logits,
                                           .ldc = stride,
                                           .slices = zero_share_one_sum(&u->share),
                                           .few_rows = zero_call_has_few_rows(c, rows)});
}

static zero_type gradient_type(const zero_call *c)
{
    return c->backend->halves_logits ? c->type : ZERO_FP32;
}

/* The same number of bytes. */
static int64_t gradient_stride(const zero_unit *u, zero_type type)
{
    return stride_of(u) * (int64_t)(sizeof(float) / zero_type_size(type));
}

static void chunk_loss(const zero_unit *u, const zero_call *c, const void *normed,
                       int64_t first, int64_t rows, float dscale)
{
    const int32_t *targets = c->batch->targets;
    zero_head_logits(u, c, zero_head_rows_at(u, normed, first), rows, stride_of(u),
                     c->logits);
    c->backend->cross_entropy(c->math, &(zero_cross_entropy){.rows = rows,
                                                             .V = zero_shape_of(u)->vocab,
                                                             .stride = stride_of(u),
                                                             .targets = targets + first,
                                                             .dscale = dscale,
                                                             .gradient = gradient_type(c),
                                                             .logits = c->logits,
                                                             .loss = c->row_loss + first});
}

static zero_layer_norm norm_of(const zero_unit *u, const zero_call *c)
{
    return (zero_layer_norm){.unit = u,
                             .call = c,
                             .rows = c->batch->B * c->batch->T,
                             .is_rms = zero_unit_has(u, ZERO_HAS_RMS),
                             .eps = (float)zero_shape_of(u)->eps};
}

static float *moments_of(const zero_unit *u, const zero_call *c)
{
    int64_t n = c->batch->B * c->batch->T * zero_shape_of(u)->hidden;
    return c->saved + zero_unit_room(u, n);
}

void zero_head_norm(const zero_unit *u, const zero_call *c)
{
    zero_layer_norm norm = norm_of(u, c);
    zero_layer_norm_forward(&norm, c->in, c->saved, moments_of(u, c));
}

void zero_head_norm_backward(const zero_unit *u, const zero_call *c, const void *d_normed)
{
    zero_layer_norm norm = norm_of(u, c);
    int64_t n = norm.rows * zero_shape_of(u)->hidden;
    c->backend->clear(c->math, zero_unit_room(u, n), c->stream); /* of any type */
    zero_layer_norm_backward(&norm, c->in, moments_of(u, c), d_normed, c->stream);
}

void zero_head_last_logits(const zero_unit *u, const zero_call *c, int64_t stride,
                           float *logits)
{
    const int64_t B = c->batch->B, T = c->batch->T;
    for (int64_t b = 0; b < B && T > 1; b++)
        zero_head_logits(u, c, zero_head_rows_at(u, c->saved, b * T + T - 1), 1, stride,
                         logits + b * stride);
    if (T == 1) zero_head_logits(u, c, c->saved, B, stride, logits);
}

static void forward(const zero_unit *u, const zero_call *c)
{
    if (zero_share_has_parts(&u->share)) {
        zero_head_forward_part(u, c);
        return;
    }
    int64_t rows = c->batch->B * c->batch->T;
    const void *normed = c->saved;
    zero_head_norm(u, c);
    if (c->training) return;
    if (!c->batch->targets) { /* generating: only the last position matters */
        zero_head_last_logits(u, c, zero_shape_of(u)->vocab, c->logits);
        return;
    }
    for (int64_t first = 0; first < rows; first += u->logits.rows)
        chunk_loss(u, c, normed, first, zero_head_chunk_rows(u, rows, first), 0.0f);
}

void zero_head_word_gradient(const zero_unit *u, const zero_call *c, const void *normed,
                             int64_t rows, zero_type type, int64_t stride, bool accumulate)
{
    const zero_tensor *wte = zero_head_words(u);
    c->backend->gemm(c->math,
                     &(zero_gemm){.transpose_a = true,
                                  .accumulate = accumulate,
                                  .factors = c->type,
                                  .m = wte->rows,
                                  .n = wte->cols,
                                  .k = rows,
                                  .a_type = type,
                                  .a = c->logits,
                                  .lda = stride,
                                  .b_type = u->activations,
                                  .b = normed,
                                  .c = zero_weight_grad(u, c, zero_head_words_group(u),
                                                        zero_head_words_place(u)),
                                  .slices = zero_share_one_sum(&u->share)});
}

void zero_head_clear_positions(const zero_unit *u, const zero_call *c)
{
    if (!zero_unit_has(u, ZERO_HAS_POSITIONS) || u->n_groups < 2) return;
    const zero_tensor *wpe = &u->tensors[1][ZERO_WPE];
    c->backend->clear(c->math, wpe->rows * wpe->cols, zero_weight_grad(u, c, 1, ZERO_WPE));
}

static void backward(const zero_unit *u, const zero_call *c)
{
    if (zero_share_has_parts(&u->share)) {
        zero_head_backward_part(u, c);
        return;
    }
    int64_t rows = c->batch->B * c->batch->T;
    const void *normed = c->saved;
    void *d_normed = c->work;
    const zero_type type = gradient_type(c);
    bool add = c->accumulate[zero_head_words_group(u)];
    if (!add) zero_head_clear_positions(u, c);
    for (int64_t first = 0; first < rows; first += u->logits.rows) {
        int64_t n = zero_head_chunk_rows(u, rows, first);
        chunk_loss(u, c, normed, first, n, c->batch->loss_seed);
        zero_head_word_gradient(u, c, zero_head_rows_at(u, normed, first), n, type,
                                gradient_stride(u, type), add || first > 0);
        /* d(normed) of a chunk from its d(logits) in c->logits. */
        const zero_shape *s = zero_shape_of(u);
        c->backend->gemm(c->math, &(zero_gemm){.factors = c->type,
                                               .m = n,
                                               .n = s->hidden,
                                               .k = s->vocab,
                                               .a_type = type,
                                               .a = c->logits,
                                               .lda = gradient_stride(u, type),
                                               .b = zero_head_weight(u, c),
                                               .b_type = c->type,
                                               .c_type = u->activations,
                                               .c = zero_head_rows_to(u, d_normed, first)});
    }
    zero_head_norm_backward(u, c, d_normed);
}

void zero_head_unit(zero_unit *unit)
{
    memcpy(unit->name, "head", sizeof "head");
    unit->sizes = sizes;
    unit->part = zero_head_part;
    unit->forward = forward;
    unit->backward = backward;
    unit->computes_by_layers = true;
    unit->continues = true;
    unit->heeds_activations = true;
    unit->logits = zero_device_logits(zero_device_name_at(0));
}
