/* Collectives on data of a device under MPI, on pretended nodes. test_device_steps.c runs the step
 * lists in any order of events. */
#define ON_DEVICE true
#include "support/collective_shapes.h"
#include "support/late.h"

#include "comm/thread.h"
#include "comm/watch.h"

#define TRIALS 4 /* per layout, algorithm and kind */

/* ---- any shape ---- */

static void run_all(zero_algorithm algorithm)
{
    run_shapes(algorithm, TRIALS);
}

TEST(pairs_give_devices_the_tree_sum_and_every_piece)
{
    run_all(ZERO_ALGORITHM_P2P);
}

TEST(windows_give_devices_the_tree_sum_and_every_piece)
{
    run_all(ZERO_ALGORITHM_SHM);
}

TEST(two_levels_give_devices_the_tree_sum_and_every_piece)
{
    run_all(ZERO_ALGORITHM_HIER);
}

TEST(mpi_gives_devices_exact_sums_and_every_piece)
{
    run_all(ZERO_ALGORITHM_MPI);
}

TEST(pieces_of_many_full_chunks_reach_the_device)
{
    run_full_chunks(140000 + 77, 140000 + 128);
}

/* ---- several at once ---- */

TEST(several_of_devices_and_hosts_are_in_flight)
{
    run_trials(run_at_once, 3);
}

TEST(a_program_with_copies_runs_again_and_again)
{
    run_again_and_again(0);
}

/* ---- failures, mistakes ---- */

/* A group of one rank, so that no other waits. */
static zero_comm alone(void)
{
    zero_comm comm;
    assert_ok(zero_comm_split(&world, test_rank, 0, &comm));
    return comm;
}

/* The copier fails in its call number `after`; returns false if that call is never made. */
static bool fail_after(field *f, int64_t after)
{
    job j = job_init(f, small_sum(ZERO_ALGORITHM_P2P), 4, false, 0);
    job_fill(&j);
    j.device->fails_after = after;
    zero_status st =
        zero_collective_begin(&j.op, fake_address(j.in), fake_address(j.out), j.staging);
    if (st == ZERO_OK) st = zero_collective_wait(&j.op);
    bool failed = st != ZERO_OK;
    assert_int_equal(st, failed ? ZERO_ERR_ENV : ZERO_OK);
    if (failed) assert_told("the device is lost");
    job_destroy(&j);
    return failed;
}

TEST(a_failed_copy_is_a_failure_of_progress)
{
    int64_t after = 0;
    field f = field_open(alone(), room(MAX_STRIDE));
    while (fail_after(&f, after)) after++;
    assert_true(after >= 4); /* fetch, ended, store, ended */
    assert_null(f.comm.active);
    field_close(&f);
}

static void check_report(int rank)
{
    char fault[64], state[96];
    snprintf(fault, sizeof fault, "rank %d waits for its device", rank);
    snprintf(state, sizeof state,
             "rank %d: waiting for copies of a device, and for all-gather 0 of group 5",
             rank);
    bool found = strstr(zero_last_error(), fault) && strstr(zero_last_error(), state);
    if (!found) print_error("expected '%s' in: %s\n", state, zero_last_error());
    assert_true(found);
}

/* The program would end after the report; here the device continues after it. */
TEST(a_rank_whose_device_is_stuck_is_named)
{
    const double limit = 1.0;
    if (test_size == 1) return;
    field f = field_open(arrange(ALONE), room(MAX_STRIDE));
    zero_collective_spec spec = small_sum(ZERO_ALGORITHM_P2P);
    spec.kind = ZERO_ALL_GATHER;
    spec.unit = 5;
    all_ok(zero_watch_start(&f.comm, limit));
    job j = job_init(&f, spec, 1, false, 0);
    job_fill(&j);
    /* A busy machine counts a part of the seconds as waited. */
    if (test_rank == test_size - 1)
        j.device->stuck_until = zero_clock_seconds() + 3.0 * limit;
    job_begin(&j);
    zero_status st = zero_collective_wait(&j.op);
    int told = st == ZERO_ERR_STALLED, in_all = 0;
    assert_true(told || st == ZERO_OK);
    if (told) check_report(test_size - 1);
    if (told) assert_ok(late_wait(&j.op));
    MPI_Allreduce(&told, &in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    assert_all(in_all == 1);
    assert_all(job_is_right(&j));
    job_destroy(&j);
    all_ok(zero_watch_stop(&f.comm));
    field_close(&f);
}

static void refuse(zero_comm *comm, const zero_collective_spec *spec,
                   const zero_copier *copier, zero_status expected, const char *words)
{
    zero_collective op = {.sequence = 42};
    assert_int_equal(zero_collective_init_on_device(&op, comm, spec, copier), expected);
    assert_told(words);
    assert_int_equal(op.sequence, 42);
}

TEST(a_device_needs_copies_and_copies_a_device)
{
    zero_collective op = {.sequence = 42};
    zero_collective_spec spec = small_sum(ZERO_ALGORITHM_P2P), host = spec;
    zero_copier none = {.fetch = fake_fetch, .store = fake_store};
    fake_device *d = fake_device_make(1);
    zero_comm comm = alone();
    host.on_device = false;
    assert_fails(zero_collective_init(&op, &comm, &spec), ZERO_ERR_INVALID, "on a device");
    assert_int_equal(op.sequence, 42);
    refuse(&comm, &spec, NULL, ZERO_ERR_INVALID, "without a table");
    refuse(&comm, &spec, &none, ZERO_ERR_INVALID, "expected");
    refuse(&comm, &host, &d->copier, ZERO_ERR_INVALID, "without a device");
    zero_comm_destroy(&comm);
    free(d);
}

TEST(a_device_is_not_used_by_a_progress_thread)
{
    zero_collective_spec spec = small_sum(ZERO_ALGORITHM_P2P);
    fake_device *d = fake_device_make(1);
    zero_comm comm = alone();
    zero_status st = zero_progress_start(&comm, 0.01);
    if (st == ZERO_OK)
        refuse(&comm, &spec, &d->copier, ZERO_ERR_UNSUPPORTED, "--progress-thread");
    else
        assert_int_equal(st, ZERO_ERR_UNSUPPORTED); /* MPI has no threads */
    zero_comm_destroy(&comm);
    free(d);
}
