/* verdict.h - where ranks stand when nothing moves any more, in words: plain data, local.
 *
 *     no progress for 120 s; rank 4 does not answer. State: ranks 0-3,5: in step 9, waiting
 *     for reduce-scatter 17 of group 3 (120 s); rank 4: no answer (dead, stopped, or not in
 *     our code) */
#pragma once

#include <stdint.h>

#include "comm/member.h"
#include "comm/sentence.h"

typedef enum {
    ZERO_WATCH_SILENT, /* no answer */
    ZERO_WATCH_COMPUTING,
    ZERO_WATCH_COMPARING, /* before an operation (check.h) */
    ZERO_WATCH_WAITING,
    ZERO_WATCH_COPYING /* waiting, while copies of its device are in flight */
} zero_watch_state;

/* The position of a rank. Ranks with equal bytes before `seconds` are reported together. */
typedef struct {
    int64_t state;      /* zero_watch_state */
    int64_t reached;    /* number of operations begun, or about to begin */
    int64_t sequence;   /* of the operation it is in, or after */
    int32_t kind, unit; /* of that operation (operation.h) */
    int64_t work;       /* number of its piece of work; < 0: in none */
    zero_member member; /* the operation's group; its index is -1, or 0 for the whole */
    double seconds;     /* how long it has been there */
} zero_standing;

/* Suspects ranks that are silent, that are behind, that are in another operation than most
 * (a rank that left one out is in the next), or that wait for their device. `work` names the
 * ranks' pieces of work ("step"). class_of: scratch, [size]. */
void zero_verdict_write(int size, const zero_standing all[], const char *work,
                        double stalled, int class_of[], zero_sentence *report);
