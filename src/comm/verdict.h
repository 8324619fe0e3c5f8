/* verdict.h - where ranks stand when nothing moves any more, in words: plain data, local.
 *
 *     no progress for 120 s; rank 4 does not answer. State: ranks 0-3,5: in step 9, waiting
 *     for reduce-scatter 17 of group 3 (120 s); rank 4: no answer (dead, stopped, or not in
 *     our code) */
#pragma once

#include "comm/operation.h"
#include "comm/sentence.h"

typedef enum {
    ZERO_WATCH_SILENT, /* no answer */
    ZERO_WATCH_COMPUTING,
    ZERO_WATCH_COMPARING, /* before an operation (check.h) */
    ZERO_WATCH_WAITING,
    ZERO_WATCH_COPYING /* waiting, while copies of its device are in flight */
} zero_watch_state;

#define ZERO_WATCH_GROUPS 32 /* of which a rank tells, at most */
#define ZERO_WATCH_PLACE  96 /* bytes */

typedef struct {
    uint32_t name; /* a hash */
    uint32_t begun;
} zero_group_count;

/* The position of a rank. Ranks with equal bytes before `seconds` are reported together. */
typedef struct {
    int64_t state;   /* zero_watch_state */
    int64_t reached; /* number of operations begun, or about to begin, in all its groups */
    int64_t begun[ZERO_FAMILY_PARTS]; /* of these, in its group of each part */
    int64_t sequence;                 /* of the operation it is in, or after */
    int32_t kind, unit;               /* of that operation (operation.h) */
    int64_t work;                     /* number of its piece of work; < 0: in none */
    zero_member member; /* the operation's group; its `first` is -1, or 0 for the whole */
    char group[ZERO_OPERATION_GROUP]; /* with works (works.h): its name, and the numbers */
    int64_t count;
    int32_t type, root;
    double seconds; /* how long it has been there */
    double
        outside; /* seconds for which it has waited for a file or a device; 0: it does not */
    /* With works: what it has begun in its groups, and where it computes, or "". */
    int32_t n_groups;
    zero_group_count groups[ZERO_WATCH_GROUPS];
    char place[ZERO_WATCH_PLACE];
} zero_standing;

/* A job in which nothing moves. */
typedef struct {
    const zero_standing *all; /* [size] */
    int size;
    int n_parts;                          /* of a family (divide.h); 0: never divided */
    zero_member parts[ZERO_FAMILY_PARTS]; /* this rank's groups */
    const char *work; /* the name of the ranks' pieces of work: "step" */
    double stalled;   /* seconds */

    int *class_of; /* [size]: room for classes of ranks */
    /* Set by zero_verdict_write(). */
    bool has_silent;
    int64_t least, furthest; /* that ranks have reached */
    int most_conflicts;      /* of a class, in a family */
} zero_stalled_job;

/* Suspects ranks that are silent, that are behind, that are in another operation than most
 * (a rank that left one out is in the next), or that wait for their device.
 *
 * In a family ranks stop at different places when one of them does; those that just wait
 * for a suspect are not suspected. A rank that left out an operation has begun fewer
 * operations than another rank in one group, and more in another one.
 *
 * With works ranks are in groups of their own choice, and do different numbers of
 * operations. Then those are suspected for which others wait, and which wait for nobody who
 * has yet to begin something. */
void zero_verdict_write(zero_stalled_job *job, zero_sentence *report);
