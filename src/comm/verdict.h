/* verdict.h - where ranks stand when nothing moves any more, in words: plain data, local.
 *
 *     no progress for 120 s; rank 4 does not answer. State: ranks 0-3,5: in step 9, waiting
 *     for reduce-scatter 17 of group 3 (120 s); rank 4: no answer (dead, stopped, or not in
 *     our code) */
#pragma once

#include <stdint.h>

#include "comm/sentence.h"

typedef enum {
    ZERO_WATCH_SILENT, /* no answer */
    ZERO_WATCH_COMPUTING,
    ZERO_WATCH_COMPARING, /* before an operation; check.h */
    ZERO_WATCH_WAITING
} zero_watch_state;

/* Where a rank is. Those with equal bytes before `seconds` are reported together. */
typedef struct {
    int64_t state;      /* zero_watch_state */
    int64_t reached;    /* operations begun, or about to be */
    int64_t sequence;   /* of the one it is in, or after; with these: */
    int32_t kind, unit; /* operation.h */
    int64_t work;       /* the number of its piece of work, < 0: of none */
    double seconds;     /* it has been there */
} zero_standing;

/* Suspected are silent ranks, those that have reached less than others, and, as a rank that
 * left an operation out is in the next one, those in another than most. `work` is what the
 * ranks' pieces of work are called ("step"). class_of: room for [size]. */
void zero_verdict_write(int size, const zero_standing all[], const char *work,
                        double stalled, int class_of[], zero_sentence *report);
