/* told.h - what a rank did in one instruction, as numbers that can be sent and put into words.
 *
 * A run and the machine of a lesson tell the same events (tell.h), and the narrator puts them into
 * the same words (narrate.h). An event has no pointers and no holes, so ranks send it as it is. */
#pragma once

#include <stdint.h>

#include "sharding/schedule.h"

#define ZERO_TOLD_RANKS 8 /* the most that are narrated */

/* One element, and the number that it has. */
typedef struct {
    int64_t at; /* in the group's flat space; in an output: of the first sample; -1: none */
    double value;
} zero_told_number;

/* What an event counts as seen: `numbers` by kind of instruction.
 *
 *     REDUCE         [k] an element of rank k's shard, and what this rank gives for it
 *     REDUCE_WAIT    [0] the same element of this rank's shard, and the sum
 *     GATHER         [0] the first element of this rank's shard
 *     GATHER_WAIT    [k] the first element of rank k's shard
 *     FORWARD        [0] the first number of the output; with logits: the mean loss so far
 *     BACKWARD       [k] as REDUCE, the gradient here
 *     NORM           [0] the sum of the squares of this rank's piece
 *     OVERFLOW       [0] the norm of the whole gradient
 *     LOSS           [0] the mean loss of all ranks
 *     UPDATE         [0], [1] an element before and after; [2] its gradient
 *     FETCH, STORE   nothing but bytes
 */
typedef struct {
    int64_t step; /* from 1 */
    int64_t at;   /* of the instruction in the program of this rank */
    int64_t rank; /* of all ranks */
    int64_t op, unit, group, microbatch;
    int64_t sample;     /* LOAD: of the global batch, from 0 */
    int64_t live_bytes; /* of this rank, while the instruction runs */
    int64_t bytes;      /* of the buffer that it begins, fills or gives back */
    int64_t sent;       /* bytes to other ranks; received as many unless `owner` */
    int64_t received;
    int64_t first,
        last; /* elements that this rank owns or changes: first..last; last < first: none */
    int64_t
        done; /* UPDATE: 1 if it was made; OVERFLOW: 1 if ranks agree that all is finite */
    int64_t tokens[4]; /* LOAD: the first ones of the first sample; -1: none */
    zero_told_number numbers[ZERO_TOLD_RANKS];
} zero_told;

/* The events of one walk through the step program: list[rank * length + at]. Ranks' programs have one
 * length (a plan with `owner` leaves ranks idle, it does not shorten them). */
typedef struct {
    zero_told *list;
    int n_ranks, length;
} zero_tale;
