#include "nn/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"

static zero_status check_range(const char *option, int64_t value, int64_t most)
{
    if (value >= 1 && value <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "%s %" PRId64 ": expected 1 to %" PRId64, option,
                     value, most);
}

zero_status zero_shape_check(const zero_shape *s)
{
    if (!s)
        return zero_fail(ZERO_ERR_INVALID,
                         "the shape is NULL: expected layers, hidden size and so on");
    /* The upper limits keep all products of sizes far below 2^63. */
    ZERO_TRY(check_range("--layers", s->layers, ZERO_MOST_LAYERS));
    ZERO_TRY(check_range("--hidden", s->hidden, 1 << 17));
    ZERO_TRY(check_range("--heads", s->heads, 1 << 16));
    ZERO_TRY(check_range("--seq", s->seq, 1 << 24));
    ZERO_TRY(check_range("--vocab", s->vocab, 1 << 24));
    if (s->hidden % s->heads != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--hidden %" PRId64 " is not a multiple of --heads %" PRId64
                         ": each head would get %" PRId64 " channels and %" PRId64
                         " would be left over",
                         s->hidden, s->heads, s->hidden / s->heads, s->hidden % s->heads);
    if (!(s->dropout >= 0.0f && s->dropout < 1.0f) || s->seed < 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--dropout %g, --seed %" PRId64
                         ": expected 0 or more, below 1; and a seed from 0 to %" PRId64,
                         (double)s->dropout, s->seed, INT64_MAX);
    return ZERO_OK;
}

/* The largest number of slices up to `most` that the model can have on `ranks` ranks:
 * several need complete subtrees. */
static int64_t best_slices(const zero_shape *s, int ranks, int64_t most)
{
    int64_t best = ranks == 1 ? most : ranks;
    while (ranks == 1 && s->heads % best != 0) best--;
    while (ranks > 1 && 2 * best <= most && s->heads % (2 * best) == 0) best *= 2;
    return best;
}

/* Words are named only where they decide: before the data are open their number is a
 * guess. */
static zero_status check_ranks(const zero_shape *s, int ranks)
{
    int64_t fits = zero_min(zero_max(ranks, 1), zero_min(s->heads, s->vocab));
    fits = zero_min(fits, ZERO_MOST_SLICES);
    while (s->heads % fits != 0) fits--;
    if (fits == ranks) return ZERO_OK;
    int64_t has = s->heads;
    const char *needs = "whole heads", *of = "heads";
    bool has_heads = ranks > 0 && s->heads % ranks == 0;
    if (has_heads && ranks > ZERO_MOST_SLICES) {
        needs = "a slice";
        has = ZERO_MOST_SLICES, of = "slices at most";
    } else if (has_heads) {
        needs = "a word";
        has = s->vocab, of = "words";
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "--tp %d: each rank needs %s, and the model has %" PRId64
                     " %s; give --tp %" PRId64,
                     ranks, needs, has, of, fits);
}

zero_status zero_shape_check_share(const zero_shape *s, int ranks, int slices)
{
    ZERO_TRY(zero_shape_check(s));
    ZERO_TRY(check_ranks(s, ranks));
    int64_t most = zero_min(zero_min(slices, s->vocab), ZERO_MOST_SLICES);
    int64_t fits = best_slices(s, ranks, zero_max(most, 1));
    if (fits == slices) return ZERO_OK;
    char multiple[64] = "a number";
    if (ranks > 1)
        snprintf(multiple, sizeof multiple, "%d, or that times 2, 4, 8, ...,", ranks);
    return zero_fail(ZERO_ERR_INVALID,
                     "--tp-slices %d with --tp %d: expected %s which divides the %" PRId64
                     " heads and is at most %" PRId64 "%s; give --tp-slices %" PRId64,
                     slices, ranks, multiple, s->heads,
                     zero_min(s->vocab, ZERO_MOST_SLICES),
                     s->vocab < ZERO_MOST_SLICES ? ", the number of words" : "", fits);
}

int64_t zero_shape_count(const zero_shape *s)
{
    if (!s) return 0;
    int64_t L = s->layers, C = s->hidden;
    return 12 * L * C * C + 13 * L * C + (s->vocab + s->seq) * C + 2 * C;
}

double zero_shape_multiplied(const zero_shape *s)
{
    double C = (double)s->hidden;
    return 12.0 * (double)s->layers * C * C + (double)s->vocab * C;
}

double zero_shape_flops(const zero_shape *s)
{
    double attention = (double)s->layers * (double)s->seq * (double)s->hidden;
    return 6.0 * zero_shape_multiplied(s) + 6.0 * attention;
}

static void add_group(zero_model *m, const char *name)
{
    zero_group *g = &m->groups[m->n_groups++];
    snprintf(g->name, sizeof g->name, "%s", name);
}

/* Appends a tensor to the newest group; its name is "<prefix><layer><suffix>". */
static void add_tensor(zero_model *m, const char *prefix, const char *layer,
                       const char *suffix, const zero_tensor *t)
{
    zero_tensor *added = &m->tensors[m->n_tensors++];
    *added = *t;
    added->group = m->n_groups - 1;
    added->decays = t->init == ZERO_INIT_NORMAL;
    snprintf(added->name, sizeof added->name, "%s%s%s", prefix, layer, suffix);
}

