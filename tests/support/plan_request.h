/* plan_request.h - what `zero plan` without options asks for: a model in bf16, on some ranks. */
#pragma once

#include "report/plan_report.h"

static inline zero_plan_request plan_request(const char *model, int n_ranks)
{
    return (zero_plan_request){.config = {.model = model,
                                          .plan = {.type = ZERO_BF16, .prefetch = 1},
                                          .backend = "cpu",
                                          .device = "cpu",
                                          .collectives = "auto",
                                          .data = "stories",
                                          .lr = -1.0,
                                          .lr_min = -1.0,
                                          .warmup = -1,
                                          .eval_every = -1,
                                          .sample = -1},
                               .n_ranks = n_ranks,
                               .all_stages = true};
}
