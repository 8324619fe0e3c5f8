/* Bytes from rank to rank: what ranks count where it moves is what each has planned, in every stage,
 * by every algorithm, in shards of all ranks, by owners, over replicas and in TP groups. */
#include "engine/ranks.h"
#include "sharding/schedule_peers.h"
#include "support/engine_test.h"

typedef struct {
    zero_algorithm algorithm;
    int nodes;
} route;

static test_setup setup_of(int stage, route how)
{
    test_setup setup = test_standard;
    setup.shape.heads = 4;
    setup.fake_nodes = how.nodes;
    setup.eval_batches = 1;
    setup.plan.stage = stage;
    setup.plan.collectives = how.algorithm;
    setup.plan.micro_batch = 1;
    return setup;
}

static void blank(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                  void *targets)
{
    const zero_model *model = arg;
    (void)step, (void)i;
    memset(inputs, 0, (size_t)T * model->input_bytes);
    memset(targets, 0, (size_t)T * model->target_bytes);
}

static void walk(test_run *run, int steps)
{
    const zero_source source = {.sample = blank, .arg = &run->model};
    zero_step_input in = {.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
    zero_run_output out;
    double loss;
    for (in.step = 0; in.step < steps; in.step++)
        all_ok(zero_engine_step(&run->engine, &source, &in, &out));
    all_ok(zero_engine_evaluate(&run->engine, &source, &loss));
}

/* Rank 0 says which cells differ. */
static bool are_equal(const zero_rank_bytes *b)
{
    bool equal = true;
    for (int i = 0; i < b->n * b->n; i++) {
        if (b->planned[i] != b->sent[i] && test_rank == 0)
            print_error("from %d to %d: %lld sent, %lld planned\n", i / b->n, i % b->n,
                        (long long)b->sent[i], (long long)b->planned[i]);
        equal = equal && b->planned[i] == b->sent[i];
    }
    return equal;
}

static int64_t all_of(const zero_rank_bytes *b)
{
    int64_t sum = 0;
    for (int i = 0; i < b->n * b->n; i++) sum += b->sent[i];
    return sum;
}

static void expect_as_planned(const test_setup *setup)
{
    test_run run;
    zero_rank_bytes bytes;
    test_run_open(&run, setup, test_size);
    walk(&run, 2);
    all_ok(zero_rank_bytes_gather(&run.engine, &bytes));
    bool equal = are_equal(&bytes);
    if (!equal && test_rank == 0)
        print_error("%d ranks, %d nodes, stage %d, %s, shards over %d, TP groups of %d\n",
                    test_size, setup->fake_nodes, setup->plan.stage,
                    zero_algorithm_name(setup->plan.collectives), setup->plan.shard_ranks,
                    setup->tp);
    assert_all(equal && bytes.n == test_size);
    assert_all((all_of(&bytes) > 0) == (test_size > 1));
    zero_rank_bytes_destroy(&bytes);
    test_run_close(&run);
}

static const route routes[] = {{ZERO_ALGORITHM_P2P, 2},
                               {ZERO_ALGORITHM_SHM, 1},
                               {ZERO_ALGORITHM_HIER, 2},
                               {ZERO_ALGORITHM_HIER, 1},
                               {ZERO_ALGORITHM_MPI, 2}};
enum { ROUTES = COUNT(routes) };

TEST(every_rank_sends_each_other_what_was_planned)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int k = 0; k < ROUTES; k++) {
            if (routes[k].nodes > test_size) continue;
            test_setup setup = setup_of(stage, routes[k]);
            expect_as_planned(&setup);
            setup.plan.partition = ZERO_PARTITION_OWNER;
            expect_as_planned(&setup);
        }
}

TEST(replicas_and_shared_models_do_so_too)
{
    if (test_size % 2 != 0) return;
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int k = 0; k < ROUTES; k++) {
            bool is_even = test_size / routes[k].nodes % 2 == 0;
            if (!is_even) continue; /* pairs on several nodes have no common window */
            test_setup setup = setup_of(stage, routes[k]);
            setup.plan.shard_ranks = test_size > 2 ? 2 : 0;
            expect_as_planned(&setup);
            setup.plan.shard_ranks = 0;
            setup.tp = setup.slices = 2;
            setup.plan.recompute = true;
            setup.plan.partition_activations = 1;
            expect_as_planned(&setup);
        }
}

/* ---- seconds ---- */

TEST(the_parts_of_a_step_add_up_on_every_rank)
{
    test_run run;
    zero_rank_seconds s;
    test_setup setup = setup_of(3, routes[0]);
    if (test_size == 1) setup.fake_nodes = 1;
    test_run_open(&run, &setup, test_size);
    walk(&run, 3);
    all_ok(zero_rank_seconds_gather(&run.engine, &s));
    assert_all(s.n == test_size);
    for (int r = 0; r < s.n; r++) {
        const double *its = s.of_rank + (int64_t)r * ZERO_RANK_TIMES;
        double sum = its[ZERO_RANK_COMPUTE] + its[ZERO_RANK_EXCHANGE] +
                     its[ZERO_RANK_EXPOSED] + its[ZERO_RANK_WAITED] +
                     its[ZERO_RANK_TRANSFERS];
        assert_all(its[ZERO_RANK_COMPUTE] > 0.0);
        assert_all(fabs(sum - its[ZERO_RANK_STEP]) <= 1e-9 * its[ZERO_RANK_STEP]);
        assert_all(its[ZERO_RANK_AWAITED] <= its[ZERO_RANK_IN_FLIGHT]);
        for (int t = 0; t < ZERO_RANK_TIMES; t++)
            assert_all(s.least[t] <= its[t] && its[t] <= s.most[t]);
    }
    assert_all(s.most[ZERO_RANK_IN_FLIGHT] > 0.0 || test_size == 1);
    zero_rank_seconds_destroy(&s);
    test_run_close(&run);
}
