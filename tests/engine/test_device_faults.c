/* A device that fails under a run, on one rank, in any of its calls and copies: all ranks get the
 * failure from the same function of the engine, with the rank and the device's first text, and no
 * rank waits for ever.
 *
 *     test_device_faults           every 13th call
 *     test_device_faults EVERY     every EVERY-th call */
#include "support/engine_test.h"

#include <stdio.h>
#include <stdlib.h>

#include "math/fake.h"

/* The last rank's device fails in this call, from 1. */
static void break_call(int call)
{
    char text[32];
    snprintf(text, sizeof text, "%d", test_rank == test_size - 1 ? call : 0);
    assert_int_equal(setenv("ZERO_FAKE_FAIL", text, 1), 0);
}

/* True if the call succeeded on all ranks; else it failed on all of them, with the device's text. */
static bool check(const char *function, int call, zero_status st)
{
    char expected[96];
    int least = (int)st, most = (int)st;
    int n = snprintf(expected, sizeof expected, "rank %d: ", test_size - 1);
    if (test_size == 1) n = 0; /* a rank alone has no number */
    snprintf(expected + n, sizeof expected - (size_t)n,
             "the fake device failed in call %d (", call);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (least == ZERO_OK && most == ZERO_OK) return true;
    bool is_told = st == ZERO_ERR_ENV && strstr(zero_last_error(), expected) != NULL;
    if (!is_told)
        print_error("rank %d, %s, call %d: status %d, '%s'\n", test_rank, function, call,
                    (int)st, zero_last_error());
    assert_all(is_told);
    return false;
}

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
    return check("step", call, zero_engine_step(e, &source, &first, &run->last)) &&
           check("evaluate", call, zero_engine_evaluate(e, &source, &loss)) &&
           check("generate", call, zero_engine_generate(e, &how, 1, 2, text)) &&
           check("compute", call, zero_engine_compute(e, &source, &second, &run->last)) &&
           check("digest", call, zero_engine_digest(e, hex)) &&
           check("set_weights", call, zero_engine_set_weights(e, &weights)) &&
           check("step", call, zero_engine_step(e, &source, &second, &run->last)) &&
           check("check", call, zero_engine_check(e));
}

static bool survives(const test_setup *setup, int call)
{
    test_run run = {.setup = *setup, .comm = &run.own};
    break_call(call);
    test_split(test_size, setup->fake_nodes, &run.own);
    bool is_well = check("init", call, test_run_init(&run)) && use(&run, call);
    test_run_close(&run);
    return is_well;
}

static void all_ranks_hear_of_every_failure(void **state)
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(all_ranks_hear_of_every_failure, &every),
    };
    return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
