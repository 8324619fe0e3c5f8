/* The same sums and copies from every algorithm under MPI, on pretended nodes. test_steps.c runs
 * the step lists in any order of events. */
#include "support/collective_shapes.h"

#include <time.h>

#define TRIALS      12 /* per layout, algorithm and kind */
#define MANY_TRIALS 6  /* with many ranks, which share few cores */

/* ---- any shape ---- */

static void run_all(zero_algorithm algorithm)
{
    run_shapes(algorithm, test_size > 4 ? MANY_TRIALS : TRIALS);
}

TEST(pairs_give_the_tree_sum_and_every_piece)
{
    run_all(ZERO_ALGORITHM_P2P);
}

TEST(windows_give_the_tree_sum_and_every_piece)
{
    run_all(ZERO_ALGORITHM_SHM);
}

TEST(two_levels_give_the_tree_sum_and_every_piece)
{
    run_all(ZERO_ALGORITHM_HIER);
}

/* MPI sums in an order of its own; sums of small integers are exact in any order. */
TEST(mpi_gives_exact_sums_and_every_piece)
{
    run_all(ZERO_ALGORITHM_MPI);
}

#define WIDE 100000 /* elements; its chunks differ modulo 3 */

/* 2^digits + 1 has more digits than the type: a sum in 16 bits would lose all but the first
 * summand. */
static bool sums_exactly(field *f, zero_collective_kind kind, zero_type type)
{
    zero_collective_spec spec = {.kind = kind,
                                 .algorithm = ZERO_ALGORITHM_MPI,
                                 .type = type,
                                 .result = ZERO_FP32,
                                 .count = WIDE,
                                 .stride = WIDE + 1,
                                 .max_chunk = WIDE / 5, /* too long for MPI to keep */
                                 .root = world.size / 2};
    float first = type == ZERO_BF16 ? 256.0f : 2048.0f;
    bool right = true;
    job j = job_init(f, spec, 0, false, 0);
    for (int64_t i = 0; i < job_in_len(&j); i++)
        oracle_store(type, j.in, i, world.rank == 0 ? first : (float)(i % (WIDE + 1) % 3));
    job_begin(&j);
    assert_ok(zero_collective_wait(&j.op));
    for (int64_t i = 0; job_has_out(&j) && i < spec.count; i++)
        right = right && oracle_load(ZERO_FP32, j.out, i) ==
                             first + (float)(i % 3 * (world.size - 1));
    job_destroy(&j);
    return right;
}

TEST(mpi_does_not_round_sums_in_fp32)
{
    static const zero_collective_kind sums[] = {ZERO_REDUCE_SCATTER, ZERO_REDUCE};
    field f = field_open(arrange(ALONE), (size_t)world.size * (WIDE + 1) * sizeof(float));
    for (int i = 0; i < 2; i++) {
        assert_all(sums_exactly(&f, sums[i], ZERO_BF16));
        assert_all(sums_exactly(&f, sums[i], ZERO_FP16));
    }
    field_close(&f);
}

TEST(pieces_of_many_full_chunks_arrive)
{
    run_full_chunks(262144 + 77, 262144 + 128);
}

/* ---- several at once ---- */

TEST(several_are_in_flight_and_ranks_are_late)
{
    run_trials(run_at_once, 6);
}

TEST(a_program_runs_again_and_again_through_few_tags)
{
    run_again_and_again(3);
}

/* Each rank changes its piece once all have read the node's one `out`, as with parameters, step
 * after step. */
static bool gather_steps(field *f, zero_algorithm algorithm, bool in_place)
{
    zero_collective_spec spec = small_sum(algorithm);
    bool right = true;
    spec.kind = ZERO_ALL_GATHER;
    spec.one_out = true;
    spec.stride = spec.count;
    job j = job_init(f, spec, 0, in_place, 0);
    for (j.trial = 1; j.trial <= 20; j.trial++) {
        job_fill_in(&j);
        dawdle(oracle_bits(j.trial, test_rank, in_place));
        job_begin(&j);
        assert_ok(zero_collective_wait(&j.op));
        right = job_is_right(&j) && right;
    }
    job_destroy(&j);
    return right;
}

TEST(pieces_that_change_between_gathers_arrive_in_the_one_array)
{
    static const zero_algorithm both[] = {ZERO_ALGORITHM_SHM, ZERO_ALGORITHM_HIER};
    for (int a = 0; a < ARRANGEMENTS; a++) {
        if (!is_possible(a)) continue;
        bool right = true;
        field f = field_open(arrange(a), room(MAX_STRIDE));
        for (int way = 0; way < 4; way++)
            if (fits(both[way / 2], &f.comm.layout))
                right = gather_steps(&f, both[way / 2], way % 2) && right;
        assert_all(right);
        field_close(&f);
    }
}

