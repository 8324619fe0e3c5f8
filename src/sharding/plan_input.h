/* plan_input.h - everything that decides a schedule.
 *
 * The members are listed once, in zero_plan_fields. Whether all ranks were given the same,
 * the JSON of a plan and a message about what differs come from that list: a new member
 * needs a row there, and a value in zero_plan_input_standard(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "lists/spec.h"
#include "math/backend.h"
#include "nn/model.h"
#include "sharding/partition.h"

#define ZERO_PLAN_BUCKET (INT64_C(1) << 20) /* elements: 4 MiB of fp32 */
/* At most: more than the least that a million ranks need, whatever the algorithm. */
#define ZERO_PLAN_MOST_BUCKET (256 * ZERO_PLAN_BUCKET)
#define ZERO_PLAN_REPLICAS    100               /* check_replicas */
#define ZERO_TEXTS            ZERO_CACHED_TEXTS /* at most: texts that are generated at one time */
#define ZERO_PLAN_DEPTH       4                 /* blocks of a file in memory at once */

/* The place of UPDATE in the step if optimizer states lie in a slower tier: a file, or with
 * offload_host the host's memory beside a device. */
typedef enum {
    ZERO_OFFLOAD_OFF,      /* they lie where the backend computes */
    ZERO_OFFLOAD_END,      /* after OVERFLOW, as with OFF */
    ZERO_OFFLOAD_LAZY,     /* in the next step, before the first use of the group */
    ZERO_OFFLOAD_BACKWARD, /* as soon as the group's gradient is known */
    ZERO_OFFLOAD_DELAYED, /* beside the whole next step, which does not see it: other numbers */
    ZERO_OFFLOAD_PLACES
} zero_offload;
const char *zero_offload_name(zero_offload place); /* "lazy" */

/* Members leave no holes: a test adds up their sizes to see that the list has them all. */
typedef struct {
    const zero_model *model; /* borrowed; with tensor parallelism this rank's part */
    int stage;
    zero_type type;        /* of parameters and gradients */
    zero_type activations; /* as the model's units have it: fp32, or `type` */
    zero_partition_scheme partition;
    int n_ranks; /* N_d: the ranks that see data of their own */
    /* 1, with a device: ranks reach the devices of their neighbours (comm/device_window.h),
     * and exchange parameters and gradients inside a node without the host. */
    int ipc;
    /* 1, with a device: MPI's messages read and write its memory (p2p), so that nothing of
     * parameters and gradients passes through the host. As wide as its neighbours: an int
     * would leave a hole. */
    int64_t device_messages;
    int64_t micro_batch; /* sequences per microbatch and rank */
    int64_t seq;         /* T */
    int accumulation;    /* M: microbatches per rank and step */
    bool reproducible;  /* the same bits at every world size; N_d and M are powers of two */
    bool recompute;     /* activations are computed twice instead of kept */
    bool serial;        /* every collective is waited for at once */
    bool forward_only;  /* no step: no gradients, no optimizer states, no masters */
    int64_t bucket;     /* C_B, elements */
    int64_t message;    /* bytes per message between ranks, paced; 0: as collectives like */
    int64_t prefetch;   /* uses of parameters that are gathered ahead */
    int64_t persist;    /* groups of at most this many parameters stay whole */
    int check_replicas; /* steps in which all copies are compared; 0: never */
    int check_memory; /* 1: optimizer states are hashed, and verified before each update */
    zero_offload offload;    /* optimizer states in a slower tier: when they are updated */
    int offload_parameters;  /* 1: this rank's pieces of parameters, too; stage 3 */
    int offload_activations; /* 1: what `recompute` keeps, too */
    int offload_depth;       /* blocks of optimizer states in memory at once */
    int64_t delayed_from;    /* DELAYED: the first delayed step, from 1 */
    int64_t
        texts; /* generated at one time, by a cache of keys and values; 0: without one */
    /* 1: each rank of a TP group keeps its piece of what `recompute` keeps. As wide as its
     * neighbours, since an int would leave a hole. */
    int64_t partition_activations;
    int device; /* 1: arithmetic on a device, whose memory the host cannot touch */
    int offload_host; /* 1, with a device and `offload`: that tier is the host's memory, not a file */
    /* R: stages shard over R neighbours, and N_d / R such groups are replicas; 0: over all
     * N_d. */
    int shard_ranks;
    /* 1, stage 3: gathered parameters stay in node memory until their last use in a
     * program. */
    int node_parameters;
    int64_t
        threads; /* of a rank, that compute; 0 counts as 1; a device has its own. Equal bits */
    zero_algorithm collectives;
    int rank; /* the rank whose program this is */

    /* Borrowed, of n_ranks ranks; NULL: every rank on a node of its own. */
    const zero_layout *layout;
    /* Borrowed, of the TP group's model->share.ranks ranks; NULL: they share a node. */
    const zero_layout *tp_layout;
    /* Borrowed, of a shared model's N_d * T ranks, in the order of the world: rank d*T + p.
     * NULL: all TP groups are spread over nodes as this rank's is. */
    const zero_layout *world_layout;
} zero_plan_input;

/* A plan for stage 0 in fp32, with one sequence of the model's length per step and the
 * standard bucket, prefetch and comparison of copies. It names p2p, which runs on any
 * nodes; the caller may know better. */
zero_plan_input zero_plan_input_standard(const zero_model *model, int n_ranks, int rank);

/* All members but model, rank and the layouts: what must be equal on all ranks. */
#define ZERO_PLAN_FIELDS 33
extern const zero_field zero_plan_fields[ZERO_PLAN_FIELDS];

/* Whether the plan's collectives could be made between the devices of each node: with shm
 * or hier, where a node has several ranks. *why is the reason, for texts. Whether the
 * devices can, only a run knows. */
bool zero_plan_can_reach_devices(const zero_plan_input *in, const char **why);

/* Likewise whether messages could be made from and to devices: with p2p. */
bool zero_plan_can_message_devices(const zero_plan_input *in, const char **why);

/* How ranks exchange what their devices hold, as in --device-exchange: "ipc", "mpi" or
 * "staged". */
const char *zero_plan_device_exchange(const zero_plan_input *in);

/* True if optimizer states lie in a file. */
static inline bool zero_plan_uses_file(const zero_plan_input *in)
{
    return in->offload != ZERO_OFFLOAD_OFF && !in->offload_host;
}

/* True if the host's CPU updates beside a device: states in its memory, or blocks of the
 * file. */
static inline bool zero_plan_updates_beside(const zero_plan_input *in)
{
    return in->device && in->offload != ZERO_OFFLOAD_OFF;
}

/* True if unit u's passes are computed again, if it saves anything. The last one's backward
 * follows its forward at once. */
static inline bool zero_plan_recomputes(const zero_plan_input *in, int u)
{
    return in->recompute && u < in->model->n_units - 1;
}

/* The threads that compute, and have a scratch and a workspace each. */
static inline int64_t zero_plan_threads(const zero_plan_input *in)
{
    return in->device || in->threads < 1 ? 1 : in->threads;
}

/* A unit's sizes with the workspaces of all threads. */
zero_unit_sizes zero_plan_sizes(const zero_plan_input *in, const zero_unit *unit, int64_t B,
                                int64_t T);
