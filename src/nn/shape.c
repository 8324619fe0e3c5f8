#include "nn/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/elementary.h"
#include "base/fail.h"
#include "base/number.h"

/* ---- fields ---- */

/* The upper limits keep all products of sizes far below 2^63. */
#define FIELD(member) offsetof(zero_shape, member)
const zero_shape_field zero_shape_fields[ZERO_SHAPE_FIELDS] = {
    {"layers", ZERO_SHAPE_WHOLE, FIELD(layers), 1, ZERO_MOST_LAYERS, 0},
    {"hidden", ZERO_SHAPE_WHOLE, FIELD(hidden), 1, 1 << 17, 0},
    {"heads", ZERO_SHAPE_WHOLE, FIELD(heads), 1, 1 << 16, 0},
    {"kv_heads", ZERO_SHAPE_WHOLE, FIELD(kv_heads), 1, 1 << 16, ZERO_HAS_MORE},
    {"head_size", ZERO_SHAPE_WHOLE, FIELD(head_size), 1, 1 << 17, ZERO_HAS_MORE},
    {"inner", ZERO_SHAPE_WHOLE, FIELD(inner), 1, 1 << 19, ZERO_HAS_MORE},
    {"seq", ZERO_SHAPE_WHOLE, FIELD(seq), 1, 1 << 24, 0},
    {"vocab", ZERO_SHAPE_WHOLE, FIELD(vocab), 1, 1 << 24, 0},
    {"theta", ZERO_SHAPE_REAL, FIELD(theta), 1, 1e12, ZERO_HAS_ROTARY},
    {"norm_eps", ZERO_SHAPE_REAL, FIELD(eps), 1e-12, 1e-1, ZERO_HAS_MORE},
    {"tied", ZERO_SHAPE_FLAG, FIELD(tied), 0, 1, ZERO_HAS_MORE},
    {"rope_factor", ZERO_SHAPE_REAL, FIELD(scaling.factor), 0, 1e6, ZERO_HAS_ROTARY},
    {"rope_low", ZERO_SHAPE_REAL, FIELD(scaling.low), 0, 1e6, ZERO_HAS_ROTARY},
    {"rope_high", ZERO_SHAPE_REAL, FIELD(scaling.high), 0, 1e6, ZERO_HAS_ROTARY},
    {"rope_seq", ZERO_SHAPE_WHOLE, FIELD(scaling.seq), 0, 1 << 24, ZERO_HAS_ROTARY},
};

double zero_shape_get(const zero_shape *s, const zero_shape_field *f)
{
    const char *at = (const char *)s + f->offset;
    switch (f->kind) {
    case ZERO_SHAPE_WHOLE: return (double)*(const int64_t *)(const void *)at;
    case ZERO_SHAPE_REAL: return *(const double *)(const void *)at;
    case ZERO_SHAPE_FLAG: break;
    }
    return *(const bool *)at;
}

void zero_shape_write(const zero_shape *s, const zero_shape_field *f, char text[32])
{
    const char *at = (const char *)s + f->offset;
    if (f->kind == ZERO_SHAPE_WHOLE)
        snprintf(text, 32, "%" PRId64, *(const int64_t *)(const void *)at);
    else
        snprintf(text, 32, "%g", zero_shape_get(s, f));
}

void zero_shape_set(zero_shape *s, const zero_shape_field *f, double value)
{
    char *at = (char *)s + f->offset;
    switch (f->kind) {
    case ZERO_SHAPE_WHOLE: *(int64_t *)(void *)at = (int64_t)value; break;
    case ZERO_SHAPE_REAL: *(double *)(void *)at = value; break;
    case ZERO_SHAPE_FLAG: *(bool *)at = value != 0.0; break;
    }
}

zero_shape zero_shape_own(const zero_shape *shape)
{
    zero_shape s = *shape;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++)
        if ((s.kind->has & zero_shape_fields[i].needs) != zero_shape_fields[i].needs)
            zero_shape_set(&s, &zero_shape_fields[i], 0.0);
    return s;
}

void zero_shape_overlay(zero_shape *s, const zero_shape *given)
{
    if (given->kind) s->kind = given->kind;
    for (int i = 0; i < ZERO_SHAPE_FIELDS; i++) {
        const double value = zero_shape_get(given, &zero_shape_fields[i]);
        if (value > 0.0) zero_shape_set(s, &zero_shape_fields[i], value);
    }
}

static const zero_architecture *kind_of(const zero_shape *s)
{
    return s->kind ? s->kind : zero_architectures;
}

const char *zero_architecture_name(const zero_architecture *kind)
{
    return kind ? kind->name : zero_architectures->name;
}

