/* block.c - a transformer block: what its architecture's list of layers says; rows = B*T.
 * Everything else follows from the list, the shape, and the cuts of the tensors:
 *
 *     arrays            C channels; of a linear layer its outputs, of attention the heads'
 *     saved             all arrays but `in` and `out`; then sums: moments of norms, lse
 *     parts, forward    one ends with each linear layer whose sum is cut: its product joins
 *            backward   one ends where the outputs of a linear layer are cut: the gradient
 *                       of its input joins; meanwhile gradients of weights that are due
 *     flops             two per weight and row; attention's as if nothing were masked
 *
 * The gradient stream holds d(out) on entry and d(in) at the end: the residual path is the
 * stream itself. A rank of a shared model has its part of the heads and of the MLP's
 * channels, so the last product of a branch gives terms of a sum over the ranks. A whole
 * call computes the same parts in order, with `joint` and `joined` in its own memory:
 *
 *     GPT-2, forward     attend | feed | leave                 recomputed: attend | feed
 *            backward    d(fc) | weights, d(qkv) | weights, d(in) */
#include "nn/block.h"

#include "math/backends.h"

static double flops(const zero_unit *u, int i, int64_t B, int64_t T)
{
    const double rows = (double)(B * T);
    if (zero_block_is_linear(u, i)) {
        const zero_linear l = zero_block_linear(u, i);
        return 2.0 * rows * (double)zero_linear_inputs(&l) *
               (double)zero_linear_outputs(&l);
    }
    return zero_block_layer(u, i)->kind == ZERO_ATTEND
               ? 4.0 * rows * (double)T * (double)zero_block_layer_width(u, i)
               : 0.0;
}

/* The layer whose product, or whose input's gradient, joins as number `index` of a pass. */
static int joining(const zero_unit *u, bool is_backward, int64_t index)
{
    const int n = zero_block_kind(u)->n_layers;
    for (int k = 0; k < n; k++) {
        const int i = is_backward ? n - 1 - k : k;
        if ((is_backward ? zero_block_output_is_cut(u, i) : zero_block_sum_is_cut(u, i)) &&
            index-- == 0)
            return i;
    }
    return -1;
}

static zero_unit_part part(const zero_unit *u, zero_pass way, int64_t B, int64_t T,
                           int64_t index)
{
    const bool is_backward = way == ZERO_PASS_BACKWARD;
    const int64_t step = is_backward ? 2 : 1; /* from a part that joins to one that waits */
    int64_t joins = 0;
    while (joining(u, is_backward, joins) >= 0) joins++;
    if (way == ZERO_PASS_RECOMPUTE) joins--; /* the last product's */
    const bool joins_here = index % step == 0 && index / step < joins;
    const int i = joins_here ? joining(u, is_backward, index / step) : -1;
    const int64_t more = is_backward && i >= 0 ? zero_block_joined_gains(u, i) : 0;
    return (zero_unit_part){.waits = index > 0 && index % step == 0,
                            .join = joins_here ? ZERO_JOIN_SUM : ZERO_JOIN_NONE,
                            .count =
                                joins_here ? B * T * zero_shape_of(u)->hidden + more : 0,
                            .is_last = index == step * joins};
}

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_shape *s = zero_shape_of(u);
    const int n_layers = zero_block_kind(u)->n_layers;
    const int64_t rows = B * T, H = zero_block_heads(u), K = zero_block_key_heads(u);
    const int64_t room = zero_unit_room(u, rows * s->hidden);
    const int64_t attention = zero_attention_workspace(&(zero_attention){
        .B = B, .T = T, .H = H, .K = K, .D = s->head_size, .rows_type = u->activations});
    double sum = 0.0;
    for (int i = 0; i < n_layers; i++) sum += flops(u, i, B, T);
    int64_t saved = 0;
    for (int a = ZERO_FIRST_ARRAY; a < zero_block_kind(u)->n_arrays; a++)
        saved += zero_unit_room(u, rows * zero_block_width(u, a));
    for (int k = 0; k < zero_block_kind(u)->n_layers; k++)
        saved += rows * zero_block_sums(u, k);
    return (zero_unit_sizes){
        .out = rows * s->hidden,
        .saved = saved,
        .forward_work = attention,
        .cache = zero_cache_floats(u->activations, T, H, K, s->head_size),
        .backward_work =
            zero_unit_room(u, rows * zero_block_widest(u)) +
            zero_unit_room(u, rows * zero_block_attended(u)) +
            zero_unit_room(u, rows * zero_block_kept(u)) +
            (zero_block_has_parts(u) ? 0 : room) + /* joint: else the caller's */
            room + zero_block_gain_room(u) + attention,
        .thread_work = attention,
        .flops = sum,
        .recompute_flops = sum - flops(u, n_layers - 2, B, T)};
}

void zero_block_unit(zero_unit *unit)
{
    zero_print(unit->name, "block %d", unit->index);
    unit->sizes = sizes;
    unit->part = part;
    unit->forward = zero_block_forward;
    unit->backward = zero_block_backward;
    unit->computes_by_layers = true;
    unit->recompute_without_out = true;
    unit->continues = true;
    unit->heeds_activations = true;
}
