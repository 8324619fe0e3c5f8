/* One rank cannot read or write its states, at any moment of what reads or writes them: all ranks
 * get its failure, nothing hangs, and no checkpoint appears. */
#define TEST_HAS_MAIN
#include "support/checkpoint_test.h"

/* ---- a backend that fails ---- */

static int left = -1; /* calls that still succeed; -1: all do */

static zero_status sync_or_fail(const zero_math *math)
{
    if (left < 0) return zero_backend_cpu.sync(math);
    if (left > 0) return left--, ZERO_OK;
    return zero_fail(ZERO_ERR_ENV, "the device is lost");
}

static zero_backend backend;

/* ---- all that touches states ---- */

typedef struct {
    test_run run;
    test_place there;
    int64_t step; /* of the next save */
} job;

typedef zero_status job_action(job *j);

static zero_status digest(job *j)
{
    char hex[33];
    return zero_engine_digest(&j->run.engine, hex);
}

static zero_status check(job *j)
{
    return zero_engine_check(&j->run.engine);
}

static zero_status publish(job *j)
{
    return zero_engine_publish(&j->run.engine);
}

static zero_status save(job *j)
{
    char path[400];
    zero_status st = test_try_save(&j->run, &j->there, j->step);
    MPI_Barrier(MPI_COMM_WORLD); /* a failed save is cleared away by rank 0 */
    test_step_path(&j->there, j->step, path);
    assert_true((access(path, F_OK) == 0) == (st == ZERO_OK));
    return st;
}

static zero_status load(job *j)
{
    char path[400];
    test_step_path(&j->there, j->step, path);
    return test_try_load(&j->run, path);
}

static zero_status write_weights(job *j)
{
    zero_drawn_weights drawn = {&j->run.model, 5};
    zero_weights weights = zero_weights_drawn(&drawn);
    return zero_engine_set_weights(&j->run.engine, &weights);
}

/* Lets the last rank's access number 0, `every`, 2 * `every`, ... fail, until the action needs
 * fewer. Returns how often it failed. */
static int fail_everywhere(job *j, job_action *action, int every)
{
    zero_status st = ZERO_ERR_ENV;
    int failures = -1;
    for (int k = 0; st != ZERO_OK; k += every) {
        left = test_rank == test_size - 1 ? k : -1;
        st = action(j);
        left = -1;
        assert_all(st == ZERO_OK || st == ZERO_ERR_ENV);
        assert_all(st == ZERO_OK || strstr(zero_last_error(), "the device is lost"));
        failures++;
    }
    return failures;
}

/* In stage 0 nothing is gathered, so all accesses are those of states. */
static void check_type(zero_type type)
{
    job j = {.step = 2};
    test_setup setup = test_standard;
    setup.plan.type = type;
    setup.plan.check_replicas = 1;
    setup.plan.check_memory = true;
    setup.backend = &backend;
    test_place_open(&j.there);
    test_run_open(&j.run, &setup, test_size);
    test_run_steps(&j.run, 0, 2);
    test_digest before = test_run_digest(&j.run);
    const int n_tensors = j.run.model.n_tensors, n_groups = j.run.model.n_groups;

    assert_all(fail_everywhere(&j, check, 3) >= n_tensors / 3);
    assert_all(fail_everywhere(&j, digest, 3) > n_tensors / 3);
    assert_all(fail_everywhere(&j, publish, 3) >= n_tensors / 3);
    assert_all(test_same(before, test_run_digest(&j.run)));
    assert_all(fail_everywhere(&j, save, 11) > n_tensors / 11);
    assert_all(fail_everywhere(&j, write_weights, 1) >= n_groups);
    assert_all(!test_same(before, test_run_digest(&j.run)));
    assert_all(fail_everywhere(&j, load, 5) >= n_tensors / 5);
    assert_all(test_same(before, test_run_digest(&j.run)));

    test_run_close(&j.run);
    test_place_close(&j.there);
}

TEST(a_rank_without_access_to_its_states_leaves_no_other_waiting)
{
    check_type(ZERO_FP32);
    check_type(ZERO_BF16);
}

int main(int argc, char **argv)
{
    backend = zero_backend_cpu;
    backend.sync = sync_or_fail;
    test_begin(&argc, &argv);
    return test_end(run_here(NULL, NULL));
}
