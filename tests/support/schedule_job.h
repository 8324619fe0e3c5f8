/* schedule_job.h - one plan, compiled for every rank. */
#pragma once

#include "support/planned.h"
#include "support/test.h"

#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"
#include "sharding/stages.h"

#define JOB_RANKS 8 /* at most */

typedef struct {
    int n_ranks;
    zero_layout layout;
    zero_schedule s[JOB_RANKS];
} schedule_job;

/* Plans input->n_ranks ranks on `nodes` blocks; sets the layout and rank of the input. */
static inline void job_open(schedule_job *job, zero_plan_input input, int nodes)
{
    job->n_ranks = input.n_ranks;
    assert_true(input.n_ranks <= JOB_RANKS);
    assert_ok(zero_layout_init_blocks(&job->layout, input.n_ranks, nodes));
    input.layout = &job->layout;
    for (input.rank = 0; input.rank < job->n_ranks; input.rank++)
        job->s[input.rank] = compiled(&input);
}

static inline void job_close(schedule_job *job)
{
    for (int r = 0; r < job->n_ranks; r++) zero_schedule_destroy(&job->s[r]);
    zero_layout_destroy(&job->layout);
}

/* The ranks that shard together. */
static inline int job_shard_ranks(const schedule_job *job)
{
    int ranks = job->s[0].input.shard_ranks;
    return ranks > 0 ? ranks : job->n_ranks;
}

/* A plan with numbers that suit tests. */
static inline zero_plan_input job_input(const zero_model *model, int stage, int n_ranks)
{
    return (zero_plan_input){.model = model,
                             .stage = stage,
                             .n_ranks = n_ranks,
                             .micro_batch = 2,
                             .seq = model->seq,
                             .accumulation = 1,
                             .bucket = 5000};
}

/* A plan that is not compiled, and why. */
static inline void assert_refused(zero_plan_input input, const char *text)
{
    zero_schedule s;
    assert_fails(zero_schedule_compile(&s, &input), ZERO_ERR_INVALID, text);
    zero_schedule_destroy(&s); /* a failed one may be destroyed like any other */
}
