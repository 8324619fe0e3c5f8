/* member.h - where a group of ranks stands in its family: plain data, no MPI.
 *
 * divide.h cuts a group, the whole, into TP groups of T neighbours and ZeRO groups of ranks that
 * are T apart. Rank d * T + p of the whole is rank p of TP group d and rank d of ZeRO group p:
 *
 *     T = 2        p = 0   p = 1
 *     TP group 0     0       1
 *     TP group 1     2       3
 *     TP group 2     4       5      ZeRO group 1: ranks 1, 3, 5 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "comm/layout.h"
#include "zero/status.h"

typedef enum {
    ZERO_WHOLE, /* the group that was divided, or one that never was */
    ZERO_TP_GROUP,
    ZERO_DATA_GROUP /* the ZeRO group */
} zero_family_part;

/* Zeroed for a group that was never divided, and for the whole. */
typedef struct {
    int32_t part;     /* zero_family_part */
    int32_t tp, size; /* ranks of a TP group, and of the whole */
    int32_t index; /* d of a TP group, p of a ZeRO group; -1: several of them are meant */
} zero_member;

/* The group of this part to which `rank` of the whole belongs. */
zero_member zero_member_of(zero_family_part part, int tp, int size, int rank);

/* Number of ranks of the group; not for the whole. */
int zero_member_size(const zero_member *member);

/* Rank `rank` of the group by its number in the whole. */
int zero_member_rank(const zero_member *member, int rank);

/* The nodes of a group, given those of the whole. Release with zero_layout_destroy().
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_member_layout(const zero_member *member,
                                              const zero_layout *whole, zero_layout *out);

/* The first TP group d whose ranks lie on more than one node, or -1. tp >= 1. */
int zero_member_find_spread(const zero_layout *whole, int tp);

/* " in the TP group of ranks 2-3", " in the ZeRO group of ranks 1,3,5", " in their TP groups";
 * "" for the whole. */
#define ZERO_MEMBER_TEXT 96 /* bytes */
void zero_member_name(const zero_member *member, char text[ZERO_MEMBER_TEXT]);
