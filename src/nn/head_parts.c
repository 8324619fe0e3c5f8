/* head_parts.c - the head of a shared model: each rank has the words of its slices.
 *
 *     training, forward     norm
 *     backward, a chunk     logits, softmax in slices ──stats──> gathered
 *                           losses, d(logits), d(normed) of own words ──> summed
 *                           d(wte)
 *               at last     d(norm)
 *     evaluate              norm; a chunk's logits, softmax in slices ──stats──> gathered;
 *                           losses
 *     generate              norm, logits of the last positions ──> gathered
 *
 * The part after a join takes its result and begins the next chunk. The ranks sum d(normed)
 * while d(wte) is computed.
 *
 * d(normed) is a sum over the vocabulary: a tree over its slices, which may have different
 * lengths, so each of this rank's slices is a product of its own. */

#include "nn/head.h"
#include "nn/share.h"

enum { SOFTMAX, GRADIENT, WORDS, CHUNK_PARTS }; /* of a chunk, in backward */
enum { LOGITS, TAKE };                          /* generate */

static int64_t rows_of(const zero_call *c)
{
    return c->batch->B * c->batch->T;
}

static int64_t hidden(const zero_unit *u)
{
    return zero_shape_of(u)->hidden;
}

static int64_t chunks_of(const zero_unit *u, int64_t rows)
{
    return zero_divide_up(rows, u->logits.rows);
}

/* ---- what is joined ---- */

/* The first word of rank r; of rank `ranks` the number of words. */
static int64_t first_word(const zero_unit *u, int r)
{
    return zero_share_row(zero_shape_of(u)->vocab, u->share.slices,
                          r * zero_share_slices(&u->share));
}

/* The words of the rank that has most. */
static int64_t most_words(const zero_unit *u)
{
    int64_t most = 0;
    for (int r = 0; r < u->share.ranks; r++)
        most = zero_max(most, first_word(u, r + 1) - first_word(u, r));
    return most;
}

static zero_unit_part gathers_stats(const zero_unit *u, int64_t rows)
{
    return (zero_unit_part){.join = ZERO_JOIN_GATHER,
                            .count = (2 * zero_share_slices(&u->share) + 1) * rows};
}

zero_unit_part zero_head_part(const zero_unit *u, zero_pass pass, int64_t B, int64_t T,
                              int64_t index)
{
    switch (pass) {
    case ZERO_PASS_BACKWARD: {
        int64_t rows = B * T;
        int64_t chunk = index / CHUNK_PARTS, first = chunk * u->logits.rows;
        int64_t n = zero_head_chunk_rows(u, rows, first);
        if (chunk == chunks_of(u, rows))
            return (zero_unit_part){.waits = true, .is_last = true};
        zero_unit_part p = {.waits = false};
        if (index % CHUNK_PARTS == SOFTMAX) {
            p = gathers_stats(u, n);
            p.waits = chunk > 0;
        } else if (index % CHUNK_PARTS == GRADIENT) {
            p = (zero_unit_part){
                .waits = true, .join = ZERO_JOIN_SUM, .count = n * hidden(u)};
        }
        return p;
    }
    case ZERO_PASS_EVALUATE: {
        int64_t rows = B * T;
        if (index == chunks_of(u, rows))
            return (zero_unit_part){.waits = true, .is_last = true};
        zero_unit_part p =
            gathers_stats(u, zero_head_chunk_rows(u, rows, index * u->logits.rows));
        p.waits = index > 0;
        return p;
    }
    case ZERO_PASS_GENERATE:
        if (index == TAKE) return (zero_unit_part){.waits = true, .is_last = true};
        return (zero_unit_part){.join = ZERO_JOIN_GATHER, .count = B * most_words(u)};
    case ZERO_PASS_FORWARD:
    case ZERO_PASS_RECOMPUTE: break;
    }
    return (zero_unit_part){.is_last = true};
}

/* ---- a chunk ---- */

/* One of the two calls between which the ranks' stats are gathered. */
typedef void softmax_call(const zero_math *math, const zero_softmax *s);

/* Calls it for the chunk whose first row is `first`. */
static void softmax(const zero_unit *u, const zero_call *c, softmax_call *call,
                    int64_t first, float dscale)
{
    int64_t ends[ZERO_MOST_SLICES];
    const int slices = zero_share_slices(&u->share), before = slices * u->share.rank;
    const zero_tensor *wte = zero_head_words(u);
    assert(slices <= ZERO_MOST_SLICES);
    for (int i = 0; i < slices; i++)
        ends[i] =
            zero_share_row(wte->whole_rows, u->share.slices, before + i + 1) - wte->first;
    call(c->math, &(zero_softmax){.rows = zero_head_chunk_rows(u, rows_of(c), first),
                                  .V = wte->rows,
                                  .first = wte->first,
                                  .slices = slices,
                                  .ends = ends,
                                  .targets = (const int32_t *)c->batch->targets + first,
                                  .logits = c->logits,
                                  .stats = c->joint,
                                  .ranks = u->share.ranks,
                                  .rank = u->share.rank,
                                  .all = c->joined,
                                  .dscale = dscale,
                                  .loss = c->row_loss + first});
}

static void begin_softmax(const zero_unit *u, const zero_call *c, int64_t first)
{
    int64_t rows = zero_head_chunk_rows(u, rows_of(c), first);
    zero_head_logits(u, c, zero_head_rows_at(u, c->saved, first), rows,
                     zero_head_words(u)->rows, c->logits);
    softmax(u, c, c->backend->softmax_slices, first, 0.0f);
}

