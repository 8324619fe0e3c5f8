/* sampling.h - from logits to the next token.
 *
 *     p(i) ~ exp(logit(i) / temperature)   over the top_k largest logits of the known ids,
 *                                          and of these over the fewest, largest first,
 *                                          whose p reach top_p together
 *
 * Among equal logits lower ids come first. Sums are in the order of ids. Source: Fan et
 * al., arXiv:1805.04833, section 5 (top-k); Holtzman et al., arXiv:1904.09751, section 3.1
 * (top-p, the nucleus). */
#pragma once

#include "base/fail.h"

enum { ZERO_ENDS = 16 };

/* The tokens that end a text. */
typedef struct {
    int32_t id[ZERO_ENDS];
    int n;
} zero_ends;

typedef struct {
    int64_t step; /* of the random numbers: the same step gives the same text */
    int64_t seed;
    double temperature; /* >= 0; 0: always the largest logit */
    int64_t top_k;      /* draws among this many largest logits; 0: among all */
    double top_p;   /* in (0, 1): draws among the likeliest of these; 0 or 1: among all */
    int64_t known;  /* at most V; ids from here on are never drawn */
    zero_ends ends; /* complete a text that draws one; equal on all ranks */
} zero_sampling;

bool zero_sampling_ends(const zero_sampling *how, int32_t token);

/* The token that a uniform number in [0, 1) chooses. -1 if a logit of a known id is not
 * finite. Allocates nothing. */
int32_t zero_sampling_draw(const zero_sampling *how, const float *logits, double uniform);
