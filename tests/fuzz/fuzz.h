/* fuzz.h - what a fuzzed reader has in common with the others.
 *
 * LLVMFuzzerTestOneInput() takes the bytes of a file, reads them, and checks what must hold of
 * whatever was accepted. libFuzzer calls it with files of its own making, replay.c with those
 * of the corpus. */
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

/* What was refused has a reason, in one line that no terminal obeys. */
static inline void fuzz_check_refusal(zero_status st)
{
    if (st == ZERO_OK) return;
    const char *reason = zero_last_error();
    FUZZ_LAW(*reason != '\0');
    for (const char *c = reason; *c; c++) FUZZ_LAW((unsigned char)*c >= 0x20 && *c != 0x7f);
}
