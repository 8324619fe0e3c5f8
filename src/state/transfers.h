/* transfers.h - when transfers of a scratch file were in flight: a ring that tier.h
 * fills. */
#pragma once

#include "base/fail.h"

typedef struct {
    double begun; /* when the walk began it */
    double ended; /* when its bytes had moved, as the thread that moved them saw it */
    int64_t label;
    int32_t file; /* the buffer in the file */
    bool is_write;
} zero_transfer_span;

typedef struct {
    zero_transfer_span *ring; /* [capacity]; NULL: nothing is recorded */
    int64_t capacity;
    int64_t n; /* recorded so far; number k lies in ring[k % capacity] */
    bool is_on;
} zero_transfer_ring;
