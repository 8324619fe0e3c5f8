/* gpt2_head.c - the last unit: final norm, logits by the tied embedding, cross-entropy.
 *
 * The logits of a whole microbatch, [B*T, V], would be the largest array of a small model, so rows
 * are taken in chunks: a chunk's logits become its loss and its gradient at once. When training,
 * forward therefore stops at the norm, and backward goes through the chunks. */
#include "nn/gpt2.h"
#include "zero/layers.h"

#include <string.h>

#include "base/number.h"

#define CHUNK 256 /* rows: enough for GEMM, small next to activations */

enum { FINAL, EMBEDDING }; /* the unit's groups */

static int64_t chunk_rows(int64_t rows)
{
    return zero_min(rows, CHUNK);
}

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    int64_t rows = B * T;
    return (zero_unit_sizes){.saved = rows * (s->hidden + 2),
                             .backward_work = rows * s->hidden,
                             .logits = chunk_rows(rows) * s->vocab,
                             .row_loss = rows,
                             .flops =
                                 2.0 * (double)rows * (double)s->hidden * (double)s->vocab};
}

static void compute_logits(const zero_unit *u, const zero_call *c, const float *normed,
                           int64_t rows, float *logits)
{
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    c->backend->gemm(c->math, &(zero_gemm){.transpose_b = true,
                                           .factors = c->type,
                                           .m = rows,
                                           .n = s->vocab,
                                           .k = s->hidden,
                                           .a = normed,
                                           .b = zero_weight(u, c, EMBEDDING, ZERO_WTE),
                                           .b_type = c->type,
                                           .c = logits});
}

static void chunk_loss(const zero_unit *u, const zero_call *c, const float *normed,
                       int64_t first, int64_t rows, float dscale)
{
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    const int32_t *targets = c->batch->targets;
    compute_logits(u, c, normed + first * s->hidden, rows, c->logits);
    c->backend->cross_entropy(c->math, rows, s->vocab, targets + first, dscale, c->logits,
                              c->row_loss + first);
}

static void forward(const zero_unit *u, const zero_call *c)
{
    int64_t B = c->batch->B, T = c->batch->T, rows = B * T,
            C = zero_gpt2_shape_of(u)->hidden;
    float *normed = c->saved, *moments = normed + rows * C;
    zero_layer_norm norm = {.unit = u, .call = c, .group = FINAL, .rows = rows};
    zero_layer_norm_forward(&norm, c->in, normed, moments);
    if (c->training) return;
    if (!c->batch->targets) { /* generating: only the last position matters */
        for (int64_t b = 0; b < B; b++)
            compute_logits(u, c, normed + (b * T + T - 1) * C, 1,
                           c->logits + b * zero_gpt2_shape_of(u)->vocab);
        return;
    }
    for (int64_t first = 0; first < rows; first += CHUNK)
        chunk_loss(u, c, normed, first, chunk_rows(rows - first), 0.0f);
}

/* Computes d(normed) and the embedding's gradient from the chunk's d(logits). */
static void chunk_backward(const zero_unit *u, const zero_call *c, const float *normed,
                           int64_t rows, bool accumulate, float *d_normed)
{
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    c->backend->gemm(c->math,
                     &(zero_gemm){.transpose_a = true,
                                  .accumulate = accumulate,
                                  .factors = c->type,
                                  .m = s->vocab,
                                  .n = s->hidden,
                                  .k = rows,
                                  .a = c->logits,
                                  .b = normed,
                                  .c = zero_weight_grad(u, c, EMBEDDING, ZERO_WTE)});
    c->backend->gemm(c->math, &(zero_gemm){.factors = c->type,
                                           .m = rows,
                                           .n = s->hidden,
                                           .k = s->vocab,
                                           .a = c->logits,
                                           .b = zero_weight(u, c, EMBEDDING, ZERO_WTE),
                                           .b_type = c->type,
                                           .c = d_normed});
}

static void backward(const zero_unit *u, const zero_call *c)
{
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    int64_t C = s->hidden, rows = c->batch->B * c->batch->T;
    const float *normed = c->saved, *moments = normed + rows * C;
    float *d_normed = c->work;
    bool add = c->accumulate[EMBEDDING];

    /* The head writes the embedding's gradient first, and contributes nothing to positions. */
    if (!add)
        c->backend->clear(c->math, s->seq * C, zero_weight_grad(u, c, EMBEDDING, ZERO_WPE));
    for (int64_t first = 0; first < rows; first += CHUNK) {
        int64_t n = chunk_rows(rows - first);
        chunk_loss(u, c, normed, first, n, c->batch->loss_seed);
        chunk_backward(u, c, normed + first * C, n, add || first > 0, d_normed + first * C);
    }
    c->backend->clear(c->math, rows * C, c->stream);
    zero_layer_norm norm = {.unit = u, .call = c, .group = FINAL, .rows = rows};
    zero_layer_norm_backward(&norm, c->in, moments, d_normed, c->stream);
}

void zero_gpt2_head_unit(zero_unit *unit)
{
    memcpy(unit->name, "head", sizeof "head");
    unit->sizes = sizes;
    unit->forward = forward;
    unit->backward = backward;
    unit->computes_by_layers = true;
}
