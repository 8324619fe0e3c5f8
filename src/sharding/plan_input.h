/* plan_input.h - everything that decides a schedule.
 *
 * The members are listed once. The struct, whether all ranks were given the same, the JSON
 * of a plan and a message about what differs come from that list; their defaults from
 * zero_plan_input_standard(). */
#pragma once

#include "base/field.h"
#include "lists/spec.h"
#include "math/rules.h"
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
const char *zero_offload_name(int place); /* of a zero_offload: "lazy" */

/* The order of a pipeline's passes (writer_pipeline.c). */
typedef enum {
    ZERO_PIPELINE_GPIPE,
    ZERO_PIPELINE_1F1B,
    ZERO_PIPELINE_KINDS
} zero_pipeline_kind;
const char *zero_pipeline_name(int kind); /* of a zero_pipeline_kind: "gpipe" */
/* The name of kind i, from 0 on; NULL past the last one. */
const char *zero_pipeline_name_at(int i);

/* What must be equal on all ranks: type, name and, of an enumeration, the words of each
 * member. A new one is a line here; an option's row points at it (zero_config.plan). */
/* clang-format off */
#define ZERO_PLAN_MEMBERS(M) \
    M(int, stage, NULL) \
    M(zero_type, type, type_name) /* of parameters and gradients */ \
    M(zero_type, activations, type_name) /* as the model's: fp32, or `type` */ \
    M(int, optimizer, zero_rule_name_at) /* a row of math/rules.h */ \
    M(zero_muon_scale, muon_scale, zero_muon_scale_name_at) /* of its updates */ \
    M(zero_type, muon_type, type_name) /* of the factors of its iterations */ \
    M(zero_partition_scheme, partition, zero_partition_scheme_name) \
    M(int, n_ranks, NULL) /* N_d: the ranks that see data of their own */ \
    M(int, pp, NULL) /* P: pipeline stages, each of n_ranks ranks; 0 counts as 1 */ \
    M(zero_pipeline_kind, pp_schedule, zero_pipeline_name) \
    M(int64_t, micro_batch, NULL) /* sequences per microbatch and rank */ \
    M(int64_t, seq, NULL) /* T */ \
    M(int, accumulation, NULL) /* M: microbatches per rank and step */ \
    M(bool, reproducible, NULL) /* equal bits at every world size: N_d, M powers of two */ \
    M(bool, recompute, NULL) /* activations are computed twice instead of kept */ \
    M(int64_t, bucket, NULL) /* C_B, elements */ \
    M(int64_t, message, NULL) /* bytes between ranks, paced; 0: as collectives like */ \
    M(int64_t, prefetch, NULL) /* uses of parameters that are gathered ahead */ \
    M(int64_t, persist, NULL) /* groups of at most that many parameters stay whole */ \
    M(bool, serial, NULL) /* every collective is waited for at once */ \
    M(bool, forward_only, NULL) /* no step: no gradients, states or masters */ \
    M(int, check_replicas, NULL) /* steps in which copies are compared; 0: never */ \
    M(bool, check_memory, NULL) /* states are hashed, and verified before each update */ \
    M(int, check_compute, NULL) /* N: passes run twice in every N-th step; 0: never */ \
    M(zero_offload, offload, zero_offload_name) /* when a slower tier is updated */ \
    M(bool, offload_parameters, NULL) /* this rank's pieces of parameters, too; stage 3 */ \
    M(bool, offload_activations, NULL) /* what `recompute` keeps, too */ \
    M(int, offload_depth, NULL) /* blocks of optimizer states in memory at once */ \
    M(int64_t, delayed_from, NULL) /* DELAYED: the first delayed step, from 1 */ \
    M(int64_t, texts, NULL) /* generated at one time, by a cache; 0: without one */ \
    M(bool, partition_activations, NULL) /* each TP rank keeps its piece */ \
    M(bool, device, NULL) /* a device computes, whose memory is its own */ \
    M(bool, offload_host, NULL) /* with both: the tier is the host's memory, no file */ \
    M(int, shard_ranks, NULL) /* R neighbours share the shards; 0: all N_d ranks */ \
    M(bool, node_parameters, NULL) /* stage 3: the node keeps what was gathered */ \
    M(int64_t, threads, NULL) /* that compute in a rank; 0: 1; a device has its own */ \
    M(bool, ipc, NULL) /* ranks reach neighbours' devices (device.h) */ \
    M(bool, device_messages, NULL) /* MPI reads and writes the device's memory (p2p) */ \
    M(zero_algorithm, collectives, algorithm_name)
/* clang-format on */

typedef struct {
#define MEMBER(type, name, words) type name;
    ZERO_PLAN_MEMBERS(MEMBER)
#undef MEMBER
    const zero_model *model; /* borrowed; with tensor parallelism this rank's part */
    int rank;                /* the rank whose program this is */
    int pp_stage;            /* its pipeline stage */

    /* Borrowed, of n_ranks ranks; NULL: every rank on a node of its own. */
    const zero_layout *layout;
    /* Borrowed, of the TP group's model->share.ranks ranks; NULL: they share a node. */
    const zero_layout *tp_layout;
    /* Borrowed, of a pipeline's P stages; NULL: each has a node of its own. */
    const zero_layout *pp_layout;
    /* Borrowed, of a shared model's or a pipeline's P * N_d * T ranks, in the order of the
     * world: rank (s*N_d + d)*T + p. NULL: all TP groups are spread over nodes as this
     * rank's is, and each stage has nodes of its own. */
    const zero_layout *world_layout;
} zero_plan_input;

/* The members that are listed above. */
#define ZERO_PLAN_ONE_MORE(type, name, words) +1
enum { ZERO_PLAN_FIELDS = 0 ZERO_PLAN_MEMBERS(ZERO_PLAN_ONE_MORE) };
extern const zero_field zero_plan_fields[ZERO_PLAN_FIELDS];

/* A plan for stage 0 in fp32, with one sequence of the model's length per step and the
 * standard bucket, prefetch and comparison of copies. It names p2p, which runs on any
 * nodes; the caller may know better. */
zero_plan_input zero_plan_input_standard(const zero_model *model, int n_ranks, int rank);

/* Whether the plan's collectives could be made between the devices of each node: with shm
 * or hier, where a node has several ranks. *why is the reason, for texts. Whether the
 * devices can, only a run knows. */
bool zero_plan_can_reach_devices(const zero_plan_input *in, const char **why);

/* Likewise whether messages could be made from and to devices: with p2p. */
bool zero_plan_can_message_devices(const zero_plan_input *in, const char **why);

/* How ranks exchange what their devices hold, as in --device-exchange: "ipc", "mpi" or
 * "staged". */
const char *zero_plan_device_exchange(const zero_plan_input *in);

/* P, of which 0 counts as 1. */
static inline int zero_plan_stages(const zero_plan_input *in)
{
    return in->pp > 1 ? in->pp : 1;
}

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

/* The threads that compute, and have a scratch and a workspace each. */
static inline int64_t zero_plan_threads(const zero_plan_input *in)
{
    return in->device || in->threads < 1 ? 1 : in->threads;
}

/* True if unit u's passes are computed again, if it saves anything. The last one's backward
 * follows its forward at once. */
static inline bool zero_plan_recomputes(const zero_plan_input *in, int u)
{
    return in->recompute && u < in->model->n_units - 1;
}
