/* memory_trace.h - a schedule's buffers, taken and freed in the order of their lives:
 * what a framework would ask of its allocator.
 *
 *     buffers of the whole run | step | step | evaluation
 *
 * A buffer is taken right before the first instruction that names it, and freed right
 * after the last one. The second step finds memory as the first one left it. */
#pragma once

#include "caching_allocator.h"
#include "sharding/schedule.h"

/* The order in which an instruction takes several buffers, and frees them. */
typedef enum {
    MEMORY_AS_LISTED,  /* that of the plan's list: the order in which the stage made them */
    MEMORY_AS_OPERANDS /* that of zero_instruction.operands */
} memory_order;

typedef struct {
    const zero_schedule *schedule; /* borrowed */
    memory_order order;
    /* [n], owned: buffer b is taken (b) or freed (-b - 1). Buffers of 0 bytes do not
     * occur. */
    int *events;
    int n;
    int64_t capacity;
} memory_trace;

/* One way through a trace. Bytes. */
typedef struct {
    size_t limit;
    bool fits;
    size_t alive;        /* the most that was asked for at once */
    size_t reserved;     /* the most that the allocator had of the device */
    int64_t returns;     /* times that it returned segments because the device was full */
    size_t wanted, free; /* !fits: the request that failed; and what no buffer had then */
    int failed_at;       /* !fits: the event */
} memory_play;

/* The least memory in which a trace fits. */
typedef struct {
    memory_play unlimited;
    memory_play least;
    memory_play
        below; /* CACHING_GRAIN less, where it fails; `unlimited` if nothing is lost */
} memory_squeeze;

/* `s` has buffers in the rank's own memory only, as every schedule with p2p and without
 * a device or a file; else ZERO_ERR_INVALID. ZERO_ERR_NOMEM. Release with
 * memory_trace_destroy(), also after a failure. */
zero_status memory_trace_init(memory_trace *t, const zero_schedule *s, memory_order order);
void memory_trace_destroy(memory_trace *t);

/* Plays the trace on a device of `limit` bytes. ZERO_ERR_NOMEM. */
zero_status memory_trace_play(const memory_trace *t, size_t limit, memory_play *play);

/* Tries every multiple of CACHING_GRAIN from what is alive on: more memory need not be
 * better, so a bisection might find more than the least. ZERO_ERR_NOMEM. */
zero_status memory_trace_squeeze(const memory_trace *t, memory_squeeze *found);
