/* ablation.h - what a plan would take with one part of ZeRO and ZeRO-R taken away.
 *
 * Each line is the given plan without one part, compiled and added up like any other.
 * Options that need the part are taken away with it. C_B alone has no plan of its own,
 * because no exchange here uses a buffer as large as the model: its line adds 4 Psi, the
 * paper's fused fp32 buffer.
 *
 * M_D is the layout itself, so it has no line: what would be needed without it depends on
 * the policy of an allocator (bench_memory plays a plan's lifetimes through one). The gaps
 * that the layout leaves are given instead.
 *
 * Nothing here is collective. */
#pragma once

#include "plan/plan.h"

typedef enum {
    ZERO_ABLATE_RECOMPUTE,        /* every activation is kept */
    ZERO_ABLATE_PARTITION,        /* P_a: a TP rank keeps whole activations */
    ZERO_ABLATE_STAGE,            /* the stage below */
    ZERO_ABLATE_BUCKET,           /* staging as large as the largest group */
    ZERO_ABLATE_CONSTANT_BUFFERS, /* C_B: a fused fp32 buffer of this rank's model, 4 Psi */
    ZERO_ABLATIONS
} zero_ablated;
const char *zero_ablation_name(zero_ablated part); /* "C_B" */

typedef struct {
    bool is_used;      /* the plan has the part */
    bool is_possible;  /* a plan without it compiles */
    char why_not[256]; /* the error, if is_used and not is_possible */
    char instead[64];  /* what stands in its place: "stage 1" */
    size_t needed;     /* bytes of a rank: zero_plan_scarce() */
    bool by_formula;   /* not compiled */
} zero_ablation_line;

typedef struct {
    size_t needed;       /* of the plan as given */
    size_t arena, alive; /* bytes laid out; alive at the peak; the difference is gaps */
    zero_ablation_line of[ZERO_ABLATIONS];
} zero_ablation;

/* Fails as zero_schedule_compile() does, but a part that cannot be taken away is no
 * failure: its line says why. */
zero_status zero_plan_ablate(const zero_schedule *s, zero_ablation *ablation);
