/* --tp: defaults, groups, nodes, batches. */

#include "support/planned.h"
#include "support/test.h"

#include "train/config.h"

static const zero_shape shape = {
    .layers = 2, .hidden = 48, .heads = 12, .seq = 8, .vocab = 70};

static zero_config with_tp(int64_t ranks, int64_t slices)
{
    zero_config c = {.model = "tiny",
                     .steps = -1,
                     .lr = -1.0,
                     .lr_min = -1.0,
                     .warmup = -1,
                     .eval_every = -1,
                     .sample = -1,
                     .shape.heads = 12,
                     .shape.hidden = 48};
    c.tp = (zero_tp){.ranks = ranks, .slices = slices};
    return c;
}

static void said(const char *part)
{
    assert_told(part);
}

TEST(slices_left_open_are_as_many_as_ranks_or_4_for_reproducible_runs)
{
    const struct {
        int64_t ranks, heads;
        bool reproducible;
        int64_t slices;
    } cases[] = {
        {0, 12, false, 1}, {1, 12, false, 1}, {1, 12, true, 1}, {2, 12, false, 2},
        {2, 12, true, 4},  {4, 12, true, 4},  {8, 8, true, 8},  {3, 12, true, 3},
        {2, 6, true, 2}, /* 4 slices do not share 6 heads */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        zero_tp tp = {.ranks = cases[i].ranks};
        zero_tp_take_defaults(&tp, cases[i].reproducible, cases[i].heads);
        assert_int_equal(tp.slices, cases[i].slices);
        assert_true(tp.ranks >= 1);
        zero_tp given = {.ranks = 1, .slices = 8};
        zero_tp_take_defaults(&given, cases[i].reproducible, cases[i].heads);
        assert_int_equal(given.slices, 8);
    }
}

/* Every T and S up to 16: what is accepted can be cut for each of its ranks. */
TEST(what_is_accepted_can_be_cut)
{
    zero_model whole = built(&shape);
    for (int64_t T = 1; T <= 16; T++) {
        for (int64_t S = 1; S <= 16; S++) {
            zero_tp tp = {.ranks = T, .slices = S};
            int64_t each = S / T;
            bool is_complete = T == 1 || (each & (each - 1)) == 0;
            bool fits = S % T == 0 && is_complete && 12 % S == 0;
            assert_int_equal(zero_tp_check(&tp, &shape) == ZERO_OK, fits);
            for (int rank = 0; fits && rank < 2 * T; rank++) {
                zero_model made;
                const zero_model *part;
                assert_ok(zero_tp_cut(&tp, &whole, rank, &made, &part));
                assert_true((part == &whole) == (S == 1));
                assert_true(part->share.rank == rank % T && part->share.ranks == T);
                assert_true(T == 1 || part->n_params < whole.n_params);
                zero_model_destroy(&made);
            }
        }
    }
    zero_model_destroy(&whole);
}

TEST(a_vocabulary_has_a_word_for_each_slice)
{
    zero_shape few = shape;
    zero_tp tp = {.ranks = 4, .slices = 4};
    few.vocab = 3;
    assert_int_equal(zero_tp_check(&tp, &few), ZERO_ERR_INVALID);
    said("3 words");
}

/* rank = d*T + p: neighbours are a TP group, equal p are a ZeRO group. */
TEST(a_rank_has_a_place_in_both_groups)
{
    zero_layout world;
    zero_tp tp = {.ranks = 2, .slices = 2};
    assert_ok(zero_layout_init_blocks(&world, 12, 3));
    for (int rank = 0; rank < 12; rank++) {
        zero_tp_place place;
        assert_ok(zero_tp_find_place(&tp, 1, &world, rank, &place));
        assert_true(place.n_ranks == 6 && place.rank == rank / 2);
        assert_true(place.group.size == 2 && place.group.n_nodes == 1);
        assert_true(place.data.size == 6 && place.data.n_nodes == 3);
        for (int d = 0; d < 6; d++) assert_int_equal(place.data.node_of[d], d / 2);
        zero_tp_place_destroy(&place);
    }
    zero_layout_destroy(&world);
}

