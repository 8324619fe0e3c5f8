#include "state/tier.h"

#include "base/clock.h"

#define NONE (-1)

/* ---- opening ---- */

/* Blocks lie in the file in the order of their buffers. */
zero_status zero_tier_open(zero_tier *t, const zero_schedule *s, const char *directory)
{
    int n = 0, number = 0, depth = zero_offload_in_flight(s);
    ZERO_FREED size_t *bytes = NULL;
    for (int i = 0; i < s->n_buffers; i++) n += s->buffers[i].space == ZERO_SPACE_FILE;
    *t = (zero_tier){.scratch = NULL};
    if (n == 0) return ZERO_OK;
    ZERO_INVALID_IF(!directory, "no directory for the scratch file: give --offload DIR");
    ZERO_TRY(zero_new(&bytes, n, "blocks of a scratch file"));
    ZERO_TRY(zero_new(&t->blocks, s->n_buffers, "blocks of a scratch file"));
    for (int i = 0; i < s->n_buffers; i++) {
        t->blocks[i].number = t->blocks[i].transfer = NONE;
        if (s->buffers[i].space != ZERO_SPACE_FILE) continue;
        bytes[number] = s->buffers[i].bytes;
        t->blocks[i].number = number++;
    }
    return zero_scratch_open(
        &(zero_scratch_input){.directory = directory,
                              .n_blocks = n,
                              .bytes = bytes,
                              .depth = depth,
                              .threads = (int)zero_min(ZERO_TIER_THREADS, depth)},
        &t->scratch);
}

void zero_tier_close(zero_tier *t)
{
    zero_scratch_close(t->scratch);
    free(t->blocks);
    t->scratch = NULL;
    t->blocks = NULL;
}

/* ---- transfers ---- */

static void keep(zero_tier *t, zero_status st)
{
    if (st == ZERO_OK || t->has_failed) return;
    t->has_failed = true;
    t->failure = zero_failure_keep(st);
}

/* The clock is read for transfers that are recorded, and for no others. */
void zero_tier_begin(zero_tier *t, zero_op_moves as, int file, bool is_write, void *memory)
{
    zero_tier_block *b = &t->blocks[file];
    bool is_recorded = t->ring && t->ring->is_on;
    if (t->has_failed) return;
    b->purpose = as;
    b->span = (zero_transfer_span){.file = is_recorded ? file : NONE,
                                   .label = t->label,
                                   .is_write = is_write,
                                   .begun = is_recorded ? zero_clock_seconds() : 0.0};
    b->is_written = b->is_written || is_write;
    keep(t, is_write
                ? zero_scratch_begin_write(t->scratch, b->number, memory, &b->transfer)
                : zero_scratch_begin_read(t->scratch, b->number, memory, &b->transfer));
}

bool zero_tier_is_written(const zero_tier *t, int file)
{
    return t->blocks[file].is_written;
}

bool zero_tier_has_ended(const zero_tier *t, int file)
{
    int transfer = t->blocks[file].transfer;
    return transfer == NONE || zero_scratch_has_ended(t->scratch, transfer);
}

void zero_tier_end(zero_tier *t, int file)
{
    zero_tier_block *b = &t->blocks[file];
    if (b->transfer == NONE) return;
    zero_scratch_traffic before = zero_scratch_get_traffic(t->scratch);
    keep(t, zero_scratch_end(t->scratch, b->transfer));
    zero_transfer_ring *ring = t->ring;
    if (ring && b->span.file != NONE) {
        b->span.ended = zero_scratch_last_ended(t->scratch);
        ring->ring[ring->n++ % ring->capacity] = b->span;
    }
    zero_scratch_traffic now = zero_scratch_get_traffic(t->scratch);
    /* What the file has moved since `before`. */
    zero_file_traffic_add(&t->moved.of[b->purpose], 1, &now);
    zero_file_traffic_add(&t->moved.of[b->purpose], UINT64_MAX, &before);
    b->transfer = NONE;
}

zero_status zero_tier_peek(zero_tier *t, int file, void *memory, size_t bytes)
{
    if (!t->blocks[file].is_written) {
        memset(memory, 0, bytes);
        return ZERO_OK;
    }
    ZERO_TRY(zero_scratch_peek(t->scratch, t->blocks[file].number, memory));
    t->peeked.bytes_read += bytes;
    t->peeked.reads++;
    return ZERO_OK;
}

zero_status zero_tier_status(const zero_tier *t)
{
    return t->has_failed ? zero_failure_restore(&t->failure) : ZERO_OK;
}
