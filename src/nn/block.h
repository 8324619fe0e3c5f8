/* block.h - what follows from a block's list of layers (architecture.h), the shape and a
 * rank's share: for the unit (block.c) and its passes (block_pass.c). */
#pragma once

#include "nn/layers.h"
#include "nn/shape.h"
#include "nn/share.h"

static inline const zero_architecture *zero_block_kind(const zero_unit *u)
{
    return zero_shape_of(u)->kind;
}

static inline const zero_layer *zero_block_layer(const zero_unit *u, int i)
{
    return &zero_block_kind(u)->layers[i];
}

/* The tensor of a row, in its group; -1: the shape has none. */
static inline int zero_block_place(const zero_unit *u, int row)
{
    return zero_row_place(zero_block_kind(u)->block, row, zero_shape_of(u));
}

/* The tensor of a linear layer, the first of those that are stacked. */
static inline const zero_tensor *zero_block_weight(const zero_unit *u, int i)
{
    return &u->tensors[0][zero_block_place(u, zero_block_layer(u, i)->tensor)];
}

static inline bool zero_block_has_parts(const zero_unit *u)
{
    return zero_share_has_parts(&u->share);
}

static inline int64_t zero_block_heads(const zero_unit *u)
{
    return zero_shape_of(u)->heads / u->share.ranks;
}

static inline int64_t zero_block_key_heads(const zero_unit *u)
{
    return zero_shape_of(u)->kv_heads / u->share.ranks;
}

static inline zero_linear zero_block_linear(const zero_unit *u, int i)
{
    const zero_layer *l = zero_block_layer(u, i);
    return (zero_linear){.unit = u,
                         .weight = zero_block_place(u, l->tensor),
                         .stacked = l->stacked,
                         .bias = l->bias == 0 ? -1 : zero_block_place(u, l->bias)};
}

static inline bool zero_block_is_linear(const zero_unit *u, int i)
{
    return zero_block_layer(u, i)->kind == ZERO_LINEAR;
}

/* The ranks add up the layer's product, or the gradient of its input. */
static inline bool zero_block_sum_is_cut(const zero_unit *u, int i)
{
    return zero_block_is_linear(u, i) &&
           zero_block_weight(u, i)->cut ==
               (zero_block_weight(u, i)->out_in ? ZERO_CUT_COLS : ZERO_CUT_ROWS);
}

static inline bool zero_block_output_is_cut(const zero_unit *u, int i)
{
    return zero_block_is_linear(u, i) &&
           zero_block_weight(u, i)->cut ==
               (zero_block_weight(u, i)->out_in ? ZERO_CUT_ROWS : ZERO_CUT_COLS);
}

/* Layer i norms queries and keys. */
static inline bool zero_block_norms_heads(const zero_unit *u, int i)
{
    return zero_block_layer(u, i)->kind == ZERO_TURN && zero_unit_has(u, ZERO_HAS_QK_NORM);
}

/* Layer i begins a branch beside an earlier one: both read `in`, and both take d(out). */
static inline bool zero_block_is_beside(const zero_unit *u, int i)
{
    return i > 0 && zero_block_layer(u, i)->kind == ZERO_NORM &&
           zero_block_layer(u, i)->in == ZERO_BLOCK_IN;
}

/* Channels of d(out), kept until the earlier branch takes it. */
static inline int64_t zero_block_kept(const zero_unit *u)
{
    for (int i = 0; i < zero_block_kind(u)->n_layers; i++)
        if (zero_block_is_beside(u, i)) return zero_shape_of(u)->hidden;
    return 0;
}

static inline int64_t zero_block_outputs(const zero_unit *u, int i)
{
    const zero_linear l = zero_block_linear(u, i);
    return zero_linear_outputs(&l);
}

/* Channels of layer i's output; 0: it is its input, changed in place. */
static inline int64_t zero_block_layer_width(const zero_unit *u, int i)
{
    const int64_t D = zero_shape_of(u)->head_size;
    switch (zero_block_layer(u, i)->kind) {
    case ZERO_LINEAR: return zero_block_outputs(u, i);
    case ZERO_TURN:
        return zero_block_norms_heads(u, i)
                   ? (zero_block_heads(u) + zero_block_key_heads(u)) * D
                   : 0;
    case ZERO_ATTEND: return zero_block_heads(u) * D;
    case ZERO_GELU: return zero_block_outputs(u, i - 1);
    case ZERO_GATE: return zero_block_outputs(u, i - 1) / 2;
    case ZERO_NORM:
    case ZERO_ADD: break;
    }
    return zero_shape_of(u)->hidden;
}

static inline int64_t zero_block_width(const zero_unit *u, int array)
{
    for (int i = 0; i < zero_block_kind(u)->n_layers; i++)
        if (zero_block_layer(u, i)->out == array) return zero_block_layer_width(u, i);
    return zero_shape_of(u)->hidden; /* in */
}

/* Sums of a layer that backward reads, per position: moments of norms, lse. */
static inline int64_t zero_block_sums(const zero_unit *u, int i)
{
    switch (zero_block_layer(u, i)->kind) {
    case ZERO_NORM: return zero_unit_has(u, ZERO_HAS_RMS) ? 1 : 2;
    case ZERO_TURN:
        return zero_block_norms_heads(u, i) ? zero_block_heads(u) + zero_block_key_heads(u)
                                            : 0;
    case ZERO_ATTEND: return zero_block_heads(u);
    default: return 0;
    }
}

/* Channels of the widest gradient that is not of the residual stream's width. */
static inline int64_t zero_block_widest(const zero_unit *u)
{
    int64_t most = 0;
    for (int i = 0; i + 1 < zero_block_kind(u)->n_layers; i++)
        if (zero_block_is_linear(u, i) && zero_block_layer(u, i + 1)->kind != ZERO_ADD)
            most = zero_max(most, zero_block_outputs(u, i));
    return most;
}

/* Channels of d(attended), unless `joint` has room for it until it gets d(in). */
static inline int64_t zero_block_attended(const zero_unit *u)
{
    const int64_t own = zero_block_heads(u) * zero_shape_of(u)->head_size;
    return own > zero_shape_of(u)->hidden ? own : 0;
}

/* Floats behind d(in) of layer i in `joint`: the gradients of the gains of queries and
 * keys, which are sums over heads. */
static inline int64_t zero_block_joined_gains(const zero_unit *u, int i)
{
    if (i + 1 >= zero_block_kind(u)->n_layers || !zero_block_is_linear(u, i) ||
        !zero_block_norms_heads(u, i + 1))
        return 0;
    return zero_round_up(2 * zero_shape_of(u)->head_size, u->share.ranks);
}

static inline int64_t zero_block_gain_room(const zero_unit *u)
{
    const int64_t D = zero_shape_of(u)->head_size;
    return zero_unit_has(u, ZERO_HAS_QK_NORM) && zero_block_has_parts(u)
               ? zero_round_up(2 * D * zero_share_slices(&u->share), 16)
               : 0;
}

void zero_block_forward(const zero_unit *unit, const zero_call *call);
void zero_block_backward(const zero_unit *unit, const zero_call *call);
