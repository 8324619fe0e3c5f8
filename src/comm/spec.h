/* spec.h - what a collective is to do, and what that costs: plain data without MPI.
 *
 * The data is one flat array of `size` pieces, `stride` elements apart, of which the first
 * `count` each take part (a bucket is such a window over a group's flat space):
 *
 *     0           stride        2*stride             size*stride
 *     |xxxxx      |xxxxx        |xxxxx      ...      |         x = takes part: count
 * elements piece 0     piece 1       piece 2              piece r belongs to rank r
 *
 *     reduce-scatter   in[size][stride]  ->  out[count] = the sum over ranks of piece `rank`
 *     all-gather       in[count]         ->  out[size][stride], out[r] = rank r's `in`
 *     reduce           in[count]         ->  out[count] of root = the sum over ranks
 *     broadcast        in[count] of root ->  out[count]
 *
 * A reduce is a reduce-scatter in which only the root's piece takes part, at element 0 of
 * `in`: its bits are those of the piece that a reduce-scatter would give the root.
 *
 * Algorithms. All but `mpi` add along the tree of base/tree.h over the ranks, so that they
 * give the same bits, whatever the order of arrival, the count or the chunks.
 *
 *     mpi    MPI's own collectives, as a baseline; MPI adds in the type of `result`
 *     p2p    pairwise messages; between nodes
 *     shm    through the node's window: the owner reads its peers' memory; within one node
 *     hier   shm within nodes, messages between them
 *
 * shm and hier read and write buffers of other ranks on the node. Those lie in a window
 * (window.h), the buffers of neighbouring ranks `apart` bytes from each other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/half.h"
#include "comm/layout.h"
#include "zero/status.h"

typedef enum {
    ZERO_REDUCE_SCATTER,
    ZERO_ALL_GATHER,
    ZERO_REDUCE,
    ZERO_BROADCAST,
    ZERO_COLLECTIVE_KINDS
} zero_collective_kind;

typedef enum {
    ZERO_ALGORITHM_P2P,
    ZERO_ALGORITHM_MPI,
    ZERO_ALGORITHM_SHM,
    ZERO_ALGORITHM_HIER,
    ZERO_ALGORITHMS
} zero_algorithm;

#define ZERO_COLLECTIVE_STAGING ((size_t)4 << 20) /* bytes that staging is held to */
#define ZERO_NO_UNIT            (-1)

typedef struct {
    zero_collective_kind kind;
    zero_algorithm algorithm;
    zero_type type;   /* of the values that travel */
    zero_type result; /* of `out`: `type`, or for sums that are not to be rounded fp32 */
    int64_t count,
        stride; /* elements; 0 <= count <= stride; without a use if there is a root */
    int root;   /* reduce, broadcast */
    int64_t max_chunk; /* elements per message, at most 2^28; 0: as the algorithm likes */

    /* shm, hier: bytes from a rank's `in` (`out`) to that of its next neighbour on the node.
     * Sums need in_apart, a broadcast out_apart, an all-gather in_apart and with hier both.
     * one_out, which stands for out_apart: the ranks of a node give the same
     * `out`, in the window, and each piece is written there once. */
    size_t in_apart, out_apart;
    bool one_out;

    int unit; /* what messages of error name: a group, or ZERO_NO_UNIT */
} zero_collective_spec;

/* What a rank moves. What it reads through a window counts as received by it and as sent by
 * the owner, in no message. */
typedef enum { ZERO_INSIDE, ZERO_ACROSS, ZERO_REACHES } zero_reach; /* of a node */
typedef struct {
    int64_t bytes_sent[ZERO_REACHES], bytes_received[ZERO_REACHES];
    int64_t messages_sent[ZERO_REACHES], messages_received[ZERO_REACHES];
} zero_traffic;
/* Inside and across together. */
typedef struct {
    int64_t bytes_sent, bytes_received, messages_sent, messages_received;
} zero_volume;
zero_volume zero_traffic_total(const zero_traffic *traffic);

/* *sum += times * *more */
void zero_traffic_add(zero_traffic *sum, int64_t times, const zero_traffic *more);

/* Kinds that add what all ranks have. */
static inline bool zero_collective_sums(zero_collective_kind kind)
{
    return kind == ZERO_REDUCE_SCATTER || kind == ZERO_REDUCE;
}

/* Kinds to or from one rank, of one piece. */
static inline bool zero_collective_has_root(zero_collective_kind kind)
{
    return kind == ZERO_REDUCE || kind == ZERO_BROADCAST;
}

const char *zero_collective_kind_name(zero_collective_kind kind); /* "reduce-scatter" */
const char *zero_algorithm_name(zero_algorithm algorithm);        /* "p2p" */
/* The algorithm of that name; false if there is none. */
bool zero_algorithm_find(const char *name, zero_algorithm *algorithm);

/* Whether it works in windows on nodes of this layout. */
bool zero_algorithm_needs_window(zero_algorithm algorithm, const zero_layout *layout);

/* The best algorithm for a group whose nodes can share memory: shm for ranks of one node, hier
 * for several nodes of which one has several ranks, p2p otherwise, and where ranks are not in
 * blocks. The size decides nothing: what reads memory is the faster at all sizes
 * (bench/README.md), and `mpi`, which small all-gathers might prefer, has other bits. *why says so in words, for the user. */
zero_algorithm zero_algorithm_choose(const zero_layout *layout, const char **why);

/* ZERO_ERR_INVALID, with the numbers, for sizes and types outside the bounds above or arrays
 * beyond 2^60 elements; ZERO_ERR_UNSUPPORTED for an algorithm that cannot run on this
 * layout. */
ZERO_NODISCARD zero_status zero_collective_check(const zero_collective_spec *spec,
                                                 const zero_layout *layout);

/* Bytes of staging that begin needs, on any rank; a reduce by p2p touches the root's only. Never less for a larger count below the
 * stride; at most ZERO_COLLECTIVE_STAGING unless chunks would become smaller than 64 elements (beyond
 * 8192 ranks), and for `mpi`, which stages whole pieces. */
size_t zero_collective_staging(const zero_collective_spec *spec, const zero_layout *layout);

/* What one run of it moves on rank `rank`: known before any step is written, in time
 * proportional to the ranks. The status of zero_collective_check(), or ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_collective_traffic(const zero_collective_spec *spec,
                                                   const zero_layout *layout, int rank,
                                                   zero_traffic *traffic);
