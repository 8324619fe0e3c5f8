/* Models and specs of other people's programs, described well and badly. */
#include "support/library_test.h"

/* ---- describing ---- */

TEST(a_model_has_its_tensors_end_to_end_in_groups)
{
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

TEST(a_model_that_is_not_sound_is_refused_by_name)
{
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
        assert_fails(zero_model_describe(&m.tables, &model), ZERO_ERR_INVALID, texts[i]);
        assert_true(model.n_params == -1);
    }
}

/* ---- refusals ---- */

static void assert_refused(const zero_trainer_spec *spec, const char *text)
{
    zero_comm *comm = open_world();
    zero_trainer *t = NULL;
    zero_status st = zero_trainer_open(spec, comm, &t);
    assert_all(st == ZERO_ERR_INVALID && !t);
    all_told(text);
    zero_comm_close(&comm);
}

TEST(a_spec_out_of_range_is_refused_with_its_number)
{
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
    s.bits = "equal", assert_refused(&s, "auto, portable or fastest"), s.bits = NULL;
    zero_model_destroy(&model);
}

TEST(a_rank_with_another_spec_is_named_instead_of_waited_for)
{
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

TEST(a_last_unit_without_losses_is_refused)
{
    tied_model tied;
    zero_model model;
    tied_init(&tied);
    tied.units[2].sizes = tanh_sizes;
    all_ok(zero_model_describe(&tied.tables, &model));
    zero_trainer_spec spec = tied_spec(&model);
    assert_refused(&spec, "'out' wants");
    zero_model_destroy(&model);
}

TEST(steps_that_adamw_cannot_take_are_refused)
{
    const zero_source none = {0};
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
        assert_all(zero_trainer_step(t, &tied_source, &bad[i], &out) == ZERO_ERR_INVALID);
    assert_all(zero_trainer_step(t, &none, &good, &out) == ZERO_ERR_INVALID);
    zero_trainer_close(&t);
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

TEST(a_group_needs_a_communicator)
{
    zero_comm *comm = NULL;
    assert_all(zero_comm_open(MPI_COMM_NULL, 0.0, &comm) == ZERO_ERR_INVALID);
    assert_all(zero_comm_open(MPI_COMM_WORLD, -1.0, &comm) == ZERO_ERR_INVALID && !comm);
    comm = open_world();
    assert_true(zero_comm_rank(comm) == test_rank && zero_comm_size(comm) == test_size);
    zero_comm_close(&comm);
    zero_comm_close(NULL);
    zero_trainer_close(NULL);
}
