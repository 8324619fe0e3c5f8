/* scratch.h - blocks of memory in a scratch file, moved by threads while the caller
 * computes.
 *
 *     begin_write(block 5) ... ended? ... end      the slot's bytes are in the file
 *     begin_read(block 5)  ... ended? ... end      they are in a slot again, and verified
 *
 * A transfer's memory belongs to the file between begin and end. A checksum of each block
 * stays in memory (XXH3-64) and is compared when the block is read: a disk that returns
 * other bytes is an error and never a wrong number. Transfers of different blocks end in
 * any order.
 *
 * One thread, the owner, calls these functions; nothing is taken from the heap after
 * opening. The threads call pread, pwrite and the checksum and nothing else: never MPI.
 * Nothing here is collective. */
#pragma once

#include "io/scratch_file.h"

typedef struct zero_scratch zero_scratch;

#define ZERO_SCRATCH_MAX_DEPTH 65536

typedef struct {
    const char *directory;
    int n_blocks;
    const size_t *bytes; /* [n_blocks]; multiples of ZERO_SCRATCH_ALIGN, borrowed */
    int depth;           /* transfers in flight at most, 1 to ZERO_SCRATCH_MAX_DEPTH */
    int threads;         /* 1 to depth */
} zero_scratch_input;

/* Blocks lie end to end in the file, in their order. ZERO_ERR_INVALID if a number is out of
 * its range; zero_scratch_file_open's errors; ZERO_ERR_NOMEM; ZERO_ERR_ENV if a thread
 * cannot be started. The caller owns *out. */
zero_status zero_scratch_open(const zero_scratch_input *input, zero_scratch **out);
/* Waits for transfers in flight; their results are lost. Accepts NULL. */
void zero_scratch_close(zero_scratch *s);

/* The file, for what it can do and its name in messages. */
const zero_scratch_file *zero_scratch_get_file(const zero_scratch *s);

/* ---- transfers ---- */

/* Begins to write a block from `data` or to read it into `data`, both aligned to
 * ZERO_SCRATCH_ALIGN. *transfer identifies it until it is ended. ZERO_ERR_INVALID if
 * `depth` transfers are in flight, if this block is in one of them, or if a block is read
 * that was never written. */
zero_status zero_scratch_begin_write(zero_scratch *s, int block, const void *data,
                                     int *transfer);
zero_status zero_scratch_begin_read(zero_scratch *s, int block, void *data, int *transfer);

/* True once the bytes have moved, or could not be. Never blocks. */
bool zero_scratch_has_ended(zero_scratch *s, int transfer);

/* Waits for a transfer and forgets it. ZERO_ERR_ENV if the bytes could not be moved;
 * ZERO_ERR_FORMAT if other bytes were read than were written. Both name block and
 * offset. */
zero_status zero_scratch_end(zero_scratch *s, int transfer);

/* Reads a block at once. Any thread may call it while no transfer writes the block. Not
 * counted. The errors of begin and end. */
zero_status zero_scratch_peek(const zero_scratch *s, int block, void *data);

/* When the bytes of the transfer that was ended last had moved, on base/clock.h. */
double zero_scratch_last_ended(const zero_scratch *s);

/* ---- counters ---- */

typedef struct {
    uint64_t bytes_read, bytes_written; /* by transfers that were ended and succeeded */
    uint64_t reads, writes;
} zero_scratch_traffic;

zero_scratch_traffic zero_scratch_get_traffic(const zero_scratch *s);
