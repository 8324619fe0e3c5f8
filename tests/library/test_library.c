/* Other people's programs: models of their own under any stage, through include/zero. */
#define _POSIX_C_SOURCE 200809L
#include "support/mpi_cmocka.h"

#include "support/library_models.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zero/gpt2.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static zero_comm *open_world(void)
{
    zero_comm *comm;
    assert_all(zero_comm_open(MPI_COMM_WORLD, 60.0, &comm) == ZERO_OK);
    return comm;
}

static void describe_tied(zero_model *model)
{
    tied_model tied;
    tied_init(&tied);
    assert_all(zero_model_describe(&tied.tables, model) == ZERO_OK);
}

static zero_trainer_spec tied_spec(const zero_model *model)
{
    return (zero_trainer_spec){.model = model, .micro_batch = 4, .seed = 7};
}

static void take_step(zero_trainer *t, int64_t step, zero_step_result *out)
{
    const zero_source source = {.sample = tied_sample};
    const zero_step_input in = {.step = step,
                                .lr = 2e-2,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .eps = 1e-8,
                                .weight_decay = 0.1,
                                .clip = 1.0};
    if (zero_trainer_step(t, &source, &in, out) != ZERO_OK)
        fail_msg("step %d: %s", (int)step, zero_last_error());
}

static zero_trainer *open_trainer(const zero_trainer_spec *spec, zero_comm *comm)
{
    zero_trainer *t = NULL;
    zero_status st = zero_trainer_open(spec, comm, &t);
    if (st != ZERO_OK) print_error("%s\n", zero_last_error());
    assert_all(st == ZERO_OK);
    return t;
}

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
    assert_all(zero_trainer_digest(t, o.digest) == ZERO_OK);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    return o;
}

/* ---- describing ---- */

static void a_model_has_its_tensors_end_to_end_in_groups(void **state)
{
    (void)state;
    zero_model m;
    describe_tied(&m);
    assert_int_equal(m.n_params, WIDE * NARROW + WIDE);
    assert_int_equal(m.groups[1].first_tensor, 1);
    assert_int_equal(m.groups[0].n_params, WIDE * NARROW);
    assert_ptr_equal(m.units[2].tensors[1], &m.tensors[1]);
    zero_model_destroy(&m);
}

/* Breaks the tables of a valid model in one way. */
static void break_tables(tied_model *m, int how)
{
    switch (how) {
    case 0: m->tables.n_units = 0; break;
    case 1: memset(m->tensors[0].name, 'x', sizeof m->tensors[0].name); break;
    case 2: m->units[1].name[0] = '\0'; break;
    case 3: memcpy(m->tensors[1].name, "A", 2); break;
    case 4: memcpy(m->units[1].name, "out", 4); break;
    case 5: m->groups[1] = "a name that needs far more than its room"; break;
    case 6: m->groups[1] = "tied"; break;
    case 7: m->tensors[1].rows = 0; break;
    case 8: m->tensors[0].rows = INT64_C(1) << 40, m->tensors[0].cols = INT64_MAX; break;
    case 9: m->tensors[0].init_std = NAN; break;
    case 10: m->tensors[1].group = 0; break;
    case 11: m->tensors[1].group = 2; break;
    case 12: m->tensors[0].group = -1; break;
    case 13: m->units[1].sizes = NULL; break;
    case 14: m->units[0].forward = NULL; break;
    case 15: m->units[2].backward = NULL; break;
    case 16: m->units[2].n_groups = 3; break;
    case 17: m->units[2].groups[1] = 0; break;
    case 18: m->units[0].groups[0] = 2; break;
    case 19: m->units[2].n_groups = 1; break;
    case 20: m->tables.seq = 0; break;
    case 21: m->tables.input_bytes = 0; break;
    case 22: m->tables.tensors = NULL; break;
    case 23: m->groups[0] = NULL; break;
    }
}

static void a_model_that_is_not_sound_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const texts[] = {"0 units",
                                        "tensor 0 has no name",
                                        "unit 1 has no name",
                                        "called 'A'",
                                        "'out'",
                                        "group 1 has no name",
                                        "called 'tied'",
                                        "'gain' has 0 rows",
                                        "'A' has",
                                        "deviation nan",
                                        "'gains' has no tensors",
                                        "'gain' is in group 2",
                                        "'A' is in",
                                        "'tanh' lacks its function sizes",
                                        "'in' lacks its function forward",
                                        "'out' lacks its function backward",
                                        "'out' reads 3 groups",
                                        "'out' reads group 0",
                                        "'in' reads group 2",
                                        "'gains' is read by no unit",
                                        "0 positions",
                                        "0 bytes of inputs",
                                        "without tables",
                                        "group 0 has no name"};
    for (int i = 0; i < (int)COUNT(texts); i++) {
        tied_model m;
        zero_model model = {.n_params = -1};
        tied_init(&m);
        break_tables(&m, i);
        assert_int_equal(zero_model_describe(&m.tables, &model), ZERO_ERR_INVALID);
        if (!strstr(zero_last_error(), texts[i]))
            fail_msg("case %d: '%s' is not in '%s'", i, texts[i], zero_last_error());
        assert_true(model.n_params == -1);
    }
}

