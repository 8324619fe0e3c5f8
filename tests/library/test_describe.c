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

TEST(a_last_unit_without_losses_is_refused)
{
    tied_model tied;
    zero_model model;
    tied_init(&tied);
    tied.units[2].sizes = tanh_sizes;
    all_ok(zero_model_describe(&tied.tables, &model));
    zero_trainer_spec spec = tied_spec(&model);
    zero_comm *comm = open_world();
    zero_trainer *t = NULL;
    refused(zero_trainer_open(&spec, comm, &t), "'out' wants");
    zero_comm_close(&comm);
    zero_model_destroy(&model);
}

TEST(a_group_needs_a_communicator)
{
    zero_comm *comm = NULL;
    assert_all(zero_comm_open(MPI_COMM_NULL, 0.0, &comm) == ZERO_ERR_INVALID && !comm);
    comm = open_world();
    assert_true(zero_comm_rank(comm) == test_rank && zero_comm_size(comm) == test_size);
    zero_comm_close(&comm);
}
