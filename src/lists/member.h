/* member.h - where a group of ranks stands in its family: plain data, no MPI.
 *
 * divide.h cuts a group, the whole, in up to five ways. T is the size of a TP group, P the
 * number of pipeline stages, N the number of TP groups of a stage, R the size of a shard
 * group, and K = N / R. Rank (s * N + k * R + j) * T + p of the whole is
 *
 *     rank p of a TP group                 T neighbours
 *     rank s of a pipeline group           P ranks, N * T apart: one of each stage
 *     rank k * R + j of a ZeRO group       N ranks, T apart: those with the same p and s
 *     rank j of a shard group              R neighbours of a ZeRO group, T apart
 *     rank k of a replica group            K ranks of a ZeRO group, R * T apart
 *
 * With T = 2, R = 2 and K = 2:
 *
 *              p = 0   p = 1
 *     k = 0, j = 0   0   1     TP groups:         0,1   2,3   4,5   6,7
 *            j = 1   2   3     ZeRO groups:       0,2,4,6   1,3,5,7
 *     k = 1, j = 0   4   5     shard groups:      0,2   1,3   4,6   5,7
 *            j = 1   6   7     replica groups:    0,4   1,5   2,6   3,7 */
#pragma once

#include "lists/layout.h"

typedef enum {
    ZERO_WHOLE, /* the group that was divided, or one that never was */
    ZERO_TP_GROUP,
    ZERO_DATA_GROUP, /* the ZeRO group */
    ZERO_SHARD_GROUP,
    ZERO_REPLICA_GROUP,
    ZERO_PIPE_GROUP /* the pipeline group */
} zero_family_part;

#define ZERO_FAMILY_PARTS 6 /* with the whole */

/* How a group is divided: tp * pp divides size; shard divides N = size / (tp * pp), and is
 * N without hybrid sharding. */
typedef struct {
    int size;  /* ranks of the whole */
    int tp;    /* T, ranks of a TP group */
    int shard; /* R, ranks of a shard group */
    int pp;    /* P, stages of a pipeline; 0 counts as 1 */
} zero_division;

/* True if n ranks of a ZeRO group can be cut into shard groups of R: R is n, or a power of
 * two that divides n. Only then is each shard group a subtree of the sum over all n. */
bool zero_can_shard(int n, int64_t R);
/* Lists them: "1, 2, 6" for n = 6. */
#define ZERO_SHARD_TEXT 384 /* bytes: 31 powers of two, and n */
void zero_list_shards(int n, char text[ZERO_SHARD_TEXT]);

/* N, of which 0 pp counts as 1. */
int zero_division_data(const zero_division *divided);

/* True if the division has groups of this part other than the whole itself: TP groups with
 * tp > 1, pipeline groups with pp > 1, ZeRO groups with either, shard groups and replica
 * groups with shard < N. */
bool zero_division_has(const zero_division *divided, zero_family_part part);

/* Rank i of the group is rank first + i * stride of the whole. All zero for the whole, and
 * for a group that was never divided. */
typedef struct {
    int32_t part;  /* zero_family_part */
    int32_t first; /* -1: several groups of this part are meant */
    int32_t stride, size;
} zero_member;

/* The group of this part to which `rank` of the whole belongs. The division has the part,
 * or it is ZERO_WHOLE. */
zero_member zero_member_of(zero_family_part part, const zero_division *divided, int rank);

/* The group of the same part, stride and size to which `rank` of the whole belongs. */
zero_member zero_member_beside(const zero_member *member, int rank);

/* Rank `rank` of the group by its number in the whole. */
int zero_member_rank(const zero_member *member, int rank);

/* The nodes of a group, given those of the whole. Release with zero_layout_destroy().
 * ZERO_ERR_NOMEM. */
zero_status zero_member_layout(const zero_member *member, const zero_layout *whole,
                               zero_layout *out);

/* " in the TP group of ranks 2-3", " in the ZeRO group of ranks 1,3,5", " in the shard
 * group of ranks 0-3", " in the replica group of ranks 1,5", " in their TP groups"; "" for
 * the whole. */
#define ZERO_MEMBER_TEXT 96 /* bytes */
void zero_member_name(const zero_member *member, char text[ZERO_MEMBER_TEXT]);
