/* operation.h - an operation that the ranks of a group do together, as errors name it:
 * plain data.
 *
 * Collectives on data and small messages are numbered separately, each from 0 and in the
 * same order on all ranks of the group. Two ranks are in the same operation if all fields
 * are equal. */
#pragma once

#include "comm/group.h"

/* Small messages; their numbers continue those of zero_collective_kind. */
typedef enum {
    ZERO_OPERATION_AGREEMENT = ZERO_COLLECTIVE_KINDS,
    ZERO_OPERATION_VOTE,
    ZERO_OPERATION_NUMBERS, /* doubles of all ranks to all ranks */
    ZERO_OPERATION_WORDS,   /* the or of their bits */
    ZERO_OPERATION_MOST,    /* the largest integer */
    ZERO_OPERATION_SUM,     /* of integers */
    ZERO_OPERATION_SPANS,   /* merged */
    ZERO_OPERATION_MESSAGE, /* bytes of one rank to all ranks */
    ZERO_OPERATION_BARRIER,
    ZERO_OPERATION_EXCHANGE, /* of messages between any ranks */
    ZERO_OPERATION_OPENING,  /* of a group of some ranks */
    ZERO_OPERATION_END,      /* of the group, or of what watches it */
    ZERO_OPERATION_NONE      /* before the first one */
} zero_operation_kind;

typedef struct {
    int64_t sequence;
    int64_t count, stride; /* elements; small messages: count is bytes */
    int64_t max_chunk;
    int32_t kind; /* zero_collective_kind or zero_operation_kind */
    int32_t unit; /* or ZERO_NO_UNIT */
    int32_t type, result, algorithm;
    int32_t root; /* -1 without one */
    int32_t on_device, in_place;
    zero_member member;               /* of the group */
    char group[ZERO_OPERATION_GROUP]; /* its name, if it has one: zeros after it */
} zero_operation;

#define ZERO_OPERATION_TEXT 256 /* bytes for either text below */

zero_operation zero_operation_collective(const zero_collective_spec *spec,
                                         int64_t sequence);
zero_operation zero_operation_control(zero_operation_kind kind, int64_t sequence,
                                      int64_t bytes, int root);

void zero_operation_set_group(zero_operation *op, const char *name);
uint32_t zero_operation_group_hash(const char *name);

bool zero_operation_equal(const zero_operation *a, const zero_operation *b);

/* "reduce-scatter 17 of group 3"; in a family "all-gather 3 of JOIN 2 in the TP group of
 * ranks 2-3": a TP group's units are JOINs. */
void zero_operation_name(const zero_operation *op, char text[ZERO_OPERATION_TEXT]);
/* "reduce-scatter 17 of group 3 (p2p, fp32, 1024 elements, 4096 apart)" */
void zero_operation_describe(const zero_operation *op, char text[ZERO_OPERATION_TEXT]);
