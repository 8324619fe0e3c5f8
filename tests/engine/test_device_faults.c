/* A device that fails under a run, on one rank, in any of its calls and copies: all ranks get the
 * failure from the same function of the engine, with the rank and the device's first text, and no
 * rank waits for ever.
 *
 *     test_device_faults           every 13th call
 *     test_device_faults EVERY     every EVERY-th call */
#define TEST_HAS_MAIN
#include "support/device_fault.h"
#include "support/engine_test.h"

#include "fake/fake.h"

/* Everything that an engine does after it was opened. False if something failed. */
static bool use(test_run *run, int call)
{
    zero_engine *e = &run->engine;
    zero_source source = test_words(run);
    zero_sampling how = {.temperature = 1.0, .known = run->model.vocab};
    zero_step_input first = test_step_input(run, 0), second = test_step_input(run, 1);
    zero_drawn_weights drawn = {&run->model, 5};
    zero_weights weights = zero_weights_drawn(&drawn);
    int32_t text[3] = {0};
    double loss;
    char hex[33];
    return fault_missed("step", call, zero_engine_step(e, &source, &first, &run->last)) &&
           fault_missed("evaluate", call, zero_engine_evaluate(e, &source, &loss)) &&
           fault_missed("generate", call, test_generate_text(e, &how, 1, 2, text)) &&
           fault_missed("compute", call,
                        zero_engine_compute(e, &source, &second, &run->last)) &&
           fault_missed("digest", call, zero_engine_digest(e, hex)) &&
           fault_missed("set_weights", call, zero_engine_set_weights(e, &weights)) &&
           fault_missed("step", call, zero_engine_step(e, &source, &second, &run->last)) &&
           fault_missed("check", call, zero_engine_check(e));
}

static bool survives(const test_setup *setup, int call)
{
    test_run run = {.setup = *setup, .comm = &run.own};
    fault_in(call);
    test_split(test_size, setup->fake_nodes, &run.own);
    bool is_well = fault_missed("init", call, test_run_init(&run)) && use(&run, call);
    test_run_close(&run);
    return is_well;
}

TEST(all_ranks_hear_of_every_failure)
{
    const int every = *(const int *)*state;
    test_setup setups[] = {test_standard, test_standard, test_standard};
    setups[0].plan.stage = 2;
    setups[1].plan.type = ZERO_BF16;
    setups[2].plan.stage = 3;
    setups[2].plan.type = ZERO_FP16;
    setups[2].plan.recompute = true;
    for (int k = 0; k < 3; k++) {
        int call = 1 + k, failed = 0;
        setups[k].backend = &zero_backend_fake;
        setups[k].shape.layers = 1;
        setups[k].eval_batches = 1;
        setups[k].plan.device = 1;
        setups[k].plan.check_memory = true;
        setups[k].plan.check_replicas = 1;
        for (; !survives(&setups[k], call); call += every) failed++;
        if (test_rank == 0) printf("stage %d: %d failures\n", setups[k].plan.stage, failed);
        assert_true(failed * every > 200);
    }
}

int main(int argc, char **argv)
{
    int every = 13;
    test_begin(&argc, &argv);
    if (argc == 2) every = atoi(argv[1]);
    around.state = &every;
    return test_end(run_here(NULL, NULL));
}
