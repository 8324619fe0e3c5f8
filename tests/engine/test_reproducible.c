/* Several microbatches per rank: the ways of adding them that give the same bits.
 *
 * A launch has one world size, so groups of its first 1, 2, 4 and 8 ranks train one after the
 * other. */
#include "support/same_bits.h"

enum { GLOBAL_BATCH = 8 }; /* microbatches */

/* Other settings change from run to run, too: none may matter. */
static test_setup setup_of(int n_ranks, int stage, zero_type type, bool reproducible)
{
    int variant = n_ranks + stage;
    const test_route route = test_routes[variant % 3];
    test_setup setup = test_standard;
    setup.shape = (zero_shape){
        .layers = 2, .hidden = 16, .heads = 2, .seq = 8, .vocab = 30, .dropout = 0.1f};
    setup.clip = 0.05;
    setup.eval_batches = 1;
    setup.fake_nodes = n_ranks > 1 ? route.nodes : 1;
    setup.plan = (zero_plan_input){
        .stage = stage,
        .type = type,
        .micro_batch = 1,
        .accumulation = GLOBAL_BATCH / n_ranks,
        .reproducible = reproducible,
        .partition = (zero_partition_scheme)(variant / 2 % 2),
        .collectives = route.algorithm,
        .bucket = variant % 2 == 0 ? 1 << 20 : 2048,
        .serial = variant % 4 == 1,
        .recompute = variant % 4 == 2,
        .prefetch = variant % 3,
        .persist = 100,
    };
    return setup;
}

TEST(without_it_the_bits_depend_on_the_world_size)
{
    test_setup one = setup_of(1, 0, ZERO_FP32, false),
               all = setup_of(8, 0, ZERO_FP32, false);
    test_outcome a = test_train(&one, 1), b = test_train(&all, 8);
    assert_all(!test_same_outcome(&a, &b));
    assert_all(fabs(a.norm[0] - b.norm[0]) < 1e-5 * a.norm[0]);
}

/* Stages 0 and 1 add the microbatches of a rank first; stages 2 and 3 add over ranks first. */
TEST(without_it_stages_0_and_1_agree_and_2_and_3)
{
    static const int ranks[] = {1, 2, 3, 4};
    for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
        for (size_t i = 0; i < COUNT(ranks); i++)
            for (int stage = 0; stage <= 2; stage += 2) {
                test_setup one = setup_of(ranks[i], stage, type, false);
                test_setup other = setup_of(ranks[i], stage + 1, type, false);
                test_outcome want = test_train(&one, ranks[i]);
                test_expect_same(&other, ranks[i], &want);
            }
}

/* One rank has only one order. */
TEST(without_it_stages_1_and_2_differ_on_several_ranks)
{
    for (int n = 1; n <= 2; n++) {
        test_setup one = setup_of(n, 1, ZERO_FP32, false);
        test_setup other = setup_of(n, 2, ZERO_FP32, false);
        test_outcome a = test_train(&one, n), b = test_train(&other, n);
        assert_all(test_same_outcome(&a, &b) == (n == 1));
        assert_all(fabs(a.norm[0] - b.norm[0]) < 1e-5 * a.norm[0]);
    }
}
