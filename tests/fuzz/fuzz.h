/* fuzz.h - common parts of the fuzzed readers.
 *
 * LLVMFuzzerTestOneInput() takes the bytes of a file, reads them, and checks the laws of anything
 * it accepts. libFuzzer calls it with files that it makes, replay.c.in with those of the corpus. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "zero/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A law that an input broke. */
#define FUZZ_LAW(x) \
    do { \
        if (!(x)) { \
            fprintf(stderr, "%s:%d: broken: %s (last error: %s)\n", __FILE__, __LINE__, \
                    #x, zero_last_error()); \
            abort(); \
        } \
    } while (0)

/* A refusal has a reason: one line without terminal escapes. */
static inline void fuzz_check_refusal(zero_status st)
{
    if (st == ZERO_OK) return;
    const char *reason = zero_last_error();
    FUZZ_LAW(*reason != '\0');
    for (const char *c = reason; *c; c++) FUZZ_LAW((unsigned char)*c >= 0x20 && *c != 0x7f);
}