/* The sum over slices first .. first + n - 1, a complete subtree or the whole tree. Each
 * level below its root takes rows*C floats of `room`. */
static void sum_slices(const zero_unit *u, const zero_call *c, int64_t rows, int first,
                       int n, float *out, float *room)
{
    if (n == 1) {
        /* A slice's part of d(normed)[rows,C], from its columns of d(logits). */
        const zero_tensor *wte = zero_head_words(u);
        const int64_t begin = zero_share_row(wte->whole_rows, u->share.slices, first);
        const int64_t end = zero_share_row(wte->whole_rows, u->share.slices, first + 1);
        const int64_t at = begin - wte->first;
        const char *words = zero_head_weight(u, c);
        c->backend->gemm(c->math, &(zero_gemm){.factors = c->type,
                                               .m = rows,
                                               .n = wte->cols,
                                               .k = end - begin,
                                               .a = c->logits + at,
                                               .lda = wte->rows,
                                               .b = words + (size_t)(at * wte->cols) *
                                                                zero_type_size(c->type),
                                               .b_type = c->type,
                                               .c = out,
                                               .slices = zero_share_one_sum(&u->share)});
        return;
    }
    const int64_t len = rows * hidden(u);
    const int left = (int)zero_tree_left(n);
    sum_slices(u, c, rows, first, left, out, room + len);
    sum_slices(u, c, rows, first + left, n - left, room, room + len);
    c->backend->accumulate(c->math, ZERO_FP32, len, out, room, out);
}

int64_t zero_head_parts_work(const zero_unit *u, int64_t rows)
{
    int levels = 0;
    for (int n = zero_share_slices(&u->share); n > 1; n = (int)zero_tree_left(n)) levels++;
    return levels * zero_head_chunk_rows(u, rows, 0) * hidden(u);
}

/* ---- backward ---- */

void zero_head_backward_part(const zero_unit *u, const zero_call *c)
{
    const int64_t chunk = c->part / CHUNK_PARTS, first = chunk * u->logits.rows;
    assert(c->part >= 0 && chunk <= chunks_of(u, rows_of(c)));
    if (c->part == 0 && !c->accumulate[zero_head_words_group(u)])
        zero_head_clear_positions(u, c);
    if (c->part > 0 && c->part % CHUNK_PARTS == SOFTMAX) {
        /* d(normed) of a chunk, of all ranks' words: their sum was fp32. */
        int64_t before = first - u->logits.rows;
        int64_t rows = zero_head_chunk_rows(u, rows_of(c), before), C = hidden(u);
        c->backend->round(c->math, u->activations, rows * C, c->joined,
                          zero_head_rows_to(u, c->work, before));
    }
    if (chunk == chunks_of(u, rows_of(c))) {
        zero_head_norm_backward(u, c, c->work);
        return;
    }
    switch (c->part % CHUNK_PARTS) {
    case SOFTMAX: begin_softmax(u, c, first); break;
    case GRADIENT: {
        const int slices = zero_share_slices(&u->share);
        softmax(u, c, c->backend->softmax_loss, first, c->batch->loss_seed);
        sum_slices(u, c, zero_head_chunk_rows(u, rows_of(c), first), slices * u->share.rank,
                   slices, c->joint, c->work + zero_unit_room(u, rows_of(c) * hidden(u)));
    } break;
    case WORDS: {
        bool add = c->accumulate[zero_head_words_group(u)] || first > 0;
        zero_head_word_gradient(u, c, zero_head_rows_at(u, c->saved, first),
                                zero_head_chunk_rows(u, rows_of(c), first), ZERO_FP32,
                                zero_head_words(u)->rows, add);
    } break;
    }
}

/* ---- forward ---- */

void zero_head_forward_part(const zero_unit *u, const zero_call *c)
{
    if (c->training)
        zero_head_norm(u, c);
    else if (c->batch->targets) {
        const int64_t chunks = chunks_of(u, rows_of(c)), first = c->part * u->logits.rows;
        assert(c->part >= 0 && c->part <= chunks);
        if (c->part == 0) zero_head_norm(u, c);
        if (c->part > 0)
            softmax(u, c, c->backend->softmax_loss, first - u->logits.rows, 0.0f);
        if (c->part < chunks) begin_softmax(u, c, first);
    } else if (c->part == LOGITS) {
        /* joint[B, the most words of a rank]: the logits of each sample's last position,
         * then zeros. */
        const int64_t B = c->batch->B, most = most_words(u);
        const int64_t words = zero_head_words(u)->rows;
        zero_head_norm(u, c);
        zero_head_last_logits(u, c, most, c->joint);
        for (int64_t b = 0; b < B; b++)
            c->backend->clear(c->math, most - words, c->joint + b * most + words);
    } else {
        /* From joined[ranks,B,most] to logits[B,V]. */
        const int64_t B = c->batch->B, V = zero_shape_of(u)->vocab, most = most_words(u);
        for (int r = 0; r < u->share.ranks; r++)
            for (int64_t b = 0; b < B; b++)
                c->backend->round(
                    c->math, ZERO_FP32, first_word(u, r + 1) - first_word(u, r),
                    c->joined + (r * B + b) * most, c->logits + b * V + first_word(u, r));
    }
}
