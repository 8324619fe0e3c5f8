/* pairs.h - settings on several axes, chosen so that every two settings of different axes meet in
 * some run: far fewer runs than there are combinations.
 *
 *     pairs_open(&p, ...);
 *     for (pairs_choice c; pairs_next(&p, &c);) run(&c);
 *
 * Where a rule forbids combinations, pairs that only occur in forbidden ones are left out. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

enum { PAIRS_AXES = 9, PAIRS_LARGEST = 5 };

/* The setting of each axis, from 0. */
typedef struct {
    int at[PAIRS_AXES];
} pairs_choice;

typedef struct {
    int axes, length[PAIRS_AXES];
    bool (*is_legal)(const pairs_choice *c); /* NULL: everything is */
    zero_rng rng;
    uint64_t drawn;
    int left; /* pairs that have not met */
    bool is_open[PAIRS_AXES][PAIRS_LARGEST][PAIRS_AXES][PAIRS_LARGEST];
} pairs;

static inline pairs_choice pairs_draw(pairs *p)
{
    pairs_choice c = {{0}};
    do
        for (int a = 0; a < p->axes; a++)
            c.at[a] = (int)(zero_rng_bits(&p->rng, p->drawn++) % (uint64_t)p->length[a]);
    while (p->is_legal && !p->is_legal(&c));
    return c;
}

/* The pairs of this combination that are `from`, and with `flip` no longer are. */
static inline int pairs_count(pairs *p, const pairs_choice *c, bool from, bool flip)
{
    int n = 0;
    for (int a = 0; a < p->axes; a++)
        for (int b = 0; b < a; b++) {
            bool *is_open = &p->is_open[a][c->at[a]][b][c->at[b]];
            n += *is_open == from;
            if (flip && *is_open == from) *is_open = !from;
        }
    return n;
}

/* These pairs need not meet any more. */
static inline void pairs_met(pairs *p, const pairs_choice *c)
{
    p->left -= pairs_count(p, c, true, true);
}

/* The next combination in the order of an odometer; false after the last. */
static inline bool pairs_count_on(const pairs *p, pairs_choice *c)
{
    int a = 0;
    while (a < p->axes && ++c->at[a] == p->length[a]) c->at[a++] = 0;
    return a < p->axes;
}

/* p: axes, lengths, rule and rng are set. */
static inline void pairs_open(pairs *p)
{
    pairs_choice c = {{0}};
    do
        if (!p->is_legal || p->is_legal(&c)) p->left += pairs_count(p, &c, false, true);
    while (pairs_count_on(p, &c));
}

/* The one of some random combinations that has most new pairs; false if all have met. */
static inline bool pairs_next(pairs *p, pairs_choice *best)
{
    int most = 0;
    if (p->left == 0) return false;
    for (int i = 0; i < 200 || most == 0; i++) {
        pairs_choice c = pairs_draw(p);
        int n = pairs_count(p, &c, true, false);
        if (n > most) most = n, *best = c;
    }
    pairs_met(p, best);
    return true;
}
