/* Other people's programs: models of their own under any stage, through include/zero. */
#define _POSIX_C_SOURCE 200809L
#include "support/library_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include <zero/gpt2.h>

typedef struct {
    double first, last;
    char digest[33];
} outcome;

static outcome train(const zero_trainer_spec *spec, int steps)
{
    outcome o;
    zero_step_result out;
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(spec, comm);
    for (int step = 0; step < steps; step++) {
        take_step(t, step, &out);
        if (step == 0) o.first = out.loss;
    }
    o.last = out.loss;
    all_ok(zero_trainer_digest(t, o.digest));
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    return o;
}

/* False if libzero was built without OpenMP. */
static bool may_have_threads(const zero_trainer_spec *spec)
{
    zero_trainer_spec two = *spec;
    zero_trainer *t = NULL;
    zero_comm *comm = open_world();
    two.threads = 2;
    zero_status st = zero_trainer_open(&two, comm, &t);
    assert_all(st == ZERO_OK || st == ZERO_ERR_UNSUPPORTED);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    return st == ZERO_OK;
}

/* ---- training ---- */

TEST(every_stage_type_and_option_gives_the_same_bits)
{
    zero_model model;
    double exact = 0.0;
    describe_tied(&model);
    for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.type = type;
        outcome plain = train(&spec, 25);
        if (type == ZERO_FP32) exact = plain.first;
        assert_all(fabs(plain.first - exact) < 0.02 * exact);
        assert_all(plain.last < 0.7 * plain.first);
        for (int stage = 1; stage <= 3; stage++) {
            zero_trainer_spec other = spec;
            other.stage = stage;
            other.collectives = stage == 2 ? "p2p" : NULL;
            other.partition = stage == 1 ? "owner" : NULL;
            other.recompute = other.serial = stage == 3;
            other.bucket = stage == 3 ? 4096 : 0;
            other.threads = may_have_threads(&spec) ? stage + 1 : 1;
            outcome sharded = train(&other, 25);
            assert_all(strcmp(plain.digest, sharded.digest) == 0);
        }
    }
    zero_model_destroy(&model);
}

TEST(a_gpt2_trains_through_the_same_door)
{
    const zero_gpt2_shape shape = {
        .layers = 1, .hidden = 16, .heads = 2, .seq = 8, .vocab = 16, .seed = 1};
    zero_model model;
    all_ok(zero_gpt2_describe(&shape, &model));
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&(zero_trainer_spec){.model = &model, .stage = 3}, comm);
    float gain[16] = {0};
    all_ok(zero_trainer_read(t, "ln_f.weight", gain));
    for (int i = 0; i < 16; i++) assert_true(gain[i] > 0.5f && gain[i] < 1.5f);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

