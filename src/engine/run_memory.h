/* run_memory.h - when buffers are in use: as the sanitizer sees it, and as the memory ledger
 * measures it. */
#pragma once

#include "engine/run.h"

/* The instructions at which a buffer was used first and last; -1: never. A buffer of one
 * program is used by that program alone. */
typedef struct zero_touch {
    int first, last;
} zero_touch;

static inline void zero_touch_note(zero_touch *touch, int at)
{
    if (touch->first < 0 || at < touch->first) touch->first = at;
    if (at > touch->last) touch->last = at;
}

/* In builds with the address sanitizer a buffer is usable from its first instruction to its
 * last, and begins as NaN: what reads or writes too early or too late is an error there. Nothing
 * happens in other builds, nor to what lies once per node, which neighbours write. */
void zero_lifetimes_open(const zero_runner *r);  /* before a walk: nothing is in use */
void zero_lifetimes_close(const zero_runner *r); /* the memory may be given back */
void zero_lifetimes_begin(const zero_runner *r, const zero_instruction *i, int at);
void zero_lifetimes_end(const zero_runner *r, const zero_instruction *i, int at);
