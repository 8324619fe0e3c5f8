/* finding.h - a place of the model's states where bits are wrong, and how ranks tell it. */
#pragma once

#include "comm/sentence.h"
#include "sharding/checks.h"
#include "state/inspect.h"

typedef struct {
    int tensor; /* of the model; -1: nothing was found */
    zero_array array;
    zero_range range; /* elements of the tensor */
} zero_finding;

zero_check_space zero_finding_space(const zero_runner *r);

/* words[2 * rank] and the next one = each rank's two, on all ranks; in the space above.
 * `looked` says whether this rank could look at its memory: if any could not, the verdict
 * is that of zero_agree(). Collective. */
zero_status zero_finding_exchange(zero_runner *r, const uint64_t mine[2],
                                  zero_status looked);

/* One verdict on what ranks found in their own memory: ZERO_OK if none found anything, else
 * ZERO_ERR_CORRUPTED, which names the lowest rank and its place. `what` is the verb: "has
 * other bits than its masters, rounded, in". `looked` says whether this rank could look at
 * its memory; a failure on any rank comes before all findings. Collective. */
zero_status zero_finding_agree(zero_runner *r, const zero_finding *mine, zero_status looked,
                               const char *what);

/* Appends "the momentum of h.0.attn.c_attn.weight, elements 512 to 767". */
void zero_finding_add_place(zero_sentence *report, const zero_runner *r,
                            const zero_finding *place);

/* Calls `look` for consecutive pieces of a place's elements, which this rank holds.
 * Local. */
zero_status zero_finding_inspect(zero_runner *r, const zero_finding *at,
                                 zero_inspect_look *look, void *arg);

/* *differ is true, on all ranks alike, if copies of the place differ. Collective. */
typedef zero_status zero_finding_compare(void *arg, const zero_finding *at, bool *differ);
/* Shortens a place in which copies differ to its first such element, or to its last one. */
zero_status zero_finding_narrow(zero_finding *at, bool to_last,
                                zero_finding_compare *compare, void *arg);

/* For all ranks: `what` differed when it was compared, and does not now. */
zero_status zero_finding_lost(const char *what);

/* Appends which machine `rank` runs on and what to do; rank < 0: not known. Collective. */
zero_status zero_finding_add_advice(zero_sentence *report, zero_runner *r, int rank);
