/* The parts of ranks tile the whole model, whatever is cut and however; and which shares of a GPT-2
 * are refused. */
#include "support/gpt2_test.h"
#include "support/table.h"

#include "base/fail.h"
#include "nn/share.h"

#define RANKS 16

static void share_of(const zero_model *whole, int ranks, int rank, int slices,
                     zero_model *part)
{
    zero_status st = zero_model_share(whole, (zero_share){ranks, rank, slices}, part);
    assert_ok(st);
}

/* Marks the whole elements that a rank has, from its own elements `begin` to `end`; each once. */
static void mark_elements(const zero_tensor *t, unsigned char *seen)
{
    for (int64_t at = 0, end = t->rows * t->cols; at < end;) {
        zero_stretch run = zero_share_run(t, at, end);
        assert_true(run.local == at && run.n > 0 && run.n <= end - at);
        for (int64_t i = 0; i < run.n; i++) seen[run.whole + i]++;
        at += run.n;
    }
}

/* Runs found from whole elements are those found from local ones: over all of the tensor, asked
 * in pieces whose ends fall anywhere. */
static void check_other_way(const zero_tensor *t, int64_t piece)
{
    int64_t whole = t->whole_rows * t->whole_cols, found = 0;
    for (int64_t begin = 0; begin < whole; begin += piece) {
        int64_t end = begin + piece < whole ? begin + piece : whole;
        for (int64_t at = begin; at < end;) {
            zero_stretch run = zero_share_run_of_whole(t, at, end);
            if (run.n == 0) break;
            assert_true(run.whole >= at && run.whole + run.n <= end);
            zero_stretch back = zero_share_run(t, run.local, run.local + run.n);
            assert_true(back.whole == run.whole && back.n == run.n);
            found += run.n;
            at = run.whole + run.n;
        }
    }
    assert_true(found == t->rows * t->cols);
}

static void check_tensor(test_pool *pool, const zero_model *parts, int ranks, int i)
{
    const zero_tensor *first = &parts[0].tensors[i];
    int64_t n = first->whole_rows * first->whole_cols;
    unsigned char *seen = test_bytes(pool, n);
    memset(seen, 0, (size_t)n);
    for (int r = 0; r < ranks; r++) {
        mark_elements(&parts[r].tensors[i], seen);
        check_other_way(&parts[r].tensors[i], 37);
        check_other_way(&parts[r].tensors[i], n);
    }
    int times = zero_tensor_is_replicated(first) ? ranks : 1;
    for (int64_t k = 0; k < n; k++)
        if (seen[k] != times)
            fail_msg("element %d of '%s' is there %d times with %d ranks", (int)k,
                     first->name, seen[k], ranks);
}

/* Initial values, drawn run by run, are those of the whole tensor. */
static void check_initial_values(test_pool *pool, const zero_tensor *t, int number)
{
    int64_t n = t->whole_rows * t->whole_cols;
    float *whole = test_floats(pool, n), *run_values = test_floats(pool, n);
    zero_tensor_init(t, number, 7, 0, n, whole);
    for (int64_t at = 0, end = t->rows * t->cols; at < end;) {
        zero_stretch run = zero_share_run(t, at, end);
        zero_tensor_init(t, number, 7, run.whole, run.n, run_values);
        assert_same(run.n, run_values, whole + run.whole);
        at += run.n;
    }
}

static void check_groups(const zero_model *part)
{
    int64_t all = 0;
    for (int g = 0; g < part->n_groups; g++) {
        int64_t n = 0;
        for (int i = 0; i < part->groups[g].n_tensors; i++) {
            const zero_tensor *t = &part->tensors[part->groups[g].first_tensor + i];
            assert_true(t->offset == n);
            n += t->rows * t->cols;
        }
        assert_true(n == part->groups[g].n_params);
        all += n;
    }
    assert_true(all == part->n_params);
}

static void check_shares(test_pool *pool, const zero_shape *shape, int ranks, int slices)
{
    zero_model whole = built(shape), parts[RANKS];
    assert_ok(zero_shape_check_share(shape, ranks, slices));
    for (int r = 0; r < ranks; r++) {
        share_of(&whole, ranks, r, slices, &parts[r]);
        check_groups(&parts[r]);
    }
    for (int i = 0; i < whole.n_tensors; i++) check_tensor(pool, parts, ranks, i);
    for (int i = 0; i < whole.n_tensors; i++)
        check_initial_values(pool, &parts[ranks - 1].tensors[i], i);
    for (int r = 0; r < ranks; r++) zero_model_destroy(&parts[r]);
    zero_model_destroy(&whole);
}

TEST(shares_tile_the_model)
{
    static const int64_t words[] = {17, 64, 257, 1000, 5003};
    static const struct {
        int64_t hidden, heads;
        int ranks, slices;
    } cases[] = {{32, 8, 1, 8},  {32, 8, 2, 8},   {32, 8, 4, 8},   {32, 8, 8, 8},
                 {48, 12, 3, 3}, {48, 12, 3, 12}, {48, 12, 6, 12}, {36, 6, 2, 2},
                 {36, 6, 3, 6},  {32, 16, 16, 16}};
    for (size_t v = 0; v < COUNT(words); v++)
        for (size_t i = 0; i < COUNT(cases); i++) {
            void *pool;
            zero_shape shape = {.layers = 1,
                                .hidden = cases[i].hidden,
                                .heads = cases[i].heads,
                                .seq = 5,
                                .vocab = words[v]};
            assert_int_equal(test_pool_make(&pool), 0);
            check_shares(pool, &shape, cases[i].ranks, cases[i].slices);
            test_pool_free(&pool);
        }
}

