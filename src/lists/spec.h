/* spec.h - what a collective is to do, and what it moves: plain data without MPI.
 *
 * The data is one flat array of `size` pieces, `stride` elements apart, of which the first
 * `count` each take part (a bucket is such a window over a group's flat space):
 *
 *     0           stride        2*stride             size*stride
 *     |xxxxx      |xxxxx        |xxxxx      ...      |         x: takes part, `count`
 *                                                    elements
 *      piece 0     piece 1       piece 2                        piece r belongs to rank r
 *
 *     reduce-scatter   in[size][stride]  ->  out[count] = the sum over ranks of piece
 *                                            `rank`
 *     all-gather       in[count]         ->  out[size][stride], out[r] = rank r's `in`
 *     reduce           in[count]         ->  out[count] of root = the sum over ranks
 *     broadcast        in[count] of root ->  out[count]
 *     all-reduce       in[size][stride]  ->  out[size][stride] = the sums over ranks of all
 *                      then [tail]           pieces, and of `tail` elements more, which
 *                                            every rank adds for itself
 *
 * A reduce is a reduce-scatter in which only the root's piece takes part, at element 0 of
 * `in`: its bits are those of the piece that a reduce-scatter would give the root. */
#pragma once

#include "base/half.h"
#include "base/reduction.h"
#include "lists/algorithm_list.h"
#include "lists/layout.h"

typedef enum {
    ZERO_REDUCE_SCATTER,
    ZERO_ALL_GATHER,
    ZERO_REDUCE,
    ZERO_BROADCAST,
    ZERO_ALL_REDUCE,
} zero_collective_kind;
/* Not an enumerator: a switch over kinds has no case for it. */
#define ZERO_COLLECTIVE_KINDS (ZERO_ALL_REDUCE + 1)

#define ZERO_COLLECTIVE_STAGING ((size_t)4 << 20) /* bytes to which staging is bounded */
#define ZERO_LEAST_MESSAGE      256               /* bytes: 64 elements of fp32 */
#define ZERO_NO_UNIT            (-1)

typedef struct {
    zero_collective_kind kind;
    zero_algorithm algorithm;
    zero_type type;   /* of the values that travel; or another zero_number */
    zero_type result; /* of `out`: `type`, or fp32 for sums that must not be rounded */
    int64_t count;    /* elements; 0 <= count <= stride */
    int64_t stride;   /* elements; unused if there is a root */
    int64_t tail;     /* elements, at element size * stride: all-reduce, by p2p and mpi */
    int root;         /* reduce, broadcast */
    int only;         /* broadcast by p2p: 1 + the one rank that receives; 0: all do */
    zero_reduction reduction; /* other than a sum: on the host, and not by mpi */
    int64_t max_chunk; /* elements per message, at most 2^28; 0: as the algorithm likes */
    /* Bytes per message, at most: ZERO_LEAST_MESSAGE to 2^30, for algorithms that send
     * messages of their own. Ranks then keep pace with each other, too: a send waits for
     * receives ZERO_PACE messages before it (step.h). 0: messages as large as the algorithm
     * likes, sent as soon as the list allows. */
    int64_t message;

    /* Bytes from a rank's `in` (`out`) to that of its next neighbour on the node, for
     * algorithms that work in a window. Sums need in_apart, a broadcast out_apart, an
     * all-gather in_apart and with hier both. one_out stands for out_apart: the ranks of a
     * node give the same `out`, in the window, and each piece is written there once. */
    size_t in_apart, out_apart;
    bool one_out;

    /* `in` and `out` are a device's, which neither messages nor neighbours can reach. The
     * steps work on their mirrors in staging, whose pieces adjoin (stride = count):
     *
     *     reduce-scatter, reduce   | in [pieces][count] | out [count] | what the algorithm
     *                              stages
     *     all-gather, broadcast    | out [pieces][count]              | what the algorithm stages
     *
     * Each part begins at a multiple of 64 bytes. A sum has a mirror of `out` only if the
     * result has another type: else that is this rank's piece (the root's) of the mirror of
     * `in`. So is, in an all-gather and a broadcast, the mirror of `in` in that of `out`.
     * For algorithms that work in a window, staging lies there, and in_apart and out_apart
     * are the bytes from a rank's staging to that of its next neighbour. one_out is
     * refused. */
    bool on_device;
    /* Only on a device, for an all-gather and a broadcast, and in a group of one rank: `in`
     * is this rank's piece of `out`, so that piece is not stored, and one rank alone does
     * nothing at all. If it is and this is false, it is stored again, unchanged. */
    bool in_place;
    /* Only on a device: with shm and hier the node's devices reach each other's memory
     * (device.h), with p2p MPI reaches it. Then there are no mirrors: the steps work
     * on the device's own arrays, and sums and copies are queued there. With p2p staging is
     * the device's memory, too. With hier what other nodes send or receive passes through
     * the host, in staging; nothing else does. in_apart and out_apart only say, by not
     * being 0, that neighbours can read. */
    bool direct;

    /* Sends of this collective are posted only when all earlier ones of its group in flight
     * that have in_turn, too, have posted theirs. Two exchanges of pairwise rounds that
     * share the wire would otherwise lose their matching: one rank would receive from two
     * others, and another rank from none. MPI's own collectives order themselves. */
    bool in_turn;

    int unit; /* the group that error messages name, or ZERO_NO_UNIT */
} zero_collective_spec;

