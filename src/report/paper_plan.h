/* paper_plan.h - what this program's own plan takes for a configuration of the paper.
 *
 * The same model, ranks, batch and stage in fp16, with checkpoints as --recompute, N_m as --tp and
 * P_a as --partition-activations.
 * Ranks exchange by messages, because devices have no memory in common. Activations are fp32 here and
 * 16 bits in the paper, so the plan's are twice as large.
 *
 * P_a+cpu is not planned: --offload-activations comes with optimizer states in the file, too.
 * The fused buffer is not planned either. */
#pragma once

#include "plan/plan_fit.h"
#include "report/paper_memory.h"

/* False for a configuration that is not planned. */
bool zero_paper_has_plan(const zero_paper_setup *setup);

/* Bytes that the first rank needs, zero_plan_needed(). Fails as zero_plan_measure() does. */
ZERO_NODISCARD zero_status zero_paper_plan_needed(const zero_paper_setup *setup,
                                                  size_t *needed);
/* The deepest model for which it needs at most `bytes`. Fails as zero_plan_fit() does. */
ZERO_NODISCARD zero_status zero_paper_plan_fit(const zero_paper_setup *setup, size_t bytes,
                                               zero_plan_fitted *fitted);