/* Even with messages so small that MPI would keep them at the root. */
TEST(ranks_wait_for_a_root_that_is_late)
{
    field f = field_open(arrange(ALONE), MAX_STRIDE * sizeof(float));
    zero_collective_spec spec = {.kind = ZERO_REDUCE, .count = 10};
    job j = job_init(&f, spec, 1, false, 0);
    job_fill(&j);
    if (test_rank > 0) job_begin(&j);
    for (int i = 0; i < 1000 && test_rank > 0; i++) {
        bool done = true;
        assert_ok(zero_collective_progress(&j.op, &done));
        assert_false(done);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) job_begin(&j);
    assert_ok(zero_collective_wait(&j.op));
    assert_all(job_is_right(&j));
    job_destroy(&j);
    field_close(&f);
}

static double own_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST(beside_others_that_keep_the_core_a_rank_waits_asleep)
{
    field f = field_open(arrange(ALONE), MAX_STRIDE * sizeof(float));
    zero_collective_spec spec = {.kind = ZERO_REDUCE, .count = 10};
    job j = job_init(&f, spec, 1, false, 0);
    const struct timespec late = {.tv_nsec = 400000000};
    job_fill(&j);
    f.comm.crowd.until = 1e300; /* as if for ever */
    if (test_rank == 0) nanosleep(&late, NULL);
    job_begin(&j);
    const double start = own_seconds();
    assert_ok(zero_collective_wait(&j.op));
    assert_all(own_seconds() - start < 0.2);
    assert_all(job_is_right(&j));
    job_destroy(&j);
    field_close(&f);
}

/* Rank 0 alone waits, so it needs no other rank. */
static void wait_for_nothing(field *f, zero_algorithm algorithm)
{
    bool done = false;
    job j = job_init(f, small_sum(algorithm), ORACLE_SMALL, true, 0);
    for (int again = 0; again < 3; again++) {
        if (test_rank == 0) assert_ok(zero_collective_wait(&j.op));
        assert_ok(zero_collective_progress(&j.op, &done));
        assert_true(done);
        job_fill(&j);
        job_begin(&j);
        assert_ok(zero_collective_wait(&j.op));
        assert_all(job_is_right(&j));
    }
    job_destroy(&j);
}

TEST(a_wait_for_nothing_begun_returns_at_once)
{
    field f =
        field_open(arrange(is_possible(ONE_NODE) ? ONE_NODE : AS_IS), room(MAX_STRIDE));
    for (int algorithm = 0; algorithm < ZERO_ALGORITHMS; algorithm++)
        if (fits((zero_algorithm)algorithm, &f.comm.layout))
            wait_for_nothing(&f, (zero_algorithm)algorithm);
    field_close(&f);
}

/* The root is late, so the others' first broadcast is in flight when they begin the second. */
TEST(no_more_are_in_flight_than_nodes_have_counters)
{
    field f = field_open(arrange(ALONE), MAX_STRIDE * sizeof(float));
    zero_collective_spec spec = {.kind = ZERO_BROADCAST, .count = 100};
    job first = job_init(&f, spec, 1, false, 0), second = job_init(&f, spec, 2, false, 1);
    job_fill(&first);
    if (test_rank > 0) {
        job_begin(&first);
        f.comm.sequence += ZERO_SIGNALS - 1;
        assert_int_equal(zero_collective_begin(&second.op, second.in, second.out, NULL),
                         ZERO_ERR_UNSUPPORTED);
        assert_false(second.op.is_active);
        f.comm.sequence -= ZERO_SIGNALS - 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) job_begin(&first);
    assert_ok(zero_collective_wait(&first.op));
    assert_all(job_is_right(&first));
    job_destroy(&first);
    job_destroy(&second);
    field_close(&f);
}

/* ---- mistakes ---- */

TEST(a_group_without_a_window_is_told_so)
{
    zero_collective op = {.sequence = 42};
    zero_collective_spec spec = small_sum(ZERO_ALGORITHM_SHM);
    spec.in_apart = 4096;
    zero_status expected = world.size > 1 ? ZERO_ERR_INVALID : ZERO_OK;
    if (!is_possible(ONE_NODE)) skip();
    zero_comm comm = arrange(ONE_NODE);
    assert_all(zero_collective_init(&op, &comm, &spec) == expected);
    if (expected == ZERO_OK) zero_collective_destroy(&op);
    zero_comm_destroy(&comm);
}

TEST(nonsense_leaves_the_struct_as_it_was)
{
    zero_collective op = {.sequence = 42};
    zero_collective_spec spec = small_sum(ZERO_ALGORITHM_P2P);
    spec.stride = 299;
    assert_fails(zero_collective_init(&op, &world, &spec), ZERO_ERR_INVALID, "299");
    assert_int_equal(op.sequence, 42);
}