zero_status zero_architecture_find(const char *name, const zero_architecture **kind)
{
    char all[128] = "";
    for (int i = 0; i < ZERO_ARCHITECTURES; i++) {
        const zero_architecture *a = &zero_architectures[i];
        if (name && strcmp(a->name, name) == 0) {
            *kind = a;
            return ZERO_OK;
        }
        size_t len = strlen(all);
        snprintf(all + len, sizeof all - len, "%s%s", i > 0 ? ", " : "", a->name);
    }
    return zero_fail(ZERO_ERR_INVALID, "--architecture %s: expected one of %s",
                     name ? name : "NULL", all);
}

/* A GPT-2 has no numbers but its five: the others follow from them. */
zero_shape zero_shape_complete(const zero_shape *shape)
{
    zero_shape s = *shape;
    s.kind = kind_of(shape);
    const bool is_open = s.kind->has & ZERO_HAS_MORE;
    if (!is_open || s.kv_heads == 0) s.kv_heads = s.heads;
    if (!is_open || s.head_size == 0) s.head_size = s.heads > 0 ? s.hidden / s.heads : 0;
    if (!is_open || s.inner == 0) s.inner = s.kind->inner(s.hidden);
    if (!is_open) s.tied = true;
    if (!is_open || s.eps == 0.0) s.eps = s.kind->eps;
    if (s.theta == 0.0) s.theta = s.kind->theta;
    if (!(s.kind->has & ZERO_HAS_ROTARY)) {
        s.theta = 0.0;
        memset(&s.scaling, 0, sizeof s.scaling);
    }
    return s;
}

int zero_shape_has(const zero_shape *s)
{
    return kind_of(s)->has | (s->tied ? 0 : ZERO_HAS_OWN_WORDS);
}

/* ---- checks ---- */

void zero_shape_option(const zero_shape_field *f, char name[32])
{
    snprintf(name, 32, "%s", f->name);
    for (char *c = name; *c; c++)
        if (*c == '_') *c = '-';
}

static zero_status check_field(const zero_shape *given, const zero_shape *s,
                               const zero_shape_field *f)
{
    char option[32], text[32];
    const double value = zero_shape_get(s, f), was = zero_shape_get(given, f);
    zero_shape_option(f, option);
    if ((s->kind->has & f->needs) != f->needs) {
        if (was == 0.0 || was == value) return ZERO_OK;
        return zero_fail(
            ZERO_ERR_INVALID,
            "--%s %g: the architecture %s has no such number; leave it out, or "
            "give another --architecture",
            option, was, s->kind->name);
    }
    if (value >= f->least && value <= f->most) return ZERO_OK;
    zero_shape_write(s, f, text);
    return zero_fail(ZERO_ERR_INVALID, "--%s %s: expected %.15g to %.15g", option, text,
                     f->least, f->most);
}

static zero_status check_heads(const zero_shape *given, const zero_shape *s)
{
    if (given->head_size == 0 && s->hidden % s->heads != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--hidden %" PRId64 " is not a multiple of --heads %" PRId64
                         ": each head would get %" PRId64 " channels and %" PRId64
                         " would be left over",
                         s->hidden, s->heads, s->hidden / s->heads, s->hidden % s->heads);
    if (s->heads % s->kv_heads != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--heads %" PRId64 " is not a multiple of --kv-heads %" PRId64
                         ": each key head serves as many query heads as the others",
                         s->heads, s->kv_heads);
    const bool turns = s->kind->has & ZERO_HAS_ROTARY;
    if (turns && (s->head_size % 2 != 0 || s->head_size > ZERO_MOST_TURNED))
        return zero_fail(ZERO_ERR_INVALID,
                         "heads of %" PRId64 " channels: rotary positions turn them in "
                         "pairs, at most %d; give an even --head-size",
                         s->head_size, ZERO_MOST_TURNED);
    if (s->scaling.factor == 0.0) return ZERO_OK;
    if (s->scaling.factor >= 1.0 && s->scaling.low > 0.0 &&
        s->scaling.high > s->scaling.low && s->scaling.seq > 0)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "rotary positions stretched by %g, low %g, high %g, seq %" PRId64
                     ": expected a factor of 1 or more, 0 < low < high, and positions",
                     s->scaling.factor, s->scaling.low, s->scaling.high, s->scaling.seq);
}

zero_status zero_shape_check(const zero_shape *given)
{
    if (!given)
        return zero_fail(ZERO_ERR_INVALID,
                         "the shape is NULL: expected layers, hidden size and so on");
    for (int i = 0; i < 3; i++) /* those from which others are made */
        ZERO_TRY(check_field(given,
                             &(zero_shape){.layers = given->layers,
                                           .hidden = given->hidden,
                                           .heads = given->heads,
                                           .kind = kind_of(given)},
                             &zero_shape_fields[i]));
    const zero_shape s = zero_shape_complete(given);
    for (int i = 3; i < ZERO_SHAPE_FIELDS; i++)
        ZERO_TRY(check_field(given, &s, &zero_shape_fields[i]));
    ZERO_TRY(check_heads(given, &s));
    if (!(s.dropout >= 0.0f && s.dropout < 1.0f) || s.seed < 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--dropout %g, --seed %" PRId64
                         ": expected 0 or more, below 1; and a seed from 0 to %" PRId64,
                         (double)s.dropout, s.seed, INT64_MAX);
    return ZERO_OK;
}

