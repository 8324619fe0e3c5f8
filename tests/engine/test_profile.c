/* Every second of a step belongs to exactly one class of instructions. */
#include "support/engine_test.h"

#include "base/clock.h"

#define STEPS 4

static double sum_of_classes(const zero_profile *p, zero_program_kind program)
{
    double sum = 0.0;
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        sum += zero_profile_at(p, program, (zero_op)op, ZERO_ALL_UNITS)->seconds;
    return sum;
}

/* Returns the smallest part of a step, in seconds, that no class has. A rank may lose its core
 * between the two clocks of a step, but not in every step. */
static double least_untold(test_run *run)
{
    const zero_profile *p = &run->engine.runner.profile;
    double least = INFINITY;
    for (int step = 0; step < STEPS; step++) {
        double told = sum_of_classes(p, ZERO_PROGRAM_STEP), start = zero_clock_seconds();
        test_run_steps(run, step, 1);
        double took = zero_clock_seconds() - start;
        double untold = took - (sum_of_classes(p, ZERO_PROGRAM_STEP) - told);
        least = fmin(least, fabs(untold));
    }
    return least;
}

/* The number of a program's instructions of one kind. */
static int64_t count_in(const zero_program *program, zero_op op)
{
    int64_t n = 0;
    for (int i = 0; i < program->length; i++) n += program->code[i].op == op;
    return n;
}

static bool counts_are_the_programs(const test_run *run)
{
    const zero_runner *r = &run->engine.runner;
    bool right = true;
    for (int program = 0; program < ZERO_PROGRAMS; program++)
        for (int op = 0; op < ZERO_OP_KINDS; op++)
            right = right && zero_profile_at(&r->profile, (zero_program_kind)program,
                                             (zero_op)op, ZERO_ALL_UNITS)
                                     ->count ==
                                 r->walks[program] *
                                     count_in(&r->schedule->programs[program], (zero_op)op);
    return right;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

/* Kinds of units add up to their class; exchange is a part of it. */
static bool kinds_add_up(const zero_profile *p)
{
    bool right = p->n_columns == 4;
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        zero_profile_entry all =
            *zero_profile_at(p, ZERO_PROGRAM_STEP, (zero_op)op, ZERO_ALL_UNITS);
        zero_profile_entry sum = {0};
        for (int k = ZERO_ALL_UNITS + 1; k < p->n_columns; k++) {
            const zero_profile_entry *of =
                zero_profile_at(p, ZERO_PROGRAM_STEP, (zero_op)op, k);
            sum.count += of->count;
            sum.seconds += of->seconds;
            sum.exchange += of->exchange;
        }
        bool names_units =
            op == ZERO_OP_FORWARD || op == ZERO_OP_RECOMPUTE || op == ZERO_OP_BACKWARD;
        right = right && all.exchange >= 0.0 && all.exchange <= all.seconds;
        right = right && sum.count == (names_units ? all.count : 0);
        if (names_units)
            right = right && is_near(sum.seconds, all.seconds) &&
                    is_near(sum.exchange, all.exchange);
    }
    return right;
}

/* The ledger's seconds, too: replicas exchange something, and wait for a part of it at most. */
static bool replicas_take_time(const test_run *run)
{
    zero_traffic moved;
    zero_duration took;
    bool has_replicas = run->setup.plan.shard_ranks > 0 && test_size > 1;
    zero_engine_measured_traffic(&run->engine, ZERO_OP_ALL_REDUCE, &moved, &took);
    return (took.total > 0.0) == has_replicas && took.exposed <= took.total;
}

static void check_profile(const test_setup *setup)
{
    test_run run;
    test_run_open(&run, setup, test_size);
    assert_all(least_untold(&run) < 1e-4);
    assert_all(counts_are_the_programs(&run));
    assert_all(kinds_add_up(&run.engine.runner.profile));
    assert_all(replicas_take_time(&run));
    test_run_close(&run);
}

