/* sampling.h - from logits to the next token.
 *
 *     p(i) ~ exp(logit(i) / temperature)   over the top_k largest logits of the known ids
 *
 * Source: Fan et al., arXiv:1805.04833, section 5 (top-k). */
#pragma once

#include <stdint.h>

typedef struct {
    int64_t step; /* of the random numbers: the same step gives the same text */
    int64_t seed;
    double temperature; /* >= 0; 0: always the largest logit */
    int64_t top_k;      /* draws among this many largest logits; 0: among all */
    int64_t known;      /* at most V; ids from here on are never drawn */
} zero_sampling;

/* The token that a uniform number in [0, 1) chooses; among equal logits lower ids come first.
 * -1 if a logit of a known id is not finite. Allocates nothing. */
int32_t zero_sampling_draw(const zero_sampling *how, const float *logits, double uniform);
