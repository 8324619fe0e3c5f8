#include "nn/shape.h"

#include "base/elementary.h"

/* ---- fields ---- */

/* The upper limits keep all products of sizes far below 2^63. */
#define FIELD(member) offsetof(zero_shape, member)
const zero_shape_field zero_shape_fields[ZERO_SHAPE_FIELDS] = {
    {"layers", ZERO_SHAPE_WHOLE, FIELD(layers), 1, ZERO_MOST_LAYERS, 0},
    {"hidden", ZERO_SHAPE_WHOLE, FIELD(hidden), 1, 1 << 17, 0},
    {"heads", ZERO_SHAPE_WHOLE, FIELD(heads), 1, 1 << 16, 0},
    {"kv_heads", ZERO_SHAPE_WHOLE, FIELD(kv_heads), 1, 1 << 16, ZERO_HAS_HEADS},
    {"head_size", ZERO_SHAPE_WHOLE, FIELD(head_size), 1, 1 << 17, ZERO_HAS_HEADS},
    {"inner", ZERO_SHAPE_WHOLE, FIELD(inner), 1, 1 << 19, ZERO_HAS_MORE},
    {"seq", ZERO_SHAPE_WHOLE, FIELD(seq), 1, 1 << 24, 0},
    {"vocab", ZERO_SHAPE_WHOLE, FIELD(vocab), 1, 1 << 24, 0},
    {"theta", ZERO_SHAPE_REAL, FIELD(theta), 1, 1e12, ZERO_HAS_ROTARY},
    {"norm_eps", ZERO_SHAPE_REAL, FIELD(eps), 1e-12, 1e-1, ZERO_HAS_MORE},
    {"tied", ZERO_SHAPE_FLAG, FIELD(tied), 0, 1, ZERO_HAS_MORE},
    {"rotary", ZERO_SHAPE_REAL, FIELD(rotary), 0, 1, ZERO_HAS_PART},
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
        if (name && zero_same_text(a->name, name)) {
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
    const bool has_heads = s.kind->has & ZERO_HAS_HEADS;
    if (!has_heads || s.kv_heads == 0) s.kv_heads = s.heads;
    if (!has_heads || s.head_size == 0) s.head_size = s.heads > 0 ? s.hidden / s.heads : 0;
    if (!is_open || s.inner == 0)
        s.inner = zero_round_up(s.kind->inner.times * s.hidden / s.kind->inner.over,
                                s.kind->inner.multiple);
    if (!is_open) s.tied = true;
    if (!is_open || s.eps == 0.0) s.eps = s.kind->eps;
    if (s.theta == 0.0) s.theta = s.kind->theta;
    if (s.rotary == 0.0) s.rotary = s.kind->rotary;
    if (!(s.kind->has & ZERO_HAS_ROTARY)) {
        s.theta = s.rotary = 0.0;
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
        return zero_fail(ZERO_ERR_INVALID,
                         "--%s %g: the architecture %s has no such number; leave it out, "
                         "or give another --architecture",
                         option, was, s->kind->name);
    }
    if (value >= f->least && value <= f->most) return ZERO_OK;
    zero_shape_write(s, f, text);
    return zero_fail(ZERO_ERR_INVALID, "--%s %s: expected %.15g to %.15g", option, text,
                     f->least, f->most);
}

zero_status zero_shape_check(const zero_shape *given)
{
    ZERO_INVALID_IF(!given, "the shape is NULL: expected layers, hidden size and so on");
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
    ZERO_INVALID_IF(given->head_size == 0 && s.hidden % s.heads != 0,
                    "--hidden %" PRId64 " is not a multiple of --heads %" PRId64
                    ": each head would get %" PRId64 " channels and %" PRId64
                    " would be left over",
                    s.hidden, s.heads, s.hidden / s.heads, s.hidden % s.heads);
    ZERO_INVALID_IF(s.heads % s.kv_heads != 0,
                    "--heads %" PRId64 " is not a multiple of --kv-heads %" PRId64
                    ": each key head serves as many query heads as the others",
                    s.heads, s.kv_heads);
    const bool turns = s.kind->has & ZERO_HAS_ROTARY;
    const int64_t turned = zero_shape_turned(&s);
    ZERO_INVALID_IF(turns && (turned < 2 || turned % 2 != 0 || turned > ZERO_MOST_TURNED),
                    "heads of %" PRId64 " channels: rotary positions turn %" PRId64
                    " of them, which should be pairs, at most %d; give %s",
                    s.head_size, turned, ZERO_MOST_TURNED,
                    s.kind->has & ZERO_HAS_PART ? "another --rotary"
                                                : "an even --head-size");
    if (s.scaling.factor != 0.0) {
        ZERO_INVALID_IF(!(s.scaling.factor >= 1.0 && s.scaling.low > 0.0 &&
                          s.scaling.high > s.scaling.low && s.scaling.seq > 0),
                        "rotary positions stretched by %g, low %g, high %g, seq %" PRId64
                        ": expected a factor of 1 or more, 0 < low < high, and positions",
                        s.scaling.factor, s.scaling.low, s.scaling.high, s.scaling.seq);
    }
    ZERO_INVALID_IF(!(s.dropout >= 0.0f && s.dropout < 1.0f) || s.seed < 0,
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
    ZERO_INVALID_IF(s.seq * s.hidden % ranks != 0,
                    "--tp %d: ranks add equal parts of --seq %" PRId64
                    " times --hidden %" PRId64 " numbers; give --hidden %" PRId64,
                    ranks, s.seq, s.hidden, zero_round_up(s.hidden, ranks));
    int64_t most = zero_min(zero_min(slices, s.vocab), ZERO_MOST_SLICES);
    /* The largest number of slices up to `most` that the model can have on `ranks`
     * ranks: several need complete subtrees. */
    int64_t fits = ranks == 1 ? zero_max(most, 1) : ranks;
    while (ranks == 1 && !divides(&s, fits)) fits--;
    while (ranks > 1 && 2 * fits <= zero_max(most, 1) && divides(&s, 2 * fits)) fits *= 2;
    if (fits == slices) return ZERO_OK;
    char multiple[64] = "a number", inner[64] = "";
    if (ranks > 1) zero_print(multiple, "%d, or that times 2, 4, 8, ...,", ranks);
    if (s.kind->has & ZERO_HAS_MORE)
        zero_print(inner, " for keys, and the %" PRId64 " inner channels,", s.inner);
    return zero_fail(ZERO_ERR_INVALID,
                     "--tp-slices %d with --tp %d: expected %s which divides the %" PRId64
                     " heads%s and is at most %" PRId64 "%s; give --tp-slices %" PRId64,
                     slices, ranks, multiple, s.kv_heads, inner,
                     zero_min(s.vocab, ZERO_MOST_SLICES),
                     s.vocab < ZERO_MOST_SLICES ? ", the number of words" : "", fits);
}

/* ---- rotary positions ---- */

int64_t zero_shape_turned(const zero_shape *s)
{
    return (int64_t)((double)s->head_size * s->rotary);
}

void zero_shape_frequencies(const zero_shape *s, float *frequency)
{
    const int64_t turned = zero_shape_turned(s);
    const float factor = (float)s->scaling.factor, low = (float)s->scaling.low,
                high = (float)s->scaling.high, seq = (float)s->scaling.seq;
    for (int64_t i = 0; i < turned / 2; i++) {
        const float exponent = (float)(2 * i) / (float)turned;
        const float f = 1.0f / (float)zero_exp((double)exponent * zero_log(s->theta));
        const float wave = 6.2831853071795864769f / f;
        frequency[i] = f;
        if (factor == 0.0f || wave < seq / high) continue;
        const float smooth = (seq / wave - low) / (high - low);
        frequency[i] =
            wave > seq / low ? f / factor : (1.0f - smooth) * f / factor + smooth * f;
    }
}

/* ---- models that have a name ---- */

const zero_preset *zero_model_presets(int *n)
{
    int count = 0;
    while (zero_presets[count].name) count++;
    if (n) *n = count;
    return zero_presets;
}

zero_status zero_model_preset(const char *name, zero_shape *shape)
{
    ZERO_INVALID_IF(
        !name || !shape,
        "zero_model_preset() with NULL: expected a name and a place for the shape");
    for (const zero_preset *p = zero_presets; p->name; p++) {
        if (!zero_same_text(p->name, name)) continue;
        *shape = p->shape;
        return ZERO_OK;
    }
    return zero_fail(
        ZERO_ERR_INVALID,
        "--model %s: no such preset; there are tiny, gpt2, gpt2-medium, gpt2-large, "
        "gpt2-xl and lesson, of the papers paper-1.5b to paper-170b, paper-1t, "
        "paper-ddp-1.16b and -1.38b, paper-nomp-1.5b to -13b, turing-nlg-17b and "
        "gpt3-175b; of other architectures tiny-llama, tiny-mistral, tiny-qwen2, "
        "tiny-qwen3, tiny-neox, llama2-7b to llama3.2-3b, mistral-7b, mistral-nemo-12b, "
        "qwen2.5-0.5b to qwen3-32b, smollm2-135m to -1.7b, tinyllama-1.1b and pythia-70m "
        "to -12b (zero plan --models lists all; --layers, --hidden, --heads, --seq and "
        "--vocab change a preset's shape)",
        name);
}
