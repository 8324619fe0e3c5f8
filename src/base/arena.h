/* arena.h - the one piece of memory that a run works in.
 *
 * It is taken once, before the first step, and cut up by the schedule. Its pages come when
 * they are first touched, so a run begins without a pass over gigabytes, and its first step
 * pays for the pages that it uses: 0.05 s/GiB, but 2.3 s/GiB on a virtual machine whose
 * host has to find them. The arena is aligned to 2 MiB with huge pages advised, which is
 * good for streaming kernels and transfers between ranks. Builds with the address sanitizer
 * poison parts outside their planned lifetime: the first wrong access finds a schedule that
 * frees too early. */
#pragma once

#include "base/fail.h"

typedef struct {
    char *base; /* zeroed */
    size_t bytes;
    void *mapping; /* to unmap */
    size_t mapped;
} zero_arena;

/* Returns ZERO_ERR_NOMEM, with the size, if the machine does not have it. */
zero_status zero_arena_init(zero_arena *arena, size_t bytes);
void zero_arena_destroy(zero_arena *arena); /* accepts a zeroed arena */

/* Marks bytes as out of use; a later access is an error in sanitizer builds. */
void zero_arena_poison(const void *p, size_t bytes);
/* Marks bytes as in use, with contents that no correct program reads (NaN). */
void zero_arena_unpoison(void *p, size_t bytes);
/* Marks bytes as ordinary memory again, before they are given back. */
void zero_arena_release(const void *p, size_t bytes);
