/* tier.h - a run's scratch file: buffers of ZERO_SPACE_FILE, and what moves to and from
 * them.
 *
 * A transfer that fails is kept, and ends the run at the next vote of all ranks: a rank
 * that left its program alone would let the others wait for ever. From then on nothing is
 * moved any more. Nothing here is collective. */
#pragma once

#include "sharding/offload.h"
#include "state/transfers.h"

/* A buffer in the file. */
typedef struct {
    int number;            /* its block of the scratch file, or -1: it is none */
    int transfer;          /* in flight, or -1 */
    zero_op_moves purpose; /* of that transfer */
    bool is_written;
    zero_transfer_span span; /* of that transfer; `file` < 0: not recorded */
} zero_tier_block;

typedef struct {
    zero_scratch *scratch;   /* NULL: this rank has nothing in a file */
    zero_tier_block *blocks; /* [n_buffers] of the schedule */

    zero_transfer_ring *ring; /* borrowed; NULL: nothing is recorded */
    int64_t label;            /* of the transfers that begin */

    /* By transfers that have ended and succeeded. */
    zero_offload_traffic moved;
    zero_file_traffic peeked; /* by zero_tier_peek() */
    zero_failure failure;     /* the first one */
    bool has_failed;
} zero_tier;

/* The most threads; they sleep in the kernel, or compute checksums. With 2 of them the disk
 * waits for checksums a quarter of the time (bench/README.md, bench_offload). */
#define ZERO_TIER_THREADS 4

/* Makes the file of a schedule in a directory; does nothing if the schedule has nothing
 * there. ZERO_ERR_NOMEM, and the errors of zero_scratch_open(). Release with _close. */
zero_status zero_tier_open(zero_tier *t, const zero_schedule *s, const char *directory);
void zero_tier_close(zero_tier *t); /* accepts a zeroed one */

/* Begins a transfer of a buffer in the file to or from `memory`, which belongs to it until
 * its end. Does nothing after a failure. */
void zero_tier_begin(zero_tier *t, zero_op_moves as, int file, bool is_write, void *memory);
/* True if a transfer to the buffer has begun once. */
bool zero_tier_is_written(const zero_tier *t, int file);
/* True if no transfer of the buffer is in flight, or it has ended. Never blocks. */
bool zero_tier_has_ended(const zero_tier *t, int file);
/* Waits for the transfer of the buffer, if there is one. */
void zero_tier_end(zero_tier *t, int file);

/* Reads a buffer in the file now; zeros if it was never written. One thread may do that
 * beside the owner's, while the owner does not write that buffer. The status of
 * zero_scratch_peek(), which is not kept. */
zero_status zero_tier_peek(zero_tier *t, int file, void *memory, size_t bytes);

/* The first failure, told again; ZERO_OK if all transfers were sound. */
zero_status zero_tier_status(const zero_tier *t);