/* True if each of n slices has whole key heads and the same channels of the MLP. */
static bool divides(const zero_shape *s, int64_t n)
{
    return s->kv_heads % n == 0 && s->inner % n == 0;
}

/* The largest number of slices up to `most` that the model can have on `ranks` ranks:
 * several need complete subtrees. */
static int64_t best_slices(const zero_shape *s, int ranks, int64_t most)
{
    int64_t best = ranks == 1 ? most : ranks;
    while (ranks == 1 && !divides(s, best)) best--;
    while (ranks > 1 && 2 * best <= most && divides(s, 2 * best)) best *= 2;
    return best;
}

/* Words are named only where they decide: before the data are open their number is a
 * guess. */
static zero_status check_ranks(const zero_shape *s, int ranks)
{
    int64_t fits = zero_min(zero_max(ranks, 1), zero_min(s->kv_heads, s->vocab));
    fits = zero_min(fits, ZERO_MOST_SLICES);
    while (!divides(s, fits)) fits--;
    if (fits == ranks) return ZERO_OK;
    int64_t has = s->kv_heads;
    const char *needs = "whole heads", *of = s->kv_heads < s->heads ? "key heads" : "heads";
    bool has_heads = ranks > 0 && s->kv_heads % ranks == 0;
    if (has_heads && s->inner % ranks != 0) {
        needs = "the same share of the MLP";
        has = s->inner, of = "channels there";
    } else if (has_heads && ranks > ZERO_MOST_SLICES) {
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

zero_status zero_shape_check_share(const zero_shape *given, int ranks, int slices)
{
    ZERO_TRY(zero_shape_check(given));
    const zero_shape s = zero_shape_complete(given);
    ZERO_TRY(check_ranks(&s, ranks));
    int64_t most = zero_min(zero_min(slices, s.vocab), ZERO_MOST_SLICES);
    int64_t fits = best_slices(&s, ranks, zero_max(most, 1));
    if (fits == slices) return ZERO_OK;
    char multiple[64] = "a number", inner[64] = "";
    if (ranks > 1)
        snprintf(multiple, sizeof multiple, "%d, or that times 2, 4, 8, ...,", ranks);
    if (s.kind->has & ZERO_HAS_MORE)
        snprintf(inner, sizeof inner, " for keys, and the %" PRId64 " inner channels,",
                 s.inner);
    return zero_fail(ZERO_ERR_INVALID,
                     "--tp-slices %d with --tp %d: expected %s which divides the %" PRId64
                     " heads%s and is at most %" PRId64 "%s; give --tp-slices %" PRId64,
                     slices, ranks, multiple, s.kv_heads, inner,
                     zero_min(s.vocab, ZERO_MOST_SLICES),
                     s.vocab < ZERO_MOST_SLICES ? ", the number of words" : "", fits);
}

/* ---- rotary positions ---- */

void zero_shape_frequencies(const zero_shape *s, float *frequency)
{
    const float factor = (float)s->scaling.factor, low = (float)s->scaling.low,
                high = (float)s->scaling.high, seq = (float)s->scaling.seq;
    for (int64_t i = 0; i < s->head_size / 2; i++) {
        const float exponent = (float)(2 * i) / (float)s->head_size;
        const float f = 1.0f / (float)zero_exp((double)exponent * zero_log(s->theta));
        const float wave = 6.2831853071795864769f / f;
        frequency[i] = f;
        if (factor == 0.0f || wave < seq / high) continue;
        const float smooth = (seq / wave - low) / (high - low);
        frequency[i] =
            wave > seq / low ? f / factor : (1.0f - smooth) * f / factor + smooth * f;
    }
}

/* ---- rows ---- */

static int64_t extent(zero_dimension of, const zero_shape *s)
{
    switch (of) {
    case ZERO_OF_ONE: break;
    case ZERO_OF_HIDDEN: return s->hidden;
    case ZERO_OF_QUERIES: return s->heads * s->head_size;
    case ZERO_OF_KEYS: return s->kv_heads * s->head_size;
    case ZERO_OF_QKV: return (s->heads + 2 * s->kv_heads) * s->head_size;
    case ZERO_OF_HEAD: return s->head_size;
    case ZERO_OF_INNER: return s->inner;
    case ZERO_OF_WORDS: return s->vocab;
    case ZERO_OF_SEQ: return s->seq;
    }
    return 1;
}

static bool is_there(const zero_tensor_row *row, const zero_shape *s)
{
    return (zero_shape_has(s) & row->needs) == row->needs;
}

int zero_row_place(const zero_tensor_row *rows, int index, const zero_shape *s)
{
    int place = 0;
    if (!is_there(&rows[index], s)) return -1;
    for (int i = 0; i < index; i++) place += is_there(&rows[i], s);
    return place;
}

static int64_t count(const zero_tensor_row *rows, const zero_shape *s)
{
    int64_t n = 0;
    for (const zero_tensor_row *row = rows; row->name; row++)
        if (is_there(row, s)) n += extent(row->rows, s) * extent(row->cols, s);
    return n;
}

int64_t zero_shape_count(const zero_shape *shape)
{
    if (!shape) return 0;
    const zero_shape s = zero_shape_complete(shape);
    return count(s.kind->embedding, &s) + s.layers * count(s.kind->block, &s) +
           count(s.kind->final, &s);
}

double zero_shape_multiplied(const zero_shape *shape)
{
    const zero_shape s = zero_shape_complete(shape);
    int64_t n = 0;
    for (const zero_tensor_row *row = s.kind->block; row->name; row++)
        if (row->rows != ZERO_OF_ONE) n += extent(row->rows, &s) * extent(row->cols, &s);
    return (double)s.layers * (double)n + (double)s.vocab * (double)s.hidden;
}

double zero_shape_flops(const zero_shape *shape)
{
    const zero_shape s = zero_shape_complete(shape);
    double attention =
        (double)s.layers * (double)s.seq * (double)s.heads * (double)s.head_size;
    return 6.0 * zero_shape_multiplied(&s) + 6.0 * attention;
}

/* ---- the model ---- */

static void add_group(zero_model *m, const zero_shape *s, const char *name,
                      const zero_tensor_row *rows, const char *prefix)
{
    const float residual = s->kind->scales_leaving ? sqrtf(2.0f * (float)s->layers) : 1.0f;
    zero_group *g = &m->groups[m->n_groups++];
    snprintf(g->name, sizeof g->name, "%s", name);
    for (const zero_tensor_row *row = rows; row->name; row++) {
        if (!is_there(row, s)) continue;
        const bool is_normal = row->init == ZERO_INIT_NORMAL;
        zero_tensor *t = &m->tensors[m->n_tensors++];
        *t = (zero_tensor){.rows = extent(row->rows, s),
                           .cols = extent(row->cols, s),
                           .group = m->n_groups - 1,
                           .decays = is_normal,
                           .init = row->init,
                           .init_std = is_normal ? 0.02f : 0.0f,
                           .cut = row->cut,
                           .cut_parts = row->cut_parts,
                           .out_in = row->out_in};
        if (row->leaves) t->init_std = 0.02f / residual;
        snprintf(t->name, sizeof t->name, "%s%s", prefix, row->name);
    }
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
    const size_t layers = (size_t)s->layers;
    m->tensors = calloc((layers + 2) * ZERO_MOST_ROWS, sizeof *m->tensors);
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

zero_status zero_model_build(const zero_shape *shape, zero_model *model)
{
    ZERO_TRY(zero_shape_check(shape));
    if (!model)
        return zero_fail(ZERO_ERR_INVALID,
                         "zero_model_build() without a place for the model");
    const zero_shape s = zero_shape_complete(shape);
    zero_model m = {.vocab = s.vocab,
                    .seq = s.seq,
                    .input_bytes = sizeof(int32_t),
                    .target_bytes = sizeof(int32_t)};
    ZERO_TRY(allocate(&m, &s));

    const zero_architecture *kind = s.kind;
    add_group(&m, &s, "embedding", kind->embedding, "");
    for (int64_t i = 0; i < s.layers; i++) {
        char name[32], prefix[32];
        snprintf(name, sizeof name, "block %" PRId64, i);
        snprintf(prefix, sizeof prefix, "%s%" PRId64 ".", kind->layer, i);
        add_group(&m, &s, name, kind->block, prefix);
    }
    add_group(&m, &s, "final", kind->final, "");

    const int embedding = 0, final = m.n_groups - 1;
    zero_embedding_unit(add_unit(&m, 0, embedding, -1));
    for (int64_t i = 0; i < s.layers; i++)
        zero_block_unit(add_unit(&m, i, (int)(1 + i), -1));
    zero_head_unit(add_unit(&m, 0, final, s.tied ? embedding : -1));
    zero_status st = zero_model_complete(&m);
    if (st == ZERO_OK)
        *model = m;
    else
        zero_model_destroy(&m);
    return st;
}