static void add_matrix(zero_model *m, const char *prefix, const char *layer, int64_t rows,
                       int64_t cols, float std, zero_cut cut)
{
    add_tensor(m, prefix, layer, ".weight",
               &(zero_tensor){.rows = rows,
                              .cols = cols,
                              .init = ZERO_INIT_NORMAL,
                              .init_std = std,
                              .cut = cut});
}

static void add_vector(zero_model *m, const char *prefix, const char *layer,
                       const char *suffix, int64_t n, zero_init_kind init)
{
    add_tensor(m, prefix, layer, suffix,
               &(zero_tensor){.rows = 1, .cols = n, .init = init});
}

static void add_norm(zero_model *m, const char *prefix, const char *layer, int64_t C)
{
    add_vector(m, prefix, layer, ".weight", C, ZERO_INIT_ONES);
    add_vector(m, prefix, layer, ".bias", C, ZERO_INIT_ZEROS);
}

/* Megatron's layers (Shoeybi et al., arXiv:1909.08053, section 3): a rank has its outputs,
 * so also their biases, of the one kind (cut by columns), and its inputs of the other (by
 * rows). */
static void add_linear(zero_model *m, const char *prefix, const char *layer, int64_t in,
                       int64_t out, float std, zero_cut cut)
{
    add_matrix(m, prefix, layer, in, out, std, cut);
    add_vector(m, prefix, layer, ".bias", out, ZERO_INIT_ZEROS);
    if (cut == ZERO_CUT_COLS) m->tensors[m->n_tensors - 1].cut = cut;
}

static void add_block_group(zero_model *m, const zero_shape *s, int64_t layer)
{
    const float std = 0.02f, residual_std = 0.02f / sqrtf(2.0f * (float)s->layers);
    char name[32], prefix[32];
    snprintf(name, sizeof name, "block %" PRId64, layer);
    snprintf(prefix, sizeof prefix, "h.%" PRId64 ".", layer);
    int64_t C = s->hidden;
    add_group(m, name);
    add_norm(m, prefix, "ln_1", C);
    add_linear(m, prefix, "attn.c_attn", C, 3 * C, std, ZERO_CUT_COLS);
    /* The newest linear layer has the outputs q|k|v: each of them is cut. */
    for (int i = m->n_tensors - 2; i < m->n_tensors; i++) m->tensors[i].cut_parts = 3;
    add_linear(m, prefix, "attn.c_proj", C, C, residual_std, ZERO_CUT_ROWS);
    add_norm(m, prefix, "ln_2", C);
    add_linear(m, prefix, "mlp.c_fc", C, 4 * C, std, ZERO_CUT_COLS);
    add_linear(m, prefix, "mlp.c_proj", 4 * C, C, residual_std, ZERO_CUT_ROWS);
}

static zero_unit *add_unit(zero_model *m, int64_t index, int group, int second_group)
{
    zero_unit *u = &m->units[m->n_units++];
    *u = (zero_unit){.index = (int)index, .n_groups = 1, .shape = m->shape};
    u->groups[0] = group;
    u->groups[1] = second_group;
    if (second_group >= 0) u->n_groups = 2;
    return u;
}

static zero_status allocate(zero_model *m, const zero_shape *s)
{
    size_t layers = (size_t)s->layers, ends = ZERO_EMBEDDING_TENSORS + ZERO_FINAL_TENSORS;
    m->tensors = calloc(layers * ZERO_BLOCK_TENSORS + ends, sizeof *m->tensors);
    m->groups = calloc(layers + 2, sizeof *m->groups);
    m->units = calloc(layers + 2, sizeof *m->units);
    m->shape = malloc(sizeof *s);
    if (m->tensors && m->groups && m->units && m->shape) {
        memcpy(m->shape, s, sizeof *s);
        return ZERO_OK;
    }
    zero_model_destroy(m);
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the tables of %" PRId64 " layers",
                     s->layers);
}

zero_status zero_model_build(const zero_shape *s, zero_model *model)
{
    ZERO_TRY(zero_shape_check(s));
    if (!model)
        return zero_fail(ZERO_ERR_INVALID,
                         "zero_model_build() without a place for the model");
    zero_model m = {.vocab = s->vocab,
                    .seq = s->seq,
                    .input_bytes = sizeof(int32_t),
                    .target_bytes = sizeof(int32_t)};
    ZERO_TRY(allocate(&m, s));

    add_group(&m, "embedding");
    add_matrix(&m, "", "wte", s->vocab, s->hidden, 0.02f, ZERO_CUT_ROWS);
    add_matrix(&m, "", "wpe", s->seq, s->hidden, 0.02f, ZERO_CUT_NONE);
    for (int64_t i = 0; i < s->layers; i++) add_block_group(&m, s, i);
    add_group(&m, "final");
    add_norm(&m, "", "ln_f", s->hidden);

    int embedding = 0, final = m.n_groups - 1;
    zero_embedding_unit(add_unit(&m, 0, embedding, -1));
    for (int64_t i = 0; i < s->layers; i++)
        zero_block_unit(add_unit(&m, i, (int)(1 + i), -1));
    zero_head_unit(add_unit(&m, 0, final, embedding));
    zero_status st = zero_model_complete(&m);
    if (st == ZERO_OK)
        *model = m;
    else
        zero_model_destroy(&m);
    return st;
}
