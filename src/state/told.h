/* told.h - what a rank did in one instruction, as numbers that can be sent and put into
 * words.
 *
 * A walk fills these events if it is asked to (runner.h); lessons and `zero train
 * --narrate` show them. An event has neither pointers nor holes, so ranks send it as it is.
 *
 * The numbers are single elements, the same on all ranks: element 5 of each rank's piece of
 * a group, or the first one of a shorter piece. Pieces without parameters have none.
 *
 *     LOAD           `tokens`: the first ones of the first sample
 *     FORWARD        [0] the first number of the output, or the mean loss of the microbatch
 *     BACKWARD       [0] the loss, if this pass computes it; [1] an element of the gradient
 *     REDUCE         [k] what this rank adds to the piece of ZeRO rank k
 *     REDUCE_WAIT    [k] the sum, with k this rank's number
 *     GATHER         [k] what this rank gives, with k this rank's number
 *     GATHER_WAIT    [k] what ZeRO rank k has given
 *     ROUND, ACCUMULATE  [0] the result
 *     LOSS           [0] the mean loss of all ranks
 *     NORM           [0] the sum of the squares of this rank's piece
 *     OVERFLOW       [0] the norm of the gradient of all ranks
 *     UPDATE         [0] a master weight before, [1] after, [2] its gradient as it was
 *                    summed */
#pragma once

#include <stdint.h>

#define ZERO_TOLD_RANKS  8 /* at most */
#define ZERO_TOLD_TOKENS 4
#define ZERO_TOLD_AT     5    /* of a piece */
#define ZERO_TOLD_NONE   (-1) /* as `op`: the rank has no such instruction */

/* One element, and its value. */
typedef struct {
    int64_t at; /* in the group's flat space, or 0; -1: no number */
    double value;
} zero_told_number;

typedef struct {
    int64_t step;      /* from 1 */
    int64_t at;        /* index of the instruction in the rank's step program */
    int64_t rank;      /* of all */
    int64_t shard, tp; /* this rank's number in its ZeRO group, and in its TP group */
    int64_t op;        /* zero_op, or ZERO_TOLD_NONE */
    /* As in zero_instruction; BACKWARD: its first group. */
    int64_t unit, part, group, microbatch;
    int64_t sample;         /* LOAD: of the global batch, from 0 */
    int64_t live_bytes;     /* of this rank, while the instruction runs */
    int64_t bytes;          /* of the buffer that the instruction names */
    int64_t sent, received; /* bytes, to and from other ranks */
    /* Bytes by rank of all: that this one sends in messages, and that it reads from the
     * other's memory, which so sent them. */
    int64_t sent_to[ZERO_TOLD_RANKS], read_from[ZERO_TOLD_RANKS];
    /* The elements of the group that are this rank's, or that it changes, and how many of
     * them are no padding. */
    int64_t begin, end, real;
    int64_t is_gradient; /* GATHER: of gradients, not of parameters */
    int64_t is_loss;     /* FORWARD, BACKWARD: numbers[0] is a loss */
    int64_t done; /* UPDATE: 1 if it was made; OVERFLOW: 1 if all numbers are finite */
    int64_t tokens[ZERO_TOLD_TOKENS]; /* -1: none */
    zero_told_number numbers[ZERO_TOLD_RANKS];
} zero_told;

/* A step of all ranks, or of those of a pipeline stage, from rank `first` of all on: rank
 * first + r's instruction `at` is list[r * length + at]. */
typedef struct {
    zero_told *list;
    int n_ranks, length, first;
} zero_tale;

static inline const zero_told *zero_tale_at(const zero_tale *tale, int rank, int at)
{
    return &tale->list[(int64_t)rank * tale->length + at];
}
