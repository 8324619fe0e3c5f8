/* runner.h - the memory and the tables with which a schedule is executed.
 *
 * All memory of ours is taken when the runner is opened (run_setup.h); walking a program
 * (run.h) allocates nothing. */
#pragma once

#include "base/arena.h"
#include "comm/collective.h"
#include "comm/device.h"
#include "comm/window.h"
#include "sharding/schedule_memory.h"
#include "state/device_times.h"
#include "state/tier.h"
#include "state/told.h"
#include "state/trace.h"

/* The collectives of an exchange: several of a group whose pieces have owners. */
typedef struct {
    zero_collective *ops; /* [n], owned */
    int n;
} zero_runner_exchange;

/* A chain in flight (run_exchange.c): an exchange of one or two collectives, of which the
 * second needs the result of the first. Polls begin the second when the first has ended. */
typedef struct {
    zero_runner_exchange *chain; /* NULL: none is in flight */
    int begun;                   /* collectives */
    int64_t label;               /* of the instruction: what comm/spans.h records */
    char *own;                   /* of a chain of two: this rank's piece of the result */
    char *whole;                 /* the result */
    void *staging;
} zero_chained;

/* An update that the ranks have agreed on. */
typedef struct {
    bool is_due;
    zero_adamw hyper; /* with the gradient's scale */
} zero_pending_update;

/* A thread that reads the states of all groups once, beside walks
 * (zero_states_view_beside()). UPDATE of a group waits until it has. */
typedef struct {
    bool (*has_read)(const void *arg, int group); /* any thread; NULL: nobody reads */
    const void *arg;
} zero_states_reader;

typedef struct zero_walk zero_walk; /* walk.h */

typedef struct {
    const zero_schedule *schedule; /* borrowed, like the next two */
    const zero_backend *backend;
    union {
        zero_comm *groups[ZERO_FAMILY_PARTS]; /* by zero_family_part */
        struct {
            zero_comm *comm;     /* all ranks: what they agree on */
            zero_comm *tp;       /* the TP group, which shares units; NULL without */
            zero_comm *data;     /* the ZeRO group, whose ranks see data of their own */
            zero_comm *shard;    /* its ranks that share groups; without replicas `data` */
            zero_comm *replicas; /* ranks that hold what this one holds; NULL without */
            zero_comm *pipe;     /* the pipeline group, by stage; NULL without */
        };
    };
    zero_math math;
    /* The shard group's window; borrowed, zeroed if its ranks share no memory. */
    const zero_window *window;
    const zero_window *tp_window; /* the TP group's, likewise */
    zero_arena arena;             /* the host's */
    zero_link link;     /* to and from a device, if the backend has memory of its own */
    zero_copier copier; /* these copies, for collectives */
    zero_device_window near; /* neighbours' devices, with plan_input.ipc; else zeroed */
    zero_math host;          /* with offload: updates by the CPU, beside the device */
    void *device;            /* its arena; NULL without a device */
    bool is_open, host_is_open, window_is_pinned;
    /* Owned, like all below; tables of one kind that follow each other are one block. */
    /* By number (zero_exchange_number()) of each op that begins an exchange; n = 0 if the
     * schedule does not use it. JOIN and COLLECT have one table, and SEND and RECEIVE. */
    zero_runner_exchange *exchanges[ZERO_OP_KINDS];
    int n_exchanges;                         /* in all */
    int64_t messages[2][ZERO_PIPE_CONTENTS]; /* received, and sent, so far */
    zero_chained joining, reducing;          /* the JOIN and the ALL_REDUCE in flight */
    zero_ticket *loss_copies;    /* [M] of row losses that are on their way to the host */
    zero_ticket token_copies[2]; /* the last one from each slot of tokens */
    zero_ticket *grad_copies;    /* [n_groups] the last FETCH_GRAD */
    zero_ticket *param_copies;   /* [n_groups] the last STORE_PARAM */
    double *losses;              /* [M] of this rank's microbatches, sums over positions */
    double *gathered;            /* [N_d * M], by rank, as they arrive */
    double *all_losses;          /* [N_d * M], by microbatch index */
    zero_tree_span *squares;     /* [n_groups] */
    zero_exact exact_squares;    /* with shares: of all groups */
    zero_status poll_status;     /* of polls during arithmetic, which cannot return one */
    double polled;               /* seconds of polls while collectives were in flight */
    zero_profile profile;
    zero_device_times times;      /* the profile's clock on a device */
    int64_t walks[ZERO_PROGRAMS]; /* completed */
    zero_traffic control;         /* small messages of these walks */
    int64_t compares;             /* COMPAREs of these walks */
    uint64_t changed;       /* what UPDATE has noted: zero_update_changed(); 0: nothing */
    bool units_are_checked; /* a step has shown that they define their results */
    zero_pending_update pending;    /* `lazy`, `delayed`: the last step's, for the next */
    zero_tier tier;                 /* the file, if something lies there */
    int64_t updates[ZERO_PROGRAMS]; /* walks in which there was an update */
    double streamed;                /* seconds of the stream during other instructions */
    zero_states_reader reader;
    zero_walk *walk;    /* the present one, for polls */
    int at;             /* the instruction being executed */
    zero_life *touched; /* [n_buffers] the instructions that used it first and last */
    zero_trace *trace;  /* borrowed; NULL: nothing is recorded */
    zero_told *told;    /* borrowed; [instructions of a step]; NULL: nothing is told */
} zero_runner;

/* The memory of a buffer of the schedule; NULL for ZERO_NO_BUFFER. */
void *zero_runner_buffer(const zero_runner *r, int buffer);
/* Element i of a group's flat space in a buffer that holds it; NULL for ZERO_NO_BUFFER. */
void *zero_runner_element(const zero_runner *r, int buffer, int64_t i);
