/* resume_test.h - runs that save, and runs that resume in any layout, compared with runs that never
 * stopped. */
#pragma once

#include "support/checkpoint_test.h"
#include "support/faulty_unit.h"

enum { SAVED = 2, TOTAL = 4 }; /* steps */

static const zero_plan_input layouts[] = {
    {.stage = 0, .collectives = ZERO_ALGORITHM_P2P},
    {.stage = 1, .collectives = ZERO_ALGORITHM_SHM, .bucket = 192},
    {.stage = 2, .collectives = ZERO_ALGORITHM_P2P, .partition = ZERO_PARTITION_OWNER},
    {.stage = 3, .collectives = ZERO_ALGORITHM_SHM, .prefetch = 2, .recompute = true},
    {.stage = 3, .collectives = ZERO_ALGORITHM_P2P, .partition = ZERO_PARTITION_OWNER},
    {.stage = 1, .collectives = ZERO_ALGORITHM_HIER, .bucket = 640},
};

static inline test_setup with_layout(const zero_plan_input *layout, zero_type type)
{
    test_setup setup = test_standard;
    int64_t bucket = layout->bucket ? layout->bucket : setup.plan.bucket;
    setup.plan = *layout;
    setup.plan.type = type;
    setup.plan.bucket = bucket;
    setup.plan.micro_batch = test_standard.plan.micro_batch;
    setup.plan.accumulation = 1;
    return setup;
}

/* Weights that differ from the saved ones, so anything that is not loaded shows. */
static inline test_setup as_loader(test_setup setup)
{
    setup.seed++;
    return setup;
}

typedef struct {
    test_digest at_save, at_end;
    double loss, norm; /* of the last step */
} course;

static inline course never_stopped(const test_setup *setup, int n, const test_place *place)
{
    test_run run;
    course c;
    test_run_open(&run, setup, n);
    test_run_steps(&run, 0, SAVED);
    if (place) test_save(&run, place, SAVED);
    c.at_save = test_run_digest(&run);
    test_run_steps(&run, SAVED, TOTAL - SAVED);
    c.at_end = test_run_digest(&run);
    c.loss = run.last.loss;
    c.norm = run.last.grad_norm;
    test_run_close(&run);
    return c;
}

static inline void check_resumed(const test_setup *setup, int n, const test_place *place,
                                 const course *expected)
{
    test_run run;
    test_setup other = as_loader(*setup);
    test_run_open(&run, &other, n);
    assert_true(!test_same(test_run_digest(&run), expected->at_save));
    test_load(&run, place, SAVED);
    assert_all(test_same(test_run_digest(&run), expected->at_save));
    assert_all(!test_run_member(&run) || run.engine.adam_steps == SAVED);
    test_run_steps(&run, SAVED, TOTAL - SAVED);
    assert_all(test_same(test_run_digest(&run), expected->at_end));
    if (test_run_member(&run))
        assert_true(run.last.loss == expected->loss &&
                    run.last.grad_norm == expected->norm);
    test_run_close(&run);
}