TEST(two_trainers_in_one_process_do_not_meet)
{
    zero_model model;
    zero_step_result out;
    char digest[2][33];
    zero_comm *comm[2] = {open_world(), open_world()};
    zero_trainer *t[2];
    describe_tied(&model);
    zero_trainer_spec spec[2] = {tied_spec(&model), tied_spec(&model)};
    spec[1].stage = 3;
    spec[1].type = ZERO_BF16;
    spec[1].seed = 8;
    for (int i = 0; i < 2; i++) t[i] = open_trainer(&spec[i], comm[i]);
    for (int step = 0; step < 10; step++)
        for (int i = 0; i < 2; i++) take_step(t[i], step, &out);
    for (int i = 0; i < 2; i++) {
        all_ok(zero_trainer_digest(t[i], digest[i]));
        zero_trainer_close(&t[i]);
        zero_comm_close(&comm[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_all(strcmp(train(&spec[i], 10).digest, digest[i]) == 0);
    zero_model_destroy(&model);
}

/* A directory of this job's own, the same on all ranks. */
static void make_directory(char path[64])
{
    memset(path, 0, 64);
    if (test_rank == 0) snprintf(path, 64, "/tmp/zero-library-%d", (int)getpid());
    MPI_Bcast(path, 64, MPI_CHAR, 0, MPI_COMM_WORLD);
}

static void remove_directory(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) assert_int_equal(system(command), 0);
}

/* Leftovers of a process that died while saving. */
static void leave_half_a_save(const char *dir, char left[128])
{
    snprintf(left, 128, "%s/.tmp-step-00000004", dir);
    if (test_rank == 0) assert_int_equal(mkdir(dir, 0700) + mkdir(left, 0700), 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

TEST(what_was_saved_goes_on_in_another_stage_as_if_never_stopped)
{
    zero_model model;
    zero_step_result out;
    char dir[64], left[128], digest[33];
    int64_t step = -1;
    describe_tied(&model);
    make_directory(dir);
    leave_half_a_save(dir, left);
    zero_trainer_spec spec = tied_spec(&model);
    spec.type = ZERO_BF16;
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&spec, comm);
    for (int64_t s = 0; s < 6; s++) take_step(t, s, &out);
    assert_all(zero_trainer_save(t, dir, INT64_MAX) == ZERO_ERR_INVALID);
    assert_all(access(left, F_OK) == 0);
    bool elsewhere = test_rank > 0 && test_rank == test_size - 1;
    assert_all(zero_trainer_save(t, elsewhere ? left : dir, 6) ==
               (test_size > 1 ? ZERO_ERR_ENV : ZERO_OK));
    if (test_size == 1) remove_directory(dir);
    all_ok(zero_trainer_save(t, dir, 6));
    assert_all(access(left, F_OK) != 0);
    all_fail(zero_trainer_save(t, dir, 6), ZERO_ERR_INVALID,
             "step-00000006 exists: nothing was written");
    zero_trainer_close(&t);

    zero_trainer_spec other = spec;
    other.stage = 3;
    other.seed = 99; /* of weights that are overwritten */
    t = open_trainer(&other, comm);
    assert_all(zero_trainer_resume(t, "/nowhere/at/all", &step) == ZERO_ERR_IO);
    assert_all(zero_trainer_resume(t, dir, &step) == ZERO_OK && step == 6);
    for (int64_t s = step; s < 10; s++) take_step(t, s, &out);
    all_ok(zero_trainer_digest(t, digest));
    assert_all(strcmp(train(&spec, 10).digest, digest) == 0);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    remove_directory(dir);
    zero_model_destroy(&model);
}

TEST(evaluation_changes_nothing_and_agrees_with_the_step)
{
    zero_model model;
    zero_step_result out;
    double before;
    char digest[2][33];
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&spec, comm);
    all_ok(zero_trainer_digest(t, digest[0]));
    all_ok(zero_trainer_evaluate(t, &tied_source, &before));
    all_ok(zero_trainer_digest(t, digest[1]));
    assert_string_equal(digest[0], digest[1]);
    take_step(t, 0, &out);
    assert_true(before >= out.loss && before <= out.loss);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

TEST(tensors_are_read_whole_in_every_stage)
{
    zero_model model;
    zero_step_result out;
    float first[WIDE * NARROW], values[WIDE * NARROW];
    describe_tied(&model);
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = tied_spec(&model);
        spec.stage = stage;
        zero_comm *comm = open_world();
        zero_trainer *t = open_trainer(&spec, comm);
        for (int step = 0; step < 3; step++) take_step(t, step, &out);
        all_ok(zero_trainer_read(t, "A", values));
        if (stage == 0) memcpy(first, values, sizeof first);
        assert_all(memcmp(first, values, sizeof first) == 0);
        assert_all(zero_trainer_read(t, "B", values) == ZERO_ERR_INVALID);
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
}

TEST(what_was_planned_is_what_is_counted)
{
    zero_model model;
    zero_step_result out;
    describe_tied(&model);
    for (int stage = 0; stage <= 3; stage++) {
        zero_trainer_spec spec = tied_spec(&model);
        zero_trainer_ledger l;
        spec.stage = stage;
        zero_comm *comm = open_world();
        zero_trainer *t = open_trainer(&spec, comm);
        for (int step = 0; step < 4; step++) take_step(t, step, &out);
        all_ok(zero_trainer_count(t, &l));
        assert_all(l.planned_peak == l.measured_peak && l.states < l.planned_peak);
        assert_all(l.planned_sent == l.measured_sent);
        assert_all(l.planned_received == l.measured_received);
        assert_all((l.planned_sent > 0) == (test_size > 1));
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
}

/* Bytes of the model's states on a rank, by train.h's table; here all ranks are one node. */
static double table_of(int stage, zero_type type, bool shares, double n)
{
    const double one = type == ZERO_FP32 ? 4.0 : 2.0, states = type == ZERO_FP32 ? 8 : 12;
    double parameters = stage >= 3 || (shares && stage >= 1) ? one / n : one;
    return parameters + (stage >= 2 ? one / n : one) + (stage >= 1 ? states / n : states);
}

static void zeros(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                  void *targets)
{
    (void)arg;
    (void)step;
    (void)i;
    memset(inputs, 0, (size_t)T * sizeof(int32_t));
    memset(targets, 0, (size_t)T * sizeof(int32_t));
}

TEST(states_follow_the_table)
{
    const zero_gpt2_shape shape = {
        .layers = 1, .hidden = 256, .heads = 2, .seq = 8, .vocab = 256, .seed = 1};
    const zero_source source = {.sample = zeros};
    zero_model model;
    zero_step_result out;
    const char *const ways[] = {"p2p", "shm"};
    all_ok(zero_gpt2_describe(&shape, &model));
    for (int way = 0; way < 2; way++)
        for (int k = 0; k < 8; k++) {
            zero_trainer_spec spec = {.model = &model, .stage = k / 2};
            zero_trainer_ledger l;
            spec.type = k % 2 == 0 ? ZERO_FP32 : ZERO_BF16;
            spec.collectives = ways[way];
            zero_comm *comm = open_world();
            zero_trainer *t = open_trainer(&spec, comm);
            all_ok(zero_trainer_step(t, &source, &tied_input, &out));
            all_ok(zero_trainer_count(t, &l));
            double wanted = (double)model.n_params *
                            table_of(spec.stage, spec.type, way == 1, test_size);
            assert_all((double)l.states >= wanted && (double)l.states <= 1.01 * wanted);
            zero_trainer_close(&t);
            zero_comm_close(&comm);
        }
    zero_model_destroy(&model);
}