/* rank = s*N + d */
TEST(a_rank_of_a_pipeline_has_its_stage)
{
    zero_layout world;
    zero_tp tp = {.ranks = 1, .slices = 1};
    assert_ok(zero_layout_init_blocks(&world, 12, 4));
    for (int rank = 0; rank < 12; rank++) {
        zero_tp_place place;
        assert_ok(zero_tp_find_place(&tp, 3, &world, rank, &place));
        assert_true(place.n_ranks == 4 && place.rank == rank % 4 &&
                    place.stage == rank / 4);
        assert_true(place.data.size == 4 && place.stages.size == 3);
        assert_int_equal(place.stages.n_nodes, 3);
        zero_tp_place_destroy(&place);
    }
    zero_layout_destroy(&world);
}

TEST(a_tp_group_stays_on_its_node_unless_that_is_wanted)
{
    for (int nodes = 1; nodes <= 12; nodes++) {
        zero_layout world;
        assert_ok(zero_layout_init_blocks(&world, 12, nodes));
        for (int T = 1; T <= 12; T++) {
            zero_tp tp = {.ranks = T, .slices = T};
            bool is_whole = true;
            for (int r = 0; r < 12; r++)
                is_whole = is_whole && world.node_of[r] == world.node_of[r / T * T];
            assert_int_equal(zero_tp_check_nodes(&tp, &world) == ZERO_OK, is_whole);
            tp.across_nodes = true;
            assert_ok(zero_tp_check_nodes(&tp, &world));
        }
        zero_layout_destroy(&world);
    }
    zero_layout world;
    zero_tp tp = {.ranks = 4, .slices = 4};
    assert_ok(zero_layout_init_blocks(&world, 12, 2));
    assert_int_equal(zero_tp_check_nodes(&tp, &world), ZERO_ERR_INVALID);
    said("ranks 4 to 7");
    said("rank 6 on node 1");
    said("--tp-across-nodes");
    zero_layout_destroy(&world);
}

/* Global batch = N x micro batch x accumulation, with N = ranks / T. */
TEST(a_batch_is_dealt_to_the_zero_groups_ranks)
{
    for (int n = 1; n <= 12; n++) {
        for (int64_t T = 1; T <= 12; T++) {
            zero_config c = with_tp(T, 0), none = with_tp(1, 0);
            c.global_batch = none.global_batch = 24;
            c.plan.micro_batch = none.plan.micro_batch = 2;
            bool can_cut = 12 % T == 0 && n % T == 0;
            zero_status st = zero_config_complete(&c, n);
            if (!can_cut) {
                assert_int_equal(st, ZERO_ERR_INVALID);
                continue;
            }
            zero_status alone = zero_config_complete(&none, (int)(n / T));
            assert_int_equal(st, alone);
            if (st != ZERO_OK) continue;
            assert_true(c.plan.n_ranks == n / T &&
                        c.plan.accumulation == none.plan.accumulation);
        }
    }
}

TEST(numbers_that_do_not_work_out_are_named)
{
    zero_config c = with_tp(4, 0);
    assert_int_equal(zero_config_complete(&c, 6), ZERO_ERR_INVALID);
    said("--tp 4 does not divide 6 ranks (4 x 1 + 2)");
    said("start 4 or 8 ranks");
    c = with_tp(2, 0);
    c.global_batch = 5;
    c.plan.micro_batch = 1;
    assert_int_equal(zero_config_complete(&c, 8), ZERO_ERR_INVALID);
    said(
        "--global-batch 5 is not a multiple of --micro-batch 1 x 4 (8 ranks / --tp 2) = 4");
    c = with_tp(2, 6);
    assert_int_equal(zero_config_complete(&c, 8), ZERO_ERR_INVALID);
    said("--tp-slices 6 with --tp 2");
}

/* One digest for all T needs one micro batch and the same slices. */
TEST(a_reproducible_batch_is_cut_alike_for_all_tp)
{
    zero_config one = with_tp(1, 4);
    one.plan.reproducible = true;
    assert_ok(zero_config_complete(&one, 8));
    for (int64_t T = 2; T <= 4; T *= 2) {
        zero_config c = with_tp(T, 0);
        c.plan.reproducible = true;
        assert_ok(zero_config_complete(&c, 8));
        assert_true(c.tp.slices == 4 && c.plan.micro_batch == one.plan.micro_batch);
        assert_true(c.global_batch == one.global_batch);
    }
}
