/* term.h - what a number was computed from, as a hash: equal terms are equal bits.
 *
 * A program that computes terms instead of numbers shows which expression it evaluates. Sums
 * commute, as those of floats do, but are not associative. The lowest bit of a term says that the
 * number fits a 16-bit type: rounding it again changes nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/half.h"
#include "support/tree_oracle.h"

typedef uint64_t term; /* 0: nothing known */

typedef enum {
    TERM_TOKENS = 1,
    TERM_INITIAL, /* value of a parameter or moment */
    TERM_READ,    /* parameters, one after the other */
    TERM_CALL,    /* of a unit, forward */
    TERM_OUT,
    TERM_SAVED,
    TERM_BACKWARD, /* call of a unit */
    TERM_STREAM,
    TERM_GRADIENT,
    TERM_UPDATE,
    TERM_ROUNDED,
    TERM_SUM,
    TERM_BLOCK, /* of a file */
    TERM_PART,  /* a buffer's contents between two parts of a pass */
    TERM_JOINT,
    TERM_JOINED,
    TERM_JUNK,
} term_kind;

static inline term term_of(term_kind kind, term a, term b, term c)
{
    uint64_t x = oracle_mix((uint64_t)kind);
    x = oracle_mix(x ^ a);
    x = oracle_mix(x ^ b);
    x = oracle_mix(x ^ c);
    return (x | 2) & ~UINT64_C(1);
}

static inline term term_add(term a, term b)
{
    return a < b ? term_of(TERM_SUM, a, b, 0) : term_of(TERM_SUM, b, a, 0);
}

static inline bool term_fits(zero_type type, term x)
{
    return type == ZERO_FP32 || (x & 1);
}

static inline term term_round(zero_type type, term x)
{
    return term_fits(type, x) ? x : term_of(TERM_ROUNDED, x, 0, 0) | 1;
}

/* The tree over n leaves, x[i * step]: it splits at the largest power of two below n. */
static inline term term_tree(int n, const term *x, int64_t step)
{
    if (n == 1) return x[0];
    int left = 1;
    while (2 * left < n) left *= 2;
    return term_add(term_tree(left, x, step), term_tree(n - left, x + left * step, step));
}

/* ---- what a unit computes ---- */

/* `read`: its parameters; 0 where a backward call needs none. */
static inline term term_call(int unit, term tokens, term in, term read)
{
    return term_of(TERM_CALL, (term)unit ^ tokens, in, read);
}

static inline term term_backward(term tokens, term in, term saved, term stream, term read)
{
    return term_of(TERM_BACKWARD, tokens ^ in, saved ^ read, stream);
}

/* The k-th group's gradient, of the elements in piece p. */
static inline term term_gradient(term backward, int k, int piece)
{
    return term_of(TERM_GRADIENT, backward, (term)k, (term)piece);
}