/* ---- training ---- */

static void every_stage_type_and_option_gives_the_same_bits(void **state)
{
    (void)state;
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
            outcome sharded = train(&other, 25);
            assert_all(strcmp(plain.digest, sharded.digest) == 0);
        }
    }
    zero_model_destroy(&model);
}

static void a_gpt2_trains_through_the_same_door(void **state)
{
    (void)state;
    const zero_gpt2_shape shape = {
        .layers = 1, .hidden = 16, .heads = 2, .seq = 8, .vocab = 16, .seed = 1};
    zero_model model;
    assert_all(zero_gpt2_describe(&shape, &model) == ZERO_OK);
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&(zero_trainer_spec){.model = &model, .stage = 3}, comm);
    float gain[16] = {0};
    assert_all(zero_trainer_read(t, "ln_f.weight", gain) == ZERO_OK);
    for (int i = 0; i < 16; i++) assert_true(gain[i] > 0.5f && gain[i] < 1.5f);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

static void two_trainers_in_one_process_do_not_meet(void **state)
{
    (void)state;
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
        assert_all(zero_trainer_digest(t[i], digest[i]) == ZERO_OK);
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

static void what_was_saved_goes_on_in_another_stage_as_if_never_stopped(void **state)
{
    (void)state;
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
    assert_all(zero_trainer_save(t, dir, 6) == ZERO_OK);
    assert_all(access(left, F_OK) != 0);
    assert_all(zero_trainer_save(t, dir, 6) == ZERO_ERR_INVALID);
    assert_all(strstr(zero_last_error(), "step-00000006 exists: nothing was written") !=
               NULL);
    zero_trainer_close(&t);

    zero_trainer_spec other = spec;
    other.stage = 3;
    other.seed = 99; /* of weights that are overwritten */
    t = open_trainer(&other, comm);
    assert_all(zero_trainer_resume(t, "/nowhere/at/all", &step) == ZERO_ERR_IO);
    assert_all(zero_trainer_resume(t, dir, &step) == ZERO_OK && step == 6);
    for (int64_t s = step; s < 10; s++) take_step(t, s, &out);
    assert_all(zero_trainer_digest(t, digest) == ZERO_OK);
    assert_all(strcmp(train(&spec, 10).digest, digest) == 0);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    remove_directory(dir);
    zero_model_destroy(&model);
}

static void evaluation_changes_nothing_and_agrees_with_the_step(void **state)
{
    (void)state;
    const zero_source source = {.sample = tied_sample};
    zero_model model;
    zero_step_result out;
    double before;
    char digest[2][33];
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&spec, comm);
    assert_all(zero_trainer_digest(t, digest[0]) == ZERO_OK);
    assert_all(zero_trainer_evaluate(t, &source, &before) == ZERO_OK);
    assert_all(zero_trainer_digest(t, digest[1]) == ZERO_OK);
    assert_string_equal(digest[0], digest[1]);
    take_step(t, 0, &out);
    assert_true(before >= out.loss && before <= out.loss);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

static void tensors_are_read_whole_in_every_stage(void **state)
{
    (void)state;
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
        assert_all(zero_trainer_read(t, "A", values) == ZERO_OK);
        if (stage == 0) memcpy(first, values, sizeof first);
        assert_all(memcmp(first, values, sizeof first) == 0);
        assert_all(zero_trainer_read(t, "B", values) == ZERO_ERR_INVALID);
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
}

static void what_was_planned_is_what_is_counted(void **state)
{
    (void)state;
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
        assert_all(zero_trainer_count(t, &l) == ZERO_OK);
        assert_all(l.planned_peak == l.measured_peak && l.states < l.planned_peak);
        assert_all(l.planned_sent == l.measured_sent);
        assert_all(l.planned_received == l.measured_received);
        assert_all((l.planned_sent > 0) == (test_size > 1));
        zero_trainer_close(&t);
        zero_comm_close(&comm);
    }
    zero_model_destroy(&model);
}

/* ---- refusals ---- */

static void assert_refused(const zero_trainer_spec *spec, const char *text)
{
    zero_comm *comm = open_world();
    zero_trainer *t = NULL;
    zero_status st = zero_trainer_open(spec, comm, &t);
    bool told = strstr(zero_last_error(), text) != NULL;
    if (!told) print_error("'%s' is not in '%s'\n", text, zero_last_error());
    assert_all(st == ZERO_ERR_INVALID && told && !t);
    zero_comm_close(&comm);
}

