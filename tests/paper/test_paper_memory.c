/* Bytes of a device in the paper's terms, and figures 6 and 7 that follow from them. */

#include <jansson.h>

#include "base/fail.h"
#include "paper/paper_tree.h"
#include "sharding/formula.h"
#include "support/laws.h"

#define GB 1e9

static const zero_shape forty = {
    .layers = 50, .hidden = 8192, .heads = 32, .seq = 1024, .vocab = 50257};

#define CONFIGS 5 /* C1 to C5 */

/* Configuration i of table 3 for `forty`. */
static paper_setup config(int i)
{
    static const int stages[] = {1, 1, 2, 2, 2};
    static const paper_keep kept[] = {KEEP_WHOLE, KEEP_PIECE, KEEP_WHOLE, KEEP_PIECE,
                                      KEEP_IN_CPU};
    return (paper_setup){forty, 16, 25, 16, stages[i], true, kept[i], false};
}

static paper_setup c1(void)
{
    return config(0);
}

static bool near(double x, double expected, double tolerance)
{
    return fabs(x - expected) <= tolerance;
}

/* ---- the parts ---- */

/* The figures are worked out by hand from the sources' formulas. */
TEST(the_parts_are_those_of_the_formulas)
{
    paper_setup setup = c1();
    paper_memory m = memory_of(&setup);
    assert_true(near(m.states, 4.48 * 40690753536.0 / 16, 1.0));
    assert_true(m.checkpoints == 2.0 * 16 * 1024 * 8192 * 50);
    /* 10 + 24/16 + 5 32 1024 / (8192 16) = 12.75 bytes for each of b s h */
    assert_true(m.activations == 12.75 * 16 * 1024 * 8192);
    assert_true(near(m.logits, 6.0 * 16 * 1024 * 50257 / 16, 1.0));
    assert_true(m.buffers == 1e9);
    assert_true(m.all == m.states + m.checkpoints + m.activations + m.logits + m.buffers);
}

TEST(each_part_of_zero_r_changes_its_own_bytes)
{
    paper_setup setup = c1();
    paper_memory whole = memory_of(&setup), m;
    setup.keep = KEEP_PIECE;
    m = memory_of(&setup);
    assert_true(m.checkpoints == whole.checkpoints / 16 && m.states == whole.states);
    setup.keep = KEEP_IN_CPU;
    assert_true(memory_of(&setup).checkpoints == 0.0);
    setup = c1();
    setup.fused_buffer = true;
    m = memory_of(&setup);
    assert_true(m.buffers == 4.0 * 40690753536.0 / 16 && m.states == whole.states);
    setup = c1();
    setup.checkpoints = false;
    m = memory_of(&setup);
    assert_true(m.checkpoints == 0.0 && m.activations == 50 * whole.activations);
    setup.stage = 2;
    assert_true(memory_of(&setup).states < whole.states);
}

/* Section 3.1: "a 1.5B parameter model ... requires 6GB" for a fused buffer in fp32. */
TEST(the_fused_buffer_of_the_papers_example_has_6_gb)
{
    zero_shape shape = {
        .layers = 48, .hidden = 1600, .heads = 16, .seq = 1024, .vocab = 50257};
    paper_setup setup = {shape, 1, 64, 1, 1, true, KEEP_WHOLE, false};
    setup.fused_buffer = true;
    assert_true(near(memory_of(&setup).buffers / GB, 6.0, 0.3));
}

/* ---- what fits ---- */

static double all_with(paper_setup setup, int64_t batch, int64_t layers)
{
    setup.batch = batch;
    setup.shape.layers = layers;
    return memory_of(&setup).all;
}

TEST(one_more_of_what_fits_does_not)
{
    for (int i = 0; i < CONFIGS; i++)
        for (double limit = 16 * GB; limit < 90 * GB; limit *= 1.37) {
            paper_setup s = config(i);
            int64_t batch = most_of(&s, "batch", limit);
            int64_t layers = most_of(&s, "layers", limit);
            assert_true(batch > 0 && layers > 0);
            assert_true(all_with(s, batch, 50) <= limit);
            assert_true(all_with(s, batch + 1, 50) > limit);
            assert_true(all_with(s, 16, layers) <= limit);
            assert_true(all_with(s, 16, layers + 1) > limit);
        }
    paper_setup s = c1();
    assert_int_equal(most_of(&s, "batch", GB), 0);
    assert_int_equal(most_of(&s, "layers", GB), 0);
    assert_int_equal(most_of(&s, "batch", 1e30), 1 << 20);
}

/* ---- figure 6 ---- */

/* The rows of the data agree with table 3. */
TEST(rows_have_the_papers_configurations)
{
    static const char *const devices[] = {"fig6", "fig7"};
    for (int k = 0; k < 2; k++) {
        json_t *data = zero_paper_data(devices[k]), *row;
        size_t i;
        json_array_foreach(json_object_get(data, "rows"), i, row)
        {
            paper_setup s = setup_of_row(row), c = config((int)i % CONFIGS);
            assert_true(s.stage == c.stage && s.keep == c.keep && s.checkpoints);
            assert_true(s.n_ranks == 25 && s.model_parallel == 16);
            assert_int_equal(s.batch, k == 1 && i >= CONFIGS ? 32 : 16);
        }
        assert_int_equal(i, k == 0 ? CONFIGS : 2 * CONFIGS);
        json_decref(data);
    }
}

