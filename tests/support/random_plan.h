/* random_plan.h - a plan whose options follow from *random, which moves on. */
#pragma once

#include "support/made_model.h"
#include "support/schedule_job.h"

/* The place of UPDATE where optimizer states lie in a slower tier, and what it excludes. */
static inline void random_offload(zero_plan_input *input, uint64_t *random)
{
    input->offload = (zero_offload)(1 + made_draw(random, ZERO_OFFLOAD_PLACES - 1));
    bool is_delayed = input->offload == ZERO_OFFLOAD_DELAYED;
    bool is_early = input->offload == ZERO_OFFLOAD_BACKWARD;
    if (is_delayed || is_early) input->check_memory = false;
    if (is_early && input->type == ZERO_FP16) input->type = ZERO_BF16;
    input->delayed_from = is_delayed;
    input->offload_depth = 1 + made_draw(random, 6);
}

/* The same plan on the CPU. */
static inline void random_plan_on_cpu(zero_plan_input *input)
{
    input->device = input->offload_host = 0;
    input->offload = ZERO_OFFLOAD_OFF;
}

/* A plan of 1 to 8 ranks on *nodes nodes, without a file. */
static inline zero_plan_input random_plan(const zero_model *model, uint64_t *random,
                                          int *nodes)
{
    zero_plan_input input =
        job_input(model, made_draw(random, ZERO_STAGE_COUNT), 1 + made_draw(random, 8));
    bool tree = input.n_ranks != 3 && input.n_ranks <= 4 && made_draw(random, 2);
    input.type = (zero_type)made_draw(random, 3);
    input.partition = (zero_partition_scheme)made_draw(random, 2);
    input.micro_batch = 1 + made_draw(random, 2);
    input.reproducible = tree;
    input.accumulation = tree ? 1 << made_draw(random, 4) : 1 + made_draw(random, 4);
    input.recompute = made_draw(random, 2);
    input.serial = made_draw(random, 4) == 0;
    input.prefetch = made_draw(random, 5);
    input.persist = made_draw(random, 3) == 0 ? 300 : 0;
    input.check_replicas = made_draw(random, 3);
    input.check_memory = made_draw(random, 2);
    input.collectives = (zero_algorithm)made_draw(random, ZERO_ALGORITHMS);
    if (tree && input.collectives == ZERO_ALGORITHM_MPI)
        input.collectives = ZERO_ALGORITHM_P2P;
    if (input.collectives != ZERO_ALGORITHM_MPI && made_draw(random, 3) == 0)
        input.message = 256 + made_draw(random, 2000);
    *nodes = 1 + made_draw(random, input.n_ranks);
    if (input.collectives == ZERO_ALGORITHM_SHM) *nodes = 1;
    input.texts = made_draw(random, 4);
    input.device = made_draw(random, 2);
    input.offload_host = input.device && made_draw(random, 2);
    if (input.offload_host) random_offload(&input, random);
    input.check_compute = model->share.slices > 1 ? 0 : made_draw(random, 3);
    return input;
}