static void a_spec_out_of_range_is_refused_with_its_number(void **state)
{
    (void)state;
    zero_model model;
    describe_tied(&model);
    zero_trainer_spec s = tied_spec(&model);
    assert_refused(&(zero_trainer_spec){.model = NULL}, "without a model");
    s.stage = 99, assert_refused(&s, "stage 99"), s.stage = 0;
    s.type = (zero_type)9, assert_refused(&s, "type 9"), s.type = ZERO_FP32;
    s.micro_batch = -3, assert_refused(&s, "-3"), s.micro_batch = 4;
    s.seq = 4, assert_refused(&s, "sequences of 4"), s.seq = 0;
    s.accumulation = -1, assert_refused(&s, "accumulation -1"), s.accumulation = 0;
    s.partition = "slices", assert_refused(&s, "'slices'"), s.partition = NULL;
    s.collectives = "nccl", assert_refused(&s, "'nccl'"), s.collectives = NULL;
    s.backend = "gpu", assert_refused(&s, "'gpu'"), s.backend = NULL;
    zero_model_destroy(&model);
}

static void a_rank_with_another_spec_is_named_instead_of_waited_for(void **state)
{
    (void)state;
    if (test_size == 1) return;
    zero_model model;
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    spec.stage = test_rank == 1 ? 2 : 1;
    assert_refused(&spec, "rank 1: the spec's stage is 2 here and 1 on rank 0");
    spec = tied_spec(&model);
    spec.type = test_rank == 1 ? ZERO_BF16 : ZERO_FP32;
    assert_refused(&spec, "rank 1: the spec's type is bf16 here and fp32 on rank 0");
    spec = tied_spec(&model);
    spec.serial = test_rank == 1;
    assert_refused(&spec, "rank 1: the spec's serial is on here and off on rank 0");
    spec = tied_spec(&model);
    spec.seed = 5 + test_rank;
    assert_refused(&spec, "rank 1: the spec's seed is 6 here and 5 on rank 0");
    spec = tied_spec(&model);
    spec.backend = test_rank == 1 ? "naive" : "cpu";
    assert_refused(&spec, "rank 1: the spec's backend is naive here and cpu on rank 0");
    zero_model_destroy(&model);
}

static void a_last_unit_without_losses_is_refused(void **state)
{
    (void)state;
    tied_model tied;
    zero_model model;
    tied_init(&tied);
    tied.units[2].sizes = tanh_sizes;
    assert_all(zero_model_describe(&tied.tables, &model) == ZERO_OK);
    zero_trainer_spec spec = tied_spec(&model);
    assert_refused(&spec, "'out' wants");
    zero_model_destroy(&model);
}

static void steps_that_adamw_cannot_take_are_refused(void **state)
{
    (void)state;
    const zero_source source = {.sample = tied_sample}, none = {0};
    const zero_step_input good = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    zero_step_input bad[] = {good, good, good, good};
    bad[0].eps = 0.0;
    bad[1].lr = NAN;
    bad[2].beta2 = 1.0;
    bad[3].clip = -1.0;
    zero_model model;
    zero_step_result out;
    describe_tied(&model);
    zero_trainer_spec spec = tied_spec(&model);
    zero_comm *comm = open_world();
    zero_trainer *t = open_trainer(&spec, comm);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_all(zero_trainer_step(t, &source, &bad[i], &out) == ZERO_ERR_INVALID);
    assert_all(zero_trainer_step(t, &none, &good, &out) == ZERO_ERR_INVALID);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

static void a_group_needs_a_communicator(void **state)
{
    (void)state;
    zero_comm *comm = NULL;
    assert_all(zero_comm_open(MPI_COMM_NULL, 0.0, &comm) == ZERO_ERR_INVALID);
    assert_all(zero_comm_open(MPI_COMM_WORLD, -1.0, &comm) == ZERO_ERR_INVALID && !comm);
    comm = open_world();
    assert_true(zero_comm_rank(comm) == test_rank && zero_comm_size(comm) == test_size);
    zero_comm_close(&comm);
    zero_comm_close(NULL);
    zero_trainer_close(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_has_its_tensors_end_to_end_in_groups),
        cmocka_unit_test(a_model_that_is_not_sound_is_refused_by_name),
        cmocka_unit_test(every_stage_type_and_option_gives_the_same_bits),
        cmocka_unit_test(a_gpt2_trains_through_the_same_door),
        cmocka_unit_test(two_trainers_in_one_process_do_not_meet),
        cmocka_unit_test(what_was_saved_goes_on_in_another_stage_as_if_never_stopped),
        cmocka_unit_test(evaluation_changes_nothing_and_agrees_with_the_step),
        cmocka_unit_test(tensors_are_read_whole_in_every_stage),
        cmocka_unit_test(what_was_planned_is_what_is_counted),
        cmocka_unit_test(a_spec_out_of_range_is_refused_with_its_number),
        cmocka_unit_test(a_rank_with_another_spec_is_named_instead_of_waited_for),
        cmocka_unit_test(a_last_unit_without_losses_is_refused),
        cmocka_unit_test(steps_that_adamw_cannot_take_are_refused),
        cmocka_unit_test(a_group_needs_a_communicator),
    };
    test_begin(&argc, &argv);
    return test_end(cmocka_run_group_tests(tests, NULL, NULL));
}
