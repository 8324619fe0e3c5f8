/* The matrix of settings: with one microbatch per rank, stage, partition, collectives, bucket,
 * overlap, prefetch, persistence, recomputation and the size of messages change no bit of the result.
 *
 *     test_matrix               every pair of settings meets in some run, for each type; and a
 *                               few random combinations
 *     test_matrix COUNT SEED    COUNT random combinations
 *
 * Compared are all losses, norms, an evaluation, generated text and the digest of the states,
 * with those of stage 0 on the same ranks and with the same types. */
#define TEST_HAS_MAIN
#include "support/pairs.h"
#include "support/same_bits.h"

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

typedef struct {
    zero_type type, activations;
} types;

static const types kinds[] = {{ZERO_FP32, ZERO_FP32},
                              {ZERO_BF16, ZERO_FP32},
                              {ZERO_FP16, ZERO_FP32},
                              {ZERO_BF16, ZERO_BF16},
                              {ZERO_FP16, ZERO_FP16}};
enum { KINDS = COUNT(kinds) };

typedef struct {
    zero_comm comm[NODES]; /* the same ranks, on 1, 2 and 3 nodes */
    test_rounds rounds;
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
                                   .collectives = test_routes[c->at[COLLECTIVES]].algorithm,
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
    zero_comm *comm = &m->comm[test_routes[c->at[COLLECTIVES]].nodes - 1];
    test_setup setup = setup_of(c, kind, comm);
    test_run_open_on(&run, &setup, comm);
    test_outcome out = test_run_outcome(&run);
    assert_all(run.engine.adam_steps == TEST_STEPS);
    for (int step = 0; step < TEST_STEPS; step++) assert_all(out.norm[step] > setup.clip);
    test_run_close(&run);
    return out;
}

static void check(matrix *m, const pairs_choice *c, types kind, const test_outcome *want)
{
    test_outcome got = train(m, c, kind);
    test_setup setup =
        setup_of(c, kind, &m->comm[test_routes[c->at[COLLECTIVES]].nodes - 1]);
    test_expect_outcome(&setup, &got, want);
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

TEST(every_pair_of_settings_gives_the_bits_of_stage_0)
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

TEST(random_settings_give_the_bits_of_stage_0)
{
    matrix *m = *state;
    test_outcome want[KINDS];
    pairs p = pairs_of(m->rounds.seed, KINDS);
    for (int k = 0; k < KINDS; k++) want[k] = train(m, &(pairs_choice){{0}}, kinds[k]);
    for (int64_t i = 0; i < m->rounds.count; i++) {
        pairs_choice c = pairs_draw(&p);
        check(m, &c, kinds[i % KINDS], &want[i % KINDS]);
    }
}

int main(int argc, char **argv)
{
    matrix m = {.rounds = test_rounds_of(argc, argv, 200)};
    test_begin(&argc, &argv);
    around.state = &m;
    for (int k = 0; k < NODES; k++)
        test_split(test_size, k < test_size ? k + 1 : 1, &m.comm[k]);
    int failed = run_here(NULL, NULL);
    for (int k = 0; k < NODES; k++) zero_comm_destroy(&m.comm[k]);
    return test_end(failed);
}
