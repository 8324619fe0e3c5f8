/* generate_test.h - a text that all ranks generate, from a prompt whose tokens are known. */
#pragma once

#include "support/engine_test.h"
#define GENERATED 30

static inline void generate(test_run *run, const zero_sampling *how, int64_t n_known,
                            int32_t text[64])
{
    for (int64_t i = 0; i < n_known; i++) text[i] = (int32_t)(7 * i % 50);
    all_ok(test_generate_text(&run->engine, how, n_known, GENERATED, text));
}