/* At its limit the paper's model fits by the formulas, too; but for C2 it leaves what a framework
 * keeps, 3 to 5 GB, and with one number for all kept back its size follows within 4 %. */
TEST(the_largest_models_are_near_the_papers_and_in_its_order)
{
    json_t *tree = tree_of("fig6");
    LAWS(tree, "all(cells, bytes_at_paper_size/all < 32e9 && ours > paper)",
         "all(cells, abs(left + bytes_at_paper_size/all - 32e9) <= 1)",
         "cells/1/left > 10e9 && cells/1/fit / cells/1/paper > 1.3",
         "all(cells, index == 1 || abs(left - 4e9) <= 1e9 && abs(fit / paper - 1) <= 0.04)",
         /* C1 < C3 < C2 < C4 < C5 */
         "cells/0/paper < cells/2/paper && cells/2/paper < cells/1/paper",
         "cells/1/paper < cells/3/paper && cells/3/paper < cells/4/paper",
         "cells/0/ours < cells/2/ours && cells/2/ours < cells/1/ours",
         "cells/1/ours < cells/3/ours && cells/3/ours < cells/4/ours");
    json_decref(tree);
}

/* fp32 activations cost the plan some depth, never more than a factor of two. */
TEST(zeros_own_plan_is_made_where_it_can_be)
{
    json_t *data = zero_paper_data("fig6"), *tree = tree_of("fig6"), *row;
    size_t i;
    json_array_foreach(json_object_get(data, "rows"), i, row)
    {
        const json_t *cell = json_array_get(json_object_get(tree, "cells"), i);
        bool is_planned = json_object_get(cell, "plan") != NULL;
        assert_true(is_planned == (setup_of_row(row).keep != KEEP_IN_CPU));
        if (!is_planned) continue;
        double layers = zero_fact_number(cell, "plan_layers");
        assert_true(zero_fact_number(
                        cell, "plan_layers < layers && 2 * plan_layers > layers") == 1.0);
        zero_plan_fitted fitted;
        json_object_set_new(row, "layers", json_integer((json_int_t)layers));
        assert_ok(zero_paper_plan(row, 0, &fitted));
        assert_true((double)fitted.needed <= ZERO_PAPER_DEVICE);
        json_object_set_new(row, "layers", json_integer((json_int_t)layers + 1));
        assert_ok(zero_paper_plan(row, 0, &fitted));
        assert_true((double)fitted.needed > ZERO_PAPER_DEVICE);
    }
    json_decref(tree);
    json_decref(data);
}

/* ---- figure 7 ---- */

TEST(the_allocator_holds_more_than_is_alive)
{
    json_t *tree = tree_of("fig7");
    LAWS(tree, "all(cells, fits == (more > 1e9 && more < 11e9))",
         "all(cells, !fits || paper < 32e9)");
    json_decref(tree);
}

/* ---- what is shown ---- */

#define TEXT_SIZE 32768

TEST(a_terminal_shows_the_paper_beside_ours)
{
    char text[TEXT_SIZE];
    show("fig6", false, text, TEXT_SIZE);
    assert_fits_a_terminal(text);
    static const char *const six[] = {"40B    47.1B", "60B    94.6B", "50B    58.4B",
                                      "140B   159.1B", "150B   180.0B"};
    for (int i = 0; i < CONFIGS; i++) assert_non_null(strstr(text, six[i]));
    assert_non_null(strstr(text, "C2  10.70 GB left: 132 x 6144 was not the limit"));
    show("fig7", false, text, TEXT_SIZE);
    assert_fits_a_terminal(text);
    static const char *const seven[] = {
        "C1    29.7   27.8", "C2    24.1   15.3", "C3    25.5   23.0", "C4    19.8   10.4",
        "C5    19.8    9.5", "C4    29.6   25.7", "C5    26.6   21.6"};
    for (int i = 0; i < 7; i++) assert_non_null(strstr(text, seven[i]));
}

TEST(json_has_every_cell)
{
    static const char *const devices[] = {"fig6", "fig7"};
    for (int i = 0; i < 2; i++) {
        char text[TEXT_SIZE];
        show(devices[i], true, text, TEXT_SIZE);
        json_t *object = json_loads(text, 0, NULL);
        assert_non_null(object);
        LAWS(object,
             i == 0 ? "table == \"fig6\" && count(cells) == 5"
                    : "table == \"fig7\" && count(cells) == 10",
             i == 0 ? "sum(cells, paper > 0) == 5" : "sum(cells, paper > 0) == 7",
             "all(cells, ours > 9e9 && why)");
        json_decref(object);
    }
}
