/* plan_batch.h - the largest micro batch that fits a given memory.
 *
 *     the global batch    micro batch            microbatches per rank and step
 *     grows with ranks    any number             those of the plan
 *     is given            a divisor of a rank's  a rank's sequences / micro batch; with
 *                         sequences              `reproducible` a power of two
 *
 * Nothing here is collective. */
#pragma once

#include "plan/plan_fit.h"

#define ZERO_PLAN_BATCH_PARTS INT64_C(65536) /* no step has more microbatches */

typedef struct {
    int64_t micro_batch; /* 0: none fits */
    int accumulation;
    /* Bytes, as in zero_plan_fitted. If none fits: those of the smallest micro batch, or
     * (with a global batch) a lower bound of them. */
    size_t needed;
    size_t host;        /* with a device: bytes beside it, as in zero_plan_fitted; else 0 */
    int64_t next;       /* the next larger micro batch; 0: no plan has one */
    size_t next_needed; /* bytes: more than the room */
} zero_plan_batch;

/* The largest micro batch with which the plan needs at most room->bytes, and beside a
 * device room->host; room->disk is not read. If the global batch is given, `sequences` is
 * the number of sequences of a rank and step; else it is 0. The search rests on one law:
 * the bytes alive at once grow with the micro batch. The bytes needed may shrink, because a
 * layout leaves gaps. If no micro batch fits, that is no failure. Fails as
 * zero_schedule_compile() does if it fails for every micro batch. */
zero_status zero_plan_fit_batch(const zero_plan_input *input, int64_t sequences,
                                const zero_plan_room *room, zero_plan_batch *fitted);
