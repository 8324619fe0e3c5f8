/* shape.h - the transformers that the library describes: an architecture and its numbers.
 *
 *     unit           reads groups         computes
 *     embedding      embedding            x = wte[token] (+ wpe[t])
 *     block i        block i              x = x + attention(norm(x)); x = x + mlp(norm(x))
 *     head           final (, embedding)  loss = cross-entropy(norm(x) W^T, target)
 *
 * Inputs are tokens, targets the tokens that follow; both are int32_t. Tensors have the
 * names and the layouts of Hugging Face's files. What an architecture computes is a row of
 * tables (src/nn/architectures). */
#pragma once

#include "zero/model.h"

ZERO_API_BEGIN

typedef struct zero_architecture zero_architecture;

/* Zeros stand for the architecture's usual numbers, except in layers, hidden, heads, seq
 * and vocab. */
typedef struct {
    int64_t layers, hidden, heads;
    int64_t kv_heads;  /* key and value heads; query heads share them. Usual: heads */
    int64_t head_size; /* channels of a head. Usual: hidden / heads */
    int64_t inner;     /* channels of the MLP. Usual: 4 hidden, or what a gate leaves */
    int64_t seq, vocab;
    double theta;  /* of rotary positions: its base */
    double rotary; /* the part of a head's channels that they turn. Usual: all, or 1/4 */
    double eps;    /* of norms */
    /* Llama 3's longer contexts: wavelengths beyond seq / low are stretched by factor,
     * those below seq / high stay. factor 0: none. */
    struct {
        double factor, low, high;
        int64_t seq;
    } scaling;
    bool tied;     /* the head's words are the embedding's */
    float dropout; /* on embedding, attention probabilities and both residual branches */
    int64_t seed;  /* of the dropout masks */
    const zero_architecture *kind; /* NULL: GPT-2 */
} zero_shape;

#define ZERO_MOST_LAYERS 10000

/* The architecture of a name, "gpt2", "llama", "mistral", "qwen2", "qwen3" or
 * "gpt_neox".
 * ZERO_ERR_INVALID lists them. */
zero_status zero_architecture_find(const char *name, const zero_architecture **kind);
/* The name; NULL is GPT-2. */
const char *zero_architecture_name(const zero_architecture *kind);

/* A named model. The table is src/nn/presets.txt. */
typedef struct {
    const char *name;
    const char *source; /* the paper that describes it, or its purpose */
    zero_shape shape;   /* vocab 0: as many as the tokenizer has */
} zero_preset;

/* All presets, by family, small ones first; borrowed. n may be NULL. */
const zero_preset *zero_model_presets(int *n);

/* A preset's shape by name. ZERO_ERR_INVALID lists the known families. */
zero_status zero_model_preset(const char *name, zero_shape *shape);

/* ZERO_ERR_INVALID, with the numbers, unless all are in range and fit together; and for
 * NULL. */
zero_status zero_shape_check(const zero_shape *shape);

/* Psi, 0 for NULL, without the tables that zero_model_build() makes. */
int64_t zero_shape_count(const zero_shape *shape);

/* Describes the model without computing anything. Fails as zero_shape_check() does. */
zero_status zero_model_build(const zero_shape *shape, zero_model *model);

ZERO_API_END
