/* laws.h - expressions over a tree (facts/facts.h), each of which must be true. */
#pragma once

#include "support/test.h"

#include "facts/facts.h"

static inline void laws_hold(const json_t *tree, const char *const *laws)
{
    const zero_scope scope = {.node = tree};
    for (; *laws; laws++) {
        zero_fact fact;
        zero_status st = zero_fact_of(*laws, strlen(*laws), &scope, &fact);
        if (st != ZERO_OK || !zero_fact_is_true(&fact))
            fail_msg("%s: %s", *laws, st == ZERO_OK ? "is not so" : zero_last_error());
    }
}

#define LAWS(tree, ...) laws_hold(tree, (const char *const[]){__VA_ARGS__, NULL})
