/* bench_block.h - one block of a backend's memory, the host's or a device's, in which a bench lays
 * out its arrays and fills them. */
#pragma once

#include "base/arena.h"
#include "math/backend.h"

typedef struct {
    const zero_backend *backend; /* borrowed, like math, which is open; NULL: BLAS */
    zero_math *math;
    void *base;   /* owned; zeroed */
    size_t taken; /* bytes given out by bench_block_part() */
    zero_arena
        arena; /* the memory; with a device a pinned chunk, through which it is filled */
} bench_block;

/* ZERO_ERR_NOMEM. Release with _destroy, before the backend is closed. */
zero_status bench_block_init(bench_block *m, const zero_backend *backend, zero_math *math,
                             size_t bytes);
void bench_block_destroy(bench_block *m); /* accepts a zeroed one */

/* Bytes that an array takes of the block. */
size_t bench_block_bytes(int64_t n, size_t size);
/* The next array of n elements of `size` bytes. */
void *bench_block_part(bench_block *m, int64_t n, size_t size);

/* Fills `bytes` bytes at `to` with copies of a pattern of up to 1 MiB, and waits. */
zero_status bench_block_fill(bench_block *m, void *to, size_t bytes, const void *pattern,
                             size_t pattern_bytes);
