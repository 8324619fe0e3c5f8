#include "state/tier.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/number.h"

#define NONE (-1)

/* ---- opening ---- */

static int count_blocks(const zero_schedule *s)
{
    int n = 0;
    for (int i = 0; i < s->n_buffers; i++) n += s->buffers[i].space == ZERO_SPACE_FILE;
    return n;
}

/* Numbers the blocks in the order in which they lie in the file. */
static void number_blocks(zero_tier *t, const zero_schedule *s, size_t *bytes)
{
    int n = 0;
    for (int i = 0; i < s->n_buffers; i++) {
        t->number[i] = t->transfer[i] = NONE;
        if (s->buffers[i].space != ZERO_SPACE_FILE) continue;
        bytes[n] = s->buffers[i].bytes;
        t->number[i] = n++;
    }
}

static zero_status open_blocks(zero_tier *t, const zero_schedule *s, const char *directory,
                               int n, size_t *bytes)
{
    size_t buffers = (size_t)s->n_buffers;
    t->number = calloc(buffers, sizeof *t->number);
    t->transfer = calloc(buffers, sizeof *t->transfer);
    t->purpose = calloc(buffers, sizeof *t->purpose);
    t->is_written = calloc(buffers, sizeof *t->is_written);
    t->spans = calloc(buffers, sizeof *t->spans);
    ZERO_TRY(zero_allocated(bytes && t->number && t->transfer && t->purpose &&
                                t->is_written && t->spans,
                            "no memory for the %d blocks of a scratch file", n));
    number_blocks(t, s, bytes);
    int depth = zero_offload_in_flight(s);
    return zero_scratch_open(
        &(zero_scratch_input){.directory = directory,
                              .n_blocks = n,
                              .bytes = bytes,
                              .depth = depth,
                              .threads = (int)zero_min(ZERO_TIER_THREADS, depth)},
        &t->scratch);
}

zero_status zero_tier_open(zero_tier *t, const zero_schedule *s, const char *directory)
{
    int n = count_blocks(s);
    *t = (zero_tier){.scratch = NULL};
    if (n == 0) return ZERO_OK;
    if (!directory)
        return zero_fail(ZERO_ERR_INVALID, "no directory for the scratch file: give "
                                           "--offload DIR");
    size_t *bytes = calloc((size_t)n, sizeof *bytes);
    zero_status st = open_blocks(t, s, directory, n, bytes);
    free(bytes);
    if (st != ZERO_OK) zero_tier_close(t);
    return st;
}

void zero_tier_close(zero_tier *t)
{
    zero_scratch_close(t->scratch);
    free(t->number);
    free(t->transfer);
    free(t->purpose);
    free(t->is_written);
    free(t->spans);
    t->scratch = NULL;
    t->number = t->transfer = NULL;
    t->purpose = NULL;
    t->is_written = NULL;
    t->spans = NULL;
}

/* ---- transfers ---- */

static void keep(zero_tier *t, zero_status st)
{
    if (st == ZERO_OK || t->has_failed) return;
    t->has_failed = true;
    t->failure = zero_failure_keep(st);
}

/* The clock is read for transfers that are recorded, and for no others. */
static void note_begin(zero_tier *t, int file, bool is_write)
{
    bool is_recorded = t->ring && t->ring->is_on;
    t->spans[file] =
        (zero_transfer_span){.file = is_recorded ? file : NONE,
                             .label = t->label,
                             .is_write = is_write,
                             .begun = is_recorded ? zero_clock_seconds() : 0.0};
}

void zero_tier_begin_read(zero_tier *t, zero_moved as, int file, void *memory)
{
    if (t->has_failed) return;
    t->purpose[file] = as;
    note_begin(t, file, false);
    keep(t,
         zero_scratch_begin_read(t->scratch, t->number[file], memory, &t->transfer[file]));
}

void zero_tier_begin_write(zero_tier *t, zero_moved as, int file, const void *memory)
{
    if (t->has_failed) return;
    t->purpose[file] = as;
    note_begin(t, file, true);
    keep(t,
         zero_scratch_begin_write(t->scratch, t->number[file], memory, &t->transfer[file]));
    t->is_written[file] = true;
}

bool zero_tier_is_written(const zero_tier *t, int file)
{
    return t->is_written[file];
}

bool zero_tier_has_ended(const zero_tier *t, int file)
{
    return t->transfer[file] == NONE ||
           zero_scratch_has_ended(t->scratch, t->transfer[file]);
}

void zero_tier_end(zero_tier *t, int file)
{
    if (t->transfer[file] == NONE) return;
    zero_scratch_traffic before = zero_scratch_get_traffic(t->scratch);
    keep(t, zero_scratch_end(t->scratch, t->transfer[file]));
    zero_transfer_ring *ring = t->ring;
    zero_transfer_span *span = &t->spans[file];
    if (ring && span->file != NONE) {
        span->ended = zero_scratch_last_ended(t->scratch);
        ring->ring[ring->n++ % ring->capacity] = *span;
    }
    zero_scratch_traffic now = zero_scratch_get_traffic(t->scratch);
    /* Adds what the file has moved since `before`. */
    zero_file_traffic *sum = &t->moved[t->purpose[file]];
    sum->bytes_read += now.bytes_read - before.bytes_read;
    sum->bytes_written += now.bytes_written - before.bytes_written;
    sum->reads += now.reads - before.reads;
    sum->writes += now.writes - before.writes;
    t->transfer[file] = NONE;
}

zero_status zero_tier_status(const zero_tier *t)
{
    return t->has_failed ? zero_failure_restore(&t->failure) : ZERO_OK;
}
