/* gpt2.h - GPT-2 as groups and units.
 *
 *     unit           reads groups        computes
 *     embedding      embedding           x = drop(wte[token] + wpe[t])
 *     block i        block i             x = x + drop(attention(norm(x)))
 *                                        x = x + drop(mlp(norm(x)))
 *     head           final, embedding    loss = cross-entropy(norm(x) wte^T, target)
 *
 * Inputs are tokens, targets the tokens that follow; both are int32_t. Pre-norm, learned
 * positions, tanh GELU, tied embedding, biases everywhere. Matrices are stored [in, out]
 * under Hugging Face's names. Weights start as N(0, 0.02), those that write to the residual
 * stream as N(0, 0.02/sqrt(2L)); biases as 0, gains as 1. Psi = 12 L C^2 + 13 L C + (V + T)
 * C + 2 C.
 * Source: Radford et al. 2019 and its released model; Narayanan et al. 2104.04473, eq.
 * 2. */
#pragma once

#include "zero/model.h"

ZERO_API_BEGIN

typedef struct {
    int64_t layers, hidden, heads, seq, vocab;
    float dropout; /* on embedding, attention probabilities and both residual branches */
    int64_t seed;  /* of the dropout masks */
} zero_gpt2_shape;

#define ZERO_GPT2_LAYERS 10000 /* at most */

/* A named model. The table is in gpt2_presets.c. */
typedef struct {
    const char *name;
    const char *source;    /* the paper that describes it, or its purpose */
    zero_gpt2_shape shape; /* vocab 0: as many as the tokenizer has */
} zero_gpt2_preset_row;

/* All presets, by family, small ones first; borrowed. n may be NULL. */
const zero_gpt2_preset_row *zero_gpt2_presets(int *n);

/* A preset's shape by name. ZERO_ERR_INVALID lists the known families. */
ZERO_NODISCARD zero_status zero_gpt2_preset(const char *name, zero_gpt2_shape *shape);

/* ZERO_ERR_INVALID, with the numbers, unless all lengths are positive and in range, heads
 * divide hidden, 0 <= dropout < 1, and the seed is not negative; and for NULL. */
ZERO_NODISCARD zero_status zero_gpt2_check(const zero_gpt2_shape *shape);

/* Psi by the equation above, 0 for NULL, without the tables that zero_gpt2_describe()
 * builds. */
int64_t zero_gpt2_count(const zero_gpt2_shape *shape);

/* Describes the model without computing anything. Fails as zero_gpt2_check() does. */
ZERO_NODISCARD zero_status zero_gpt2_describe(const zero_gpt2_shape *shape,
                                              zero_model *model);

ZERO_API_END
