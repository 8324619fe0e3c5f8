/* group.h - what a group of ranks consists of, and its collectives in flight: the structs.
 *
 * A group owns its MPI communicators, so our messages never meet those of a program around
 * us. It counts what it moves: collectives on data, and spans, count each message where it
 * is posted; other small messages (control.h) leave the route to MPI, so they count as if
 * each rank sent its data directly to each of the other size - 1 ranks. */
#pragma once

#include <pthread.h>

#include "base/crowd.h"
#include "lists/copier.h"
#include "lists/member.h"
#include "lists/peers.h"
#include "zero/collective.h"

#define ZERO_OPERATION_GROUP 64 /* bytes of a group's name, with the last 0 */

#define ZERO_CONTROL       ZERO_COLLECTIVE_KINDS /* small messages */
#define ZERO_TRAFFIC_KINDS (ZERO_COLLECTIVE_KINDS + 1)

#define ZERO_COLLECTIVE_REQUESTS 32 /* messages in flight per collective, at most */
#define ZERO_COLLECTIVE_COPIES   8  /* from a device, and to it, likewise */

/* Seconds, over all operations of a kind. */
typedef struct {
    double total;   /* from begin to end */
    double exposed; /* of these, spent waiting and doing nothing else */
} zero_duration;

/* Links between nodes, as a trial found them (wire.h); zeros: none was made. */
typedef struct {
    double latency; /* seconds */
    double rate;    /* bytes per second, of a node that sends and receives */
} zero_wire;

/* Requests of MPI's that end together. */
typedef struct zero_requests {
    int n;
    MPI_Request *list; /* [n], owned by who begins them */
    bool *done;        /* borrowed; becomes true when all have ended */
    struct zero_requests *next;
} zero_requests;

struct zero_comm {
    /* Owned; with `local` ranks are threads, and there are no communicators (local.h). */
    struct zero_local *local;
    MPI_Comm mpi;     /* owned; meaningless while size is 0 */
    MPI_Comm control; /* owned; the same ranks, for small messages */
    MPI_Comm node;    /* owned; the ranks of this node */
    int rank, size;
    zero_layout layout; /* owned */
    int tag_limit;      /* collectives use tags below it */

    /* A family (divide.h): a part has `whole` and its `member`, the whole has the parts.
     * Fields marked (whole) are the whole's for all of the family. */
    zero_comm *whole; /* borrowed; NULL: not a part */
    zero_comm *parts; /* owned; [n_parts], by zero_family_part; NULL: never divided */
    int n_parts;
    zero_member member;

    /* Groups of ranks of their own choice (works.h) are of the family, too: a list. */
    zero_comm *named;                /* (whole) the first; borrowed */
    zero_comm *next_named;           /* a named group: the next one of its family */
    char name[ZERO_OPERATION_GROUP]; /* as errors say it; "": the group serves no works */
    pthread_mutex_t starting;        /* (whole) of its thread; used by works alone */
    struct zero_works *works;        /* owned; NULL before the first one */
    struct zero_heap *heap;          /* owned; NULL: shares no memory (heap.h) */
    struct zero_work *undecided;     /* works whose ranks' data may lie there; borrowed */
    zero_requests *requests;         /* begun and not yet ended; borrowed */
    zero_traffic exchanged;          /* by requests */
    zero_tell *tell;                 /* (whole) where this rank computes; NULL: unknown */
    void *tell_arg;                  /* (whole) borrowed */

    struct zero_window *signal_window; /* owned; NULL before the group's first window */
    void *signals;                     /* the counters of signal.h, in that window */

    int64_t sequence;               /* of the next collective, from 0 */
    int64_t control_sequence;       /* of the next small message, from 0 */
    int64_t exchanges;              /* of all ranks (messages.c), begun so far */
    struct zero_collective *active; /* begun and not yet ended, oldest first; borrowed */
    int64_t advanced;               /* (whole) grows when a step runs or a message ends */

    zero_wire wire;             /* (whole) between its nodes */
    zero_crowd crowd;           /* (whole) beside the threads that wait */
    struct zero_watch *watch;   /* (whole) owned; NULL: no watchdog (watch.h) */
    struct zero_check *check;   /* owned; NULL: ranks do not compare (check.h) */
    struct zero_thread *thread; /* (whole) owned; NULL: no progress thread (thread.h) */
    /* (whole) borrowed; NULL: nothing is recorded (spans.h) */
    struct zero_comm_spans *spans;
    struct zero_deadline *deadline; /* (whole) borrowed; what is not watched; NULL: none */

    /* by zero_collective_kind, and ZERO_CONTROL */
    zero_traffic traffic[ZERO_TRAFFIC_KINDS];
    zero_duration duration[ZERO_TRAFFIC_KINDS];
    zero_peer_bytes peers; /* of all kinds but ZERO_CONTROL, by rank of the group */
    double last_poll;      /* (whole) when; while collectives are active */
    double largest_gap;    /* (whole) longest time between two polls, in seconds */
    bool started_mpi;      /* zero_world_open() did */
    int users;             /* trainers and optimizers that work on the group */
    bool is_closed;        /* the program has closed it: it ends with its last user */
    double
        patience; /* (whole) how many times longer than usual to wait; 0 and 1: as usual */
};

/* Copies in one direction, numbered from 0; copy i has slot i mod
 * ZERO_COLLECTIVE_COPIES. */
typedef struct {
    int64_t begun, ended;
    uint64_t ticket[ZERO_COLLECTIVE_COPIES];
    int64_t step[ZERO_COLLECTIVE_COPIES]; /* which step began the copy */
} zero_device_tickets;

typedef struct zero_collective {
    zero_comm *comm;            /* borrowed */
    zero_steps steps;           /* owned; their spec is the collective's */
    zero_tree_term *terms;      /* owned; as many as the longest sum has */
    MPI_Op add;                 /* MPI's sums in 16 bits; MPI_OP_NULL: not needed */
    const char **given;         /* owned; [size]: where the ranks' `in` lie (heap.h), and
                                 * `out`, if it is that; NULL: `apart` says it */
    const zero_copier *copier;  /* borrowed; NULL: `in` and `out` are the host's */
    size_t in_apart, out_apart; /* of neighbours' `in` and `out`, or their mirrors */
    int64_t until_sent;         /* zero_steps_until_sent() */
    uint32_t hash;              /* of what it does, for the tags of its messages */
    int64_t label;              /* the caller's, set before begin: what spans.h records */

    /* All runs of this collective so far. The group's counters have them, too. */
    zero_traffic traffic;
    zero_duration duration;

    /* while it runs */
    bool is_active;
    bool *done;     /* borrowed; becomes true when it ends; NULL: nobody asks */
    const void *in; /* with a copier: the mirrors, and the algorithm's part of staging */
    void *out, *staging;
    const void *device_in;
    void *device_out;
    zero_device_tickets fetches, stores;
    uint64_t place; /* of its begin among what the device computes */
    int64_t sequence;
    double begun, ended; /* when */
    bool is_recorded;    /* spans.h */
    int64_t sent_before; /* bytes sent by earlier runs, if it is recorded */
    int in_flight;       /* messages */
    int n_slots;         /* of the requests below that have been used */
    int64_t next_step;
    MPI_Request requests[ZERO_COLLECTIVE_REQUESTS];
    /* owned; in their place between threads (local.h) */
    struct zero_local_message *messages;
    int64_t step_of[ZERO_COLLECTIVE_REQUESTS]; /* which step posted the request */
    struct zero_collective *next_active;       /* begun after this one on the same group */
} zero_collective;
