/* The matrix of settings: with one microbatch per rank, stage, partition, collectives, bucket,
 * overlap, prefetch, persistence, recomputation and the size of messages change no bit of the result.
 *
 *     test_matrix               every pair of settings meets in some run, for each type; and a
 *                               few random combinations
 *     test_matrix COUNT SEED    COUNT random combinations
 *
 * Compared are all losses, norms, an evaluation, generated text and the digest of the states,
 * with those of stage 0 on the same ranks and with the same types. */
#include "support/test.h"

#include "support/engine_test.h"
#include "support/pairs.h"

enum { NODES = 3 };

enum {
    STAGE,
    PARTITION,
    COLLECTIVES,
    BUCKET,
    OVERLAP,
    PREFETCH,
    PERSIST,
    RECOMPUTE,
    MESSAGE,
    AXES
};
_Static_assert(AXES <= (int)PAIRS_AXES, "pairs.h");
enum { WHOLE_MODEL, ODD, LEAST };

static const char *const names[AXES] = {"stage",   "partition", "collectives",
                                        "bucket",  "overlap",   "prefetch",
                                        "persist", "recompute", "message"};

static const struct {
    zero_algorithm algorithm;
    int nodes;
} routes[] = {{ZERO_ALGORITHM_P2P, 1},
              {ZERO_ALGORITHM_SHM, 1},
              {ZERO_ALGORITHM_HIER, 2},
              {ZERO_ALGORITHM_HIER, 3}};

typedef struct {
    zero_type type, activations;
} types;

static const types kinds[] = {{ZERO_FP32, ZERO_FP32},
                              {ZERO_BF16, ZERO_FP32},
                              {ZERO_FP16, ZERO_FP32},
                              {ZERO_BF16, ZERO_BF16},
                              {ZERO_FP16, ZERO_FP16}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

typedef struct {
    zero_comm comm[NODES]; /* the same ranks, on 1, 2 and 3 nodes */
    int64_t count;
    uint64_t seed;
} matrix;

static int axis_length(int axis)
{
    static const int lengths[AXES] = {4, 2, 4, 3, 2, 3, 3, 2, 3};
    if (axis == COLLECTIVES && test_size < NODES) return test_size + 1;
    return lengths[axis];
}

/* ---- one combination ---- */

/* The smallest bucket that is not refused. */
static int64_t least_bucket(const test_setup *setup, zero_comm *comm)
{
    zero_model model;
    assert_ok(zero_model_build(&setup->shape, &model));
    assert_ok(zero_model_activate(&model, setup->plan.activations));
    int64_t least = test_least_bucket(zero_engine_place(setup->plan, &model, comm));
    zero_model_destroy(&model);
    return least;
}

static test_setup setup_of(const pairs_choice *c, types kind, zero_comm *comm)
{
    static const int64_t prefetch[] = {0, 1, 1000}, persist[] = {0, 100, 1 << 30},
                         message[] = {0, ZERO_LEAST_MESSAGE, 1000};
    test_setup setup = test_standard;
    setup.shape = (zero_shape){.layers = 2,
                               .hidden = 16,
                               .heads = 2,
                               .seq = 8,
                               .vocab = 30,
                               .dropout = 0.1f,
                               .seed = 3};
    setup.eval_batches = 1;
    setup.lr = 1e-2;
    setup.clip = 0.05;
    setup.plan = (zero_plan_input){.stage = c->at[STAGE],
                                   .type = kind.type,
                                   .activations = kind.activations,
                                   .partition = (zero_partition_scheme)c->at[PARTITION],
                                   .micro_batch = 1,
                                   .accumulation = 1,
                                   .collectives = routes[c->at[COLLECTIVES]].algorithm,
                                   .serial = c->at[OVERLAP] == 1,
                                   .prefetch = prefetch[c->at[PREFETCH]],
                                   .persist = persist[c->at[PERSIST]],
                                   .recompute = c->at[RECOMPUTE] == 1,
                                   .message = message[c->at[MESSAGE]]};
    int64_t least = least_bucket(&setup, comm);
    const int64_t buckets[] = {
        [WHOLE_MODEL] = 1 << 20, [ODD] = least + 77, [LEAST] = least};
    setup.plan.bucket = buckets[c->at[BUCKET]];
    return setup;
}

/* Collective over the job, like all functions here. */
static test_outcome train(matrix *m, const pairs_choice *c, types kind)
{
    test_run run;
    zero_comm *comm = &m->comm[routes[c->at[COLLECTIVES]].nodes - 1];
    test_setup setup = setup_of(c, kind, comm);
    test_run_open_on(&run, &setup, comm);
    test_outcome out = test_run_outcome(&run);
    assert_all(run.engine.adam_steps == TEST_STEPS);
    for (int step = 0; step < TEST_STEPS; step++) assert_all(out.norm[step] > setup.clip);
    test_run_close(&run);
    return out;
}

static void describe(const pairs_choice *c, types kind)
{
    print_error("%s, activations %s, on %d ranks:", zero_type_name(kind.type),
                zero_type_name(kind.activations), test_size);
    for (int axis = 0; axis < AXES; axis++) print_error(" %s %d", names[axis], c->at[axis]);
    print_error(" gives other bits than stage 0\n");
}

static void check(matrix *m, const pairs_choice *c, types kind, const test_outcome *want)
{
    test_outcome got = train(m, c, kind);
    bool same = test_same_outcome(&got, want);
    if (!same && test_rank == 0) describe(c, kind);
    assert_all(same);
}

/* ---- choosing ---- */

/* All settings but the types, which others are compared within. */
static pairs pairs_of(uint64_t seed, int64_t sample)
{
    pairs p = {.axes = AXES,
               .rng = {.purpose = ZERO_RNG_TEST, .seed = seed, .sample = (uint64_t)sample}};
    for (int axis = 0; axis < AXES; axis++) p.length[axis] = axis_length(axis);
    return p;
}

static void every_pair_of_settings_gives_the_bits_of_stage_0(void **state)
{
    for (int k = 0; k < KINDS; k++) {
        const pairs_choice base = {{0}};
        pairs p = pairs_of(0, k);
        test_outcome want = train(*state, &base, kinds[k]);
        pairs_open(&p);
        pairs_met(&p, &base);
        for (pairs_choice c; pairs_next(&p, &c);) check(*state, &c, kinds[k], &want);
    }
}

static void random_settings_give_the_bits_of_stage_0(void **state)
{
    matrix *m = *state;
    test_outcome want[KINDS];
    pairs p = pairs_of(m->seed, KINDS);
    for (int k = 0; k < KINDS; k++) want[k] = train(m, &(pairs_choice){{0}}, kinds[k]);
    for (int64_t i = 0; i < m->count; i++) {
        pairs_choice c = pairs_draw(&p);
        check(m, &c, kinds[i % KINDS], &want[i % KINDS]);
    }
}

int main(int argc, char **argv)
{
    matrix m = {.count = 200, .seed = 1};
    test_begin(&argc, &argv);
    if (argc == 3) {
        m.count = strtoll(argv[1], NULL, 10);
        m.seed = strtoull(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_pair_of_settings_gives_the_bits_of_stage_0, &m),
        cmocka_unit_test_prestate(random_settings_give_the_bits_of_stage_0, &m),
    };
    for (int k = 0; k < NODES; k++)
        test_split(test_size, k < test_size ? k + 1 : 1, &m.comm[k]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int k = 0; k < NODES; k++) zero_comm_destroy(&m.comm[k]);
    return test_end(failed);
}
