#include "report/paper_plan.h"

#include <assert.h>

#include "base/fail.h"
#include "nn/share.h"
#include "plan/plan.h"

bool zero_paper_has_plan(const zero_paper_setup *setup)
{
    return setup->keep != ZERO_PAPER_KEEP_IN_CPU && !setup->fused_buffer;
}

static zero_share first_share(const zero_paper_setup *setup)
{
    return (zero_share){.ranks = setup->model_parallel, .slices = setup->model_parallel};
}

static zero_plan_input input_of(const zero_paper_setup *setup, const zero_model *part)
{
    zero_plan_input in = zero_plan_input_standard(part, setup->n_ranks, 0);
    in.stage = setup->stage;
    in.type = ZERO_FP16;
    in.micro_batch = setup->batch;
    in.recompute = setup->checkpoints;
    in.partition_activations = setup->keep == ZERO_PAPER_KEEP_PIECE;
    in.collectives = ZERO_ALGORITHM_P2P;
    return in;
}

/* The first rank's part of the model; `whole` outlives it. */
static zero_status describe(const zero_paper_setup *setup, zero_model *whole,
                            zero_model *part)
{
    ZERO_TRY(zero_gpt2_describe(&setup->shape, whole));
    zero_status st = zero_model_share(whole, first_share(setup), part);
    if (st != ZERO_OK) zero_model_destroy(whole);
    return st;
}

zero_status zero_paper_plan_needed(const zero_paper_setup *setup, size_t *needed)
{
    zero_model whole, part;
    zero_plan_ledger ledger;
    assert(zero_paper_has_plan(setup));
    ZERO_TRY(describe(setup, &whole, &part));
    zero_plan_input in = input_of(setup, &part);
    zero_status st = zero_plan_measure(&in, &ledger);
    if (st == ZERO_OK) *needed = ledger.needed;
    zero_model_destroy(&part);
    zero_model_destroy(&whole);
    return st;
}

zero_status zero_paper_plan_fit(const zero_paper_setup *setup, size_t bytes,
                                zero_plan_fitted *fitted)
{
    zero_paper_setup shallow = *setup;
    zero_model whole, part;
    assert(zero_paper_has_plan(setup));
    shallow.shape.layers = 1; /* of the model only share and chunk are read */
    ZERO_TRY(describe(&shallow, &whole, &part));
    zero_plan_input in = input_of(setup, &part);
    zero_status st =
        zero_plan_fit(&setup->shape, &in, &(zero_plan_room){.bytes = bytes}, fitted);
    zero_model_destroy(&part);
    zero_model_destroy(&whole);
    return st;
}
