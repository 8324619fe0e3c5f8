/* tensor_parallel.h - --tp and what goes with it: who shares a product, and in how many
 * slices.
 *
 *     rank = d * T + p      T = --tp      N = ranks / T, the ranks that ZeRO shards over
 *
 * Ranks with equal d, a TP group, compute one replica together; ranks with equal p, a ZeRO
 * group, have the same part of the model. With one slice, and so one rank per TP group, a
 * rank's part is the whole model. Nothing here is collective. */
#pragma once

#include "lists/layout.h"
#include "nn/share.h"
#include "zero/shape.h"

/* As the user gave it. */
typedef struct {
    int64_t ranks;     /* T; 0 counts as 1 */
    int64_t slices;    /* S; 0: left open */
    bool across_nodes; /* a TP group may lie on several nodes */
} zero_tp;

/* S where the user left it open: T; 4, if that is more and the heads allow it, for the bits
 * of a run with --reproducible, which no T that divides 4 changes. With T = 1 it is 1. */
void zero_tp_take_defaults(zero_tp *tp, bool reproducible, int64_t heads);

/* ZERO_ERR_INVALID, with the numbers, for slices that the ranks of a TP group cannot share,
 * or into which the model cannot be cut. Needs the defaults. */
zero_status zero_tp_check(const zero_tp *tp, const zero_shape *shape);
/* ZERO_ERR_INVALID unless T divides the ranks. */
zero_status zero_tp_check_ranks(const zero_tp *tp, int n_ranks);
/* ZERO_ERR_INVALID for a TP group on several nodes, unless that is wanted. */
zero_status zero_tp_check_nodes(const zero_tp *tp, const zero_layout *world);

/* Points *part at what rank `rank` of all ranks has of the model: the model itself, or
 * *made, which the caller destroys in any case. *made is zeroed if it is not needed or this
 * fails. */
zero_status zero_tp_cut(const zero_tp *tp, const zero_model *whole, int rank,
                        zero_model *made, const zero_model **part);

/* The place of a rank in its groups. */
typedef struct {
    int n_ranks, rank; /* N and d, of the ZeRO group */
    int stage;         /* of a pipeline */
    /* The nodes of the ZeRO group, of the TP group and of the pipeline's stages; owned. */
    zero_layout data, group, stages;
} zero_tp_place;

/* With pp stages of a pipeline. ZERO_ERR_NOMEM. */
zero_status zero_tp_find_place(const zero_tp *tp, int pp, const zero_layout *world,
                               int rank, zero_tp_place *place);
void zero_tp_place_destroy(zero_tp_place *place); /* accepts a zeroed one */

/* T, of which 0 counts as 1. */
static inline int zero_tp_ranks(const zero_tp *tp)
{
    return tp->ranks > 0 ? (int)tp->ranks : 1;
}