/* Slices decide, not ranks: the words of slice s are the same for all numbers of ranks. */
TEST(slices_have_the_same_words_for_any_ranks)
{
    zero_shape shape = {.layers = 1, .hidden = 32, .heads = 8, .seq = 5, .vocab = 50257};
    zero_model whole = built(&shape);
    for (int ranks = 1; ranks <= 8; ranks *= 2)
        for (int r = 0; r < ranks; r++) {
            zero_model part;
            share_of(&whole, ranks, r, 8, &part);
            const zero_tensor *wte = &part.tensors[0];
            assert_true(wte->first == zero_share_row(50257, 8, 8 / ranks * r));
            assert_true(wte->first + wte->rows ==
                        zero_share_row(50257, 8, 8 / ranks * (r + 1)));
            assert_true(wte->first % 64 == 0);
            zero_model_destroy(&part);
        }
    zero_model_destroy(&whole);
}

/* ---- what is refused ---- */

static void expect_refusal(zero_shape shape, int ranks, int slices, const char *says)
{
    zero_status st = zero_shape_check_share(&shape, ranks, slices);
    if (st != ZERO_ERR_INVALID || !strstr(zero_last_error(), says))
        fail_msg("--tp %d --tp-slices %d: expected '%s', got %d: %s", ranks, slices, says,
                 (int)st, zero_last_error());
}

TEST(a_share_that_cannot_be_is_refused_with_the_numbers_and_a_remedy)
{
    zero_shape six = {.layers = 1, .hidden = 36, .heads = 6, .seq = 5, .vocab = 50};
    zero_shape few = {.layers = 1, .hidden = 64, .heads = 64, .seq = 5, .vocab = 17};
    expect_refusal(six, 4, 4, "6 heads");
    expect_refusal(six, 4, 4, "give --tp 3");
    expect_refusal(six, 7, 7, "give --tp 6");
    expect_refusal(six, 0, 1, "give --tp 1");
    expect_refusal(six, 2, 4, "--tp-slices 4 with --tp 2");
    expect_refusal(six, 2, 4, "give --tp-slices 2");
    expect_refusal(six, 1, 5, "give --tp-slices 3"); /* one rank has the whole tree */
    expect_refusal(six, 3, 4, "give --tp-slices 3");
    expect_refusal(six, 2, 1, "give --tp-slices 2");
    expect_refusal(few, 2, 32, "at most 17, the number of words");
    expect_refusal(few, 2, 32, "give --tp-slices 16");
    expect_refusal(few, 32, 32, "give --tp 16");
    zero_shape odd = {.kind = &zero_architectures[ZERO_LLAMA],
                      .layers = 1,
                      .hidden = 45,
                      .heads = 4,
                      .head_size = 10,
                      .inner = 8,
                      .seq = 31,
                      .vocab = 50};
    expect_refusal(odd, 4, 4, "--seq 31 times --hidden 45 numbers; give --hidden 48");
    odd.seq = 32;
    assert_ok(zero_shape_check_share(&odd, 4, 4));
    six.heads = 5;
    expect_refusal(six, 1, 1, "--hidden 36 is not a multiple of --heads 5");
}

/* 12 heads and 9 words: 1 rank in 1, 2, 3, 4, 6 slices; 2 in 2, 4; 3 in 3, 6; 4 in 4; 6 in 6. */
TEST(what_the_check_lets_pass_can_be_shared)
{
    int passed = 0;
    zero_shape shape = {.layers = 1, .hidden = 48, .heads = 12, .seq = 5, .vocab = 9};
    zero_model whole = built(&shape);
    for (int ranks = 1; ranks <= 14; ranks++)
        for (int slices = 1; slices <= 26; slices++) {
            zero_model part;
            if (zero_shape_check_share(&shape, ranks, slices) != ZERO_OK) continue;
            share_of(&whole, ranks, ranks - 1, slices, &part);
            zero_model_destroy(&part);
            passed++;
        }
    assert_int_equal(passed, 11);
    zero_model_destroy(&whole);
}

/* ZeRO, table 5: the degrees of ZeRO-100B, and of the baseline with as many heads as it had. */
TEST(the_papers_models_can_be_shared_as_the_paper_did)
{
    for (test_table t = table_open("nn/shared_in_the_paper.txt"); table_next(&t);) {
        zero_shape shape;
        assert_ok(zero_model_preset(t.field[0], &shape));
        const int ranks = atoi(t.field[1]), heads = atoi(t.field[2]);
        if (heads) shape.heads = heads;
        zero_status st = zero_shape_check_share(&shape, ranks, ranks);
        if (st != ZERO_OK) fail_msg("%s: %s", t.field[0], zero_last_error());
        zero_model whole = built(&shape), part;
        share_of(&whole, ranks, 1, ranks, &part);
        zero_model_destroy(&part);
        zero_model_destroy(&whole);
    }
}
