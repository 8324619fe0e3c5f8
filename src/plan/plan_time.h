/* plan_time.h - how long a step takes on an ideal machine: the alpha-beta model.
 *
 *     computing     flops of a unit / rate; backward takes twice its forward
 *     a collective  messages * latency + bytes / bandwidth, the larger of sent and received
 *     a transfer    bytes / rate of the disk, which the ranks of a node share evenly
 *     a part        an equal share of its pass; nothing if it only takes what others joined
 *
 * The step's program is walked with a few clocks. The rank computes. The network serves its
 * collectives, or a wire within its node does, and one disk its transfers, each in the
 * order in which they begin. A wait lasts until what it waits for has ended. The stream of
 * optimizer states runs ahead of the walk, as in a run (run_offload.c). So the time shows
 * everything that follows from the program: what overlaps, what waits for what, and what a
 * step leaves to the next one. Only matrix products take time: sums, the optimizer and
 * disturbances do not. All ranks are equally fast.
 *
 * On several nodes only traffic between nodes counts; latency and bandwidth are those of
 * the network, a rank's share of it. On a single node all traffic counts. A rank's share is
 * what it has while all ranks of its node communicate: the ZeRO groups of a node, one for
 * each rank of a TP group, are counted so, and need not divide it again.
 *
 * In a job on several nodes a group that lies on one of them has the node's rate and wire:
 * a TP group, and with hybrid sharding a shard group or a replica group.
 *
 * On a device a collective whose data passes through the host lasts at least as long as its
 * copies of one direction: they run beside messages and computing. Copies of other
 * instructions are left out.
 *
 * A JOIN is awaited soon, so it does not queue: it begins at once, and delays what is in
 * flight on the same wire. A COLLECT uses the wire of JOINs. It queues as REDUCE and GATHER
 * do, and JOINs delay it. Source: Hockney 1994, "The communication challenge for MPP". */
#pragma once

#include "sharding/schedule.h"
#include "sharding/work.h"

typedef struct {
    double latency;   /* seconds per message, >= 0 */
    double bandwidth; /* bytes per second and direction, of one rank, > 0 */
    /* The same within a node, for groups on one node of a job on several; bandwidth 0: as
     * the network's. */
    double node_latency, node_bandwidth;
    double flops; /* per second, of one rank, > 0 */

    /* Bytes per second and direction between a device and its host; 0: such copies take no
     * time. */
    double host_bandwidth;

    /* Bytes per second of a node's disk, > 0; 0: transfers take no time. */
    double disk_read, disk_write;
} zero_plan_machine;

typedef struct {
    double step; /* seconds; compute + exposed + disk_exposed */
    double compute, communication;
    double exposed;      /* waiting for the network, JOINs and COLLECTs included */
    double joins;        /* of communication: JOINs */
    double join_exposed; /* of exposed: waiting for them */
    double collects, collect_exposed; /* the same of COLLECTs */
    double disk;                      /* the transfers of this rank */
    double disk_exposed;              /* waiting for them */
    double disk_first; /* of that: before the first FORWARD, where nothing can hide them */
    double idle;       /* of a pipeline: zero_pipeline_time's */
} zero_plan_time;

/* The time of a step among other steps: collectives left in flight delay the next one. Of a
 * pipeline that of all stages together, from the first step's begin, and `exposed` is all
 * that this one waits. ZERO_ERR_NOMEM. */
zero_status zero_plan_time_step(const zero_schedule *s, const zero_plan_machine *machine,
                                zero_plan_time *time);

/* The least number by which the tokens of a step can be multiplied so that it takes at most
 * `most` times a step of the resident plan; compute time and activations grow with tokens.
 * INFINITY if that takes more than 2^20 times the tokens. ZERO_ERR_NOMEM. */
zero_status zero_plan_time_hidden(const zero_schedule *s, const zero_schedule *resident,
                                  const zero_plan_machine *machine, double most,
                                  double *times);
