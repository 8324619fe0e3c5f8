/* head.h - the head's passes in parts (head_parts.c), and the functions that
 * whole calls (head.c) use, too. */
#pragma once

#include "nn/shape.h"
#include "zero/layers.h"

/* The table of words is the embedding's, the unit's second group, or the last tensor of its
 * own group. */
static inline int zero_head_words_group(const zero_unit *u)
{
    return u->n_groups - 1;
}

static inline int zero_head_words_place(const zero_unit *u)
{
    return u->n_groups > 1 ? ZERO_WTE : zero_shape_of(u)->kind->n_final - 1;
}

static inline const zero_tensor *zero_head_words(const zero_unit *u)
{
    return &u->tensors[zero_head_words_group(u)][zero_head_words_place(u)];
}

static inline const void *zero_head_weight(const zero_unit *u, const zero_call *c)
{
    return zero_weight(u, c, zero_head_words_group(u), zero_head_words_place(u));
}

/* Rows of the chunk that starts at row `first`. */
static inline int64_t zero_head_chunk_rows(const zero_unit *u, int64_t rows, int64_t first)
{
    return zero_min(rows - first, u->logits.rows);
}

/* Writes normed[rows,C] and moments[2,rows] to the call's `saved`; turns d(normed) into the
 * stream, d(in). */
void zero_head_norm(const zero_unit *u, const zero_call *c);
void zero_head_norm_backward(const zero_unit *u, const zero_call *c, const void *d_normed);

/* The rows from `first` on of an array of activations, [rows, C]: of normed, or of its
 * gradient. */
const void *zero_head_rows_at(const zero_unit *u, const void *x, int64_t first);
void *zero_head_rows_to(const zero_unit *u, void *x, int64_t first);

/* logits[rows,V] of this rank's words; from row to row `stride` floats. */
void zero_head_logits(const zero_unit *u, const zero_call *c, const void *normed,
                      int64_t rows, int64_t stride, float *logits);
/* While texts are generated: those of each sample's last position, after the norm. */
void zero_head_last_logits(const zero_unit *u, const zero_call *c, int64_t stride,
                           float *logits);
/* The gradient of these words from a chunk's d(logits) in c->logits, whose rows are
 * `stride` numbers of `type` apart. */
void zero_head_word_gradient(const zero_unit *u, const zero_call *c, const void *normed,
                             int64_t rows, zero_type type, int64_t stride, bool accumulate);
/* The head comes first in backward order, and contributes nothing to positions. */
void zero_head_clear_positions(const zero_unit *u, const zero_call *c);

zero_unit_part zero_head_part(const zero_unit *u, zero_pass pass, int64_t B, int64_t T,
                              int64_t index);
/* Floats of workspace that backward's parts need beside d(normed). */
int64_t zero_head_parts_work(const zero_unit *u, int64_t rows);
void zero_head_forward_part(const zero_unit *u, const zero_call *c);
void zero_head_backward_part(const zero_unit *u, const zero_call *c);