TEST(classes_add_up_to_the_step_in_all_stages)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int accumulation = 1; accumulation <= 3; accumulation += 2) {
            test_setup setup = test_standard;
            setup.plan.stage = stage;
            setup.plan.accumulation = accumulation;
            setup.plan.type = accumulation > 1 ? ZERO_BF16 : ZERO_FP32;
            setup.plan.shard_ranks = accumulation > 1; /* each rank is a replica, or none */
            setup.plan.recompute = stage % 2 == 1;
            setup.plan.collectives = stage > 1 ? ZERO_ALGORITHM_SHM : ZERO_ALGORITHM_P2P;
            check_profile(&setup);
        }
}

static double exchange_in(const zero_profile *p, zero_op op)
{
    return zero_profile_at(p, ZERO_PROGRAM_STEP, op, ZERO_ALL_UNITS)->exchange;
}

/* With several ranks a block's gradient is on its way while the block before it computes. */
TEST(what_moves_inside_backward_is_told_apart)
{
    for (int overlaps = 0; overlaps < 2; overlaps++) {
        test_run run;
        test_setup setup = test_standard;
        setup.shape.hidden = 96;
        setup.plan.collectives = ZERO_ALGORITHM_P2P;
        setup.plan.serial = !overlaps;
        test_run_open(&run, &setup, test_size);
        test_run_steps(&run, 0, STEPS);
        const zero_profile *p = &run.engine.runner.profile;
        double mine = exchange_in(p, ZERO_OP_BACKWARD), moved;
        MPI_Allreduce(&mine, &moved, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        assert_all((moved > 0.0) == (overlaps && test_size > 1));
        assert_all(exchange_in(p, ZERO_OP_LOAD) == 0.0);
        test_run_close(&run);
    }
}

/* Evaluations and generated text are not steps. */
TEST(other_programs_have_profiles_of_their_own)
{
    test_run run;
    double loss;
    test_run_open(&run, &test_standard, test_size);
    test_run_steps(&run, 0, 1);
    const zero_profile *p = &run.engine.runner.profile;
    double steps = sum_of_classes(p, ZERO_PROGRAM_STEP);
    zero_source source = test_words(&run);
    all_ok(zero_engine_evaluate(&run.engine, &source, &loss));
    assert_all(sum_of_classes(p, ZERO_PROGRAM_STEP) == steps);
    assert_all(sum_of_classes(p, ZERO_PROGRAM_EVALUATE) > 0.0);
    test_run_close(&run);
}

TEST(ranks_see_the_least_and_the_most_of_all)
{
    test_run run;
    zero_profile_ranks ranks;
    test_run_open(&run, &test_standard, test_size);
    test_run_steps(&run, 0, 2);
    const zero_profile *p = &run.engine.runner.profile;
    double sum = 0.0;
    all_ok(zero_profile_gather(p, ZERO_PROGRAM_STEP, run.comm, &ranks));
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        const zero_profile_row *row =
            zero_profile_row_at(&ranks, (zero_op)op, ZERO_ALL_UNITS);
        double mine = row->own.seconds, least, most;
        sum += mine;
        MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        assert_all(row->least == least && row->most == most);
    }
    assert_all(is_near(sum, sum_of_classes(p, ZERO_PROGRAM_STEP)));
    zero_profile_ranks_destroy(&ranks);
    test_run_close(&run);
}

TEST(units_that_differ_in_a_number_are_one_kind)
{
    zero_unit units[] = {{.name = "in"},      {.name = "layer 1"}, {.name = "layer 12"},
                         {.name = "layer_3"}, {.name = "fc2"},     {.name = "2"},
                         {.name = "layers"},  {.name = "fc1"}};
    const char *const kinds[] = {"in", "layer", "layer",  "layer",
                                 "fc", "2",     "layers", "fc"};
    zero_model model = {.units = units, .n_units = 8};
    zero_profile p;
    all_ok(zero_profile_init(&p, &model));
    assert_all(p.n_columns == 6);
    for (int u = 0; u < model.n_units; u++) {
        char kind[ZERO_UNIT_NAME];
        zero_profile_kind(&p, p.column_of[u], kind);
        assert_all(strcmp(kind, kinds[u]) == 0);
    }
    zero_profile_destroy(&p);
}