static inline size_t zero_element_size(zero_type type)
{
    return zero_number_size((zero_number)type);
}

const char *zero_collective_kind_name(zero_collective_kind kind); /* "reduce-scatter" */

/* Kinds that add the data of all ranks. */
static inline bool zero_collective_sums(zero_collective_kind kind)
{
    return kind == ZERO_REDUCE_SCATTER || kind == ZERO_REDUCE || kind == ZERO_ALL_REDUCE;
}

/* Not a sum, or one of fp32, bf16 or fp16. */
static inline bool zero_collective_is_plain(const zero_collective_spec *spec)
{
    return !zero_collective_sums(spec->kind) ||
           (spec->reduction == ZERO_SUM && spec->type <= ZERO_FP16);
}

/* Kinds to or from one rank, of one piece. */
static inline bool zero_collective_has_root(zero_collective_kind kind)
{
    return kind == ZERO_REDUCE || kind == ZERO_BROADCAST;
}

/* One rank has its result where it is: no step, no staging. */
bool zero_collective_is_nothing(const zero_collective_spec *spec, int size);

/* The algorithm's staging is the device's memory. */
static inline bool zero_collective_stages_on_device(const zero_collective_spec *spec)
{
    return spec->direct && spec->algorithm == ZERO_ALGORITHM_P2P;
}

/* Sizes and types, whatever the algorithm: ZERO_ERR_INVALID, with the numbers. */
zero_status zero_collective_check_spec(const zero_collective_spec *spec, int size);

/* ---- traffic ---- */

typedef enum { ZERO_INSIDE, ZERO_ACROSS, ZERO_REACHES } zero_reach; /* of a node */

/* The traffic of one rank. Bytes read through a window count as received by the reader and
 * as sent by the owner, in no message. */
typedef struct {
    int64_t bytes_sent[ZERO_REACHES], bytes_received[ZERO_REACHES];
    int64_t messages_sent[ZERO_REACHES], messages_received[ZERO_REACHES];
    int64_t bytes_fetched, bytes_stored; /* from this rank's device, and to it */
} zero_traffic;

static inline zero_reach zero_reach_of(const zero_layout *layout, int rank, int other)
{
    return layout->node_of[rank] == layout->node_of[other] ? ZERO_INSIDE : ZERO_ACROSS;
}

/* Adds messages of `bytes` each. */
static inline void zero_traffic_count(zero_traffic *t, zero_reach reach, int64_t sent,
                                      int64_t received, int64_t bytes)
{
    t->messages_sent[reach] += sent;
    t->messages_received[reach] += received;
    t->bytes_sent[reach] += sent * bytes;
    t->bytes_received[reach] += received * bytes;
}

/* Between ranks, inside and across together. */
typedef struct {
    int64_t bytes_sent, bytes_received, messages_sent, messages_received;
} zero_volume;

zero_volume zero_traffic_total(const zero_traffic *traffic);
zero_volume zero_traffic_to(const zero_traffic *traffic, zero_reach reach);

/* The larger of both: it decides the time on a wire that sends and receives at once. */
int64_t zero_volume_duplex(const zero_volume *v);

/* Bytes that it sends: all, and those that go that far. */
int64_t zero_traffic_sent(const zero_traffic *traffic);
int64_t zero_traffic_sent_to(const zero_traffic *traffic, zero_reach reach);

/* *sum += times * *more */
void zero_traffic_add(zero_traffic *sum, int64_t times, const zero_traffic *more);
