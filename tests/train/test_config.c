

#include "support/test.h"

#include "train/config.h"

static int n_models(void)
{
    int n;
    zero_model_presets(&n);
    return n;
}

static const char *model_name(int i)
{
    int n;
    return zero_model_presets(&n)[i].name;
}

/* Options that the user did not give, as option_table.c leaves them. */
static zero_config nothing_said(const char *model)
{
    return (zero_config){.model = model,
                         .steps = -1,
                         .lr = -1.0,
                         .lr_min = -1.0,
                         .warmup = -1,
                         .eval_every = -1,
                         .sample = -1,
                         .seed = 1337};
}

static zero_config with_batch(int64_t global, int64_t micro)
{
    zero_config c = nothing_said("tiny");
    c.global_batch = global;
    c.plan.micro_batch = micro;
    return c;
}

static void refused(zero_config *c, int n_ranks, const char *part)
{
    assert_fails(zero_config_complete(c, n_ranks), ZERO_ERR_INVALID, part);
}

/* Every batch of up to 40 sequences on up to 17 ranks. */
TEST(a_batch_is_ranks_times_micro_batch_times_accumulation)
{
    for (int n = 1; n <= 17; n++) {
        for (int64_t global = 1; global <= 40; global++) {
            for (int64_t micro = 1; micro <= 9; micro++) {
                zero_config c = with_batch(global, micro);
                zero_status st = zero_config_complete(&c, n);
                assert_int_equal(st == ZERO_OK, global % (micro * n) == 0);
                if (st != ZERO_OK) continue;
                assert_true(c.global_batch == global && c.plan.micro_batch == micro);
                assert_true(n * micro * c.plan.accumulation == global);
            }
        }
    }
}

TEST(one_batch_size_alone_gives_the_other_without_accumulation)
{
    for (int n = 1; n <= 17; n++) {
        for (int64_t size = 1; size <= 40; size++) {
            zero_config global = with_batch(size, 0), micro = with_batch(0, size);
            assert_int_equal(zero_config_complete(&global, n) == ZERO_OK, size % n == 0);
            assert_ok(zero_config_complete(&micro, n));
            assert_true(micro.global_batch == size * n && micro.plan.accumulation == 1);
            if (size % n != 0) continue;
            assert_true(global.plan.micro_batch == size / n &&
                        global.plan.accumulation == 1);
        }
    }
}

TEST(without_a_batch_the_preset_decides_on_usual_numbers_of_ranks)
{
    const int counts[] = {1, 2, 3, 4, 6, 8};
    for (int m = 0; m < n_models(); m++) {
        for (size_t i = 0; i < COUNT(counts); i++) {
            zero_config c = nothing_said(model_name(m));
            assert_ok(zero_config_complete(&c, counts[i]));
            assert_true(c.plan.accumulation == 1 &&
                        c.global_batch == c.plan.micro_batch * counts[i]);
        }
    }
    zero_config two = nothing_said("tiny"), four = two;
    assert_ok(zero_config_complete(&two, 2));
    assert_ok(zero_config_complete(&four, 4));
    assert_true(two.global_batch == four.global_batch); /* one job on any machine */
}

/* A power of two of microbatches whose size depends on the global batch alone. */
TEST(a_reproducible_batch_is_cut_alike_on_all_powers_of_two)
{
    for (int64_t global = 0; global <= 192; global += 8) { /* 0: the preset's */
        zero_config one = with_batch(global, 0);
        one.plan.reproducible = true;
        assert_ok(zero_config_complete(&one, 1));
        for (int n = 2; n <= 8; n *= 2) {
            zero_config c = with_batch(global, 0);
            c.plan.reproducible = true;
            assert_ok(zero_config_complete(&c, n));
            assert_true(c.plan.micro_batch == one.plan.micro_batch);
            assert_true(c.global_batch == one.global_batch);
            assert_true((c.plan.accumulation & (c.plan.accumulation - 1)) == 0);
        }
    }
    for (int m = 0; m < n_models(); m++) { /* the preset's micro batch, where it has one */
        zero_config open = nothing_said(model_name(m)), fixed = open;
        fixed.plan.reproducible = true;
        fixed.global_batch = 128;
        assert_ok(zero_config_complete(&open, 8));
        assert_ok(zero_config_complete(&fixed, 8));
        assert_true(!open.grows_with_ranks ||
                    fixed.plan.micro_batch == open.plan.micro_batch);
    }
}

TEST(a_batch_that_does_not_work_out_is_refused_with_all_numbers)
{
    zero_config c = with_batch(24, 4);
    refused(&c, 5, "--global-batch 24 is not a multiple of --micro-batch 4 x 5 ranks = 20");
    c = with_batch(24, 0); /* no micro batch helps: the nearest are multiples of 5 */
    refused(&c, 5, "x 5 ranks = 5: give a global batch of 20 or 25");
    assert_null(strstr(zero_last_error(), "another micro batch"));
    c = with_batch(30, 4);
    refused(&c, 5, "give a global batch of 20 or 40, or another micro batch");
    c = with_batch(3, 4);
    refused(&c, 1, "give a global batch of 4, or another");
}

TEST(a_step_has_at_most_so_many_microbatches)
{
    zero_config c = with_batch(3 * ZERO_CONFIG_ACCUMULATION, 1);
    assert_ok(zero_config_complete(&c, 3));
    assert_true(c.plan.accumulation == ZERO_CONFIG_ACCUMULATION);
    c = with_batch(3 * ZERO_CONFIG_ACCUMULATION + 3, 1);
    refused(&c, 3, "makes 65537 microbatches");
    c = with_batch(INT32_MAX, INT32_MAX); /* too large for any machine, but valid */
    assert_ok(zero_config_complete(&c, 1));
    c = with_batch(INT32_MAX, INT32_MAX);
    refused(&c, INT32_MAX, "is not a multiple");
}

TEST(every_preset_completes_everything)
{
    for (int m = 0; m < n_models(); m++) {
        zero_config c = nothing_said(model_name(m));
        assert_ok(zero_config_complete(&c, 2));
        assert_true(c.steps > 0 && c.global_batch > 0 && c.plan.micro_batch > 0 &&
                    c.plan.bucket > 0);
        assert_true(c.eval_every >= 0 && c.eval_batches > 0 && c.log_every > 0);
        assert_true(c.sample >= 0 && c.warmup >= 0 && c.warmup <= c.steps);
        assert_true(c.lr > 0.0 && fabs(c.lr_min - c.lr / 10.0) < 1e-12);
    }
}

/* GPT-3's table 2.1, at its sizes and between them. */
TEST(larger_presets_take_the_rate_of_the_nearest_published_size)
{
    static const struct {
        const char *model;
        double lr;
    } wanted[] = {{"paper-ddp-1.16b", 2e-4}, {"paper-nomp-2.5b", 1.6e-4},
                  {"paper-8b", 1.2e-4},      {"paper-nomp-10b", 1e-4},
                  {"paper-40b", 1e-4},       {"paper-60b", 0.6e-4},
                  {"gpt3-175b", 0.6e-4},     {"paper-1t", 0.6e-4}};
    for (size_t i = 0; i < COUNT(wanted); i++) {
        zero_config c = nothing_said(wanted[i].model);
        assert_ok(zero_config_complete(&c, 4));
        assert_true(c.lr == wanted[i].lr && c.steps == 100 && c.plan.micro_batch == 1);
    }
}

TEST(what_the_user_said_is_kept)
{
    zero_config c = nothing_said("gpt2");
    c.steps = 7;
    c.warmup = c.eval_every = c.sample = 0;
    c.eval_batches = c.log_every = 3;
    c.lr = c.lr_min = 0.0;
    c.plan.bucket = 64;
    assert_ok(zero_config_complete(&c, 3));
    assert_true(c.steps == 7 && c.warmup == 0 && c.eval_every == 0 && c.sample == 0);
    assert_true(c.eval_batches == 3 && c.log_every == 3 && c.plan.bucket == 64);
    assert_true(c.lr == 0.0 && c.lr_min == 0.0);
}

TEST(completing_twice_changes_nothing)
{
    for (int m = 0; m < n_models(); m++) {
        zero_config once = nothing_said(model_name(m)), twice;
        assert_ok(zero_config_complete(&once, 3));
        twice = once;
        assert_ok(zero_config_complete(&twice, 3));
        assert_memory_equal(&once, &twice, sizeof once);
    }
}

TEST(contradictions_are_refused)
{
    zero_config c = nothing_said("gpt3");
    refused(&c, 1, "--model gpt3: no such preset; there are tiny, gpt2");
    c = nothing_said("tiny");
    c.lr = 0.5;
    c.lr_min = 0.6;
    refused(&c, 1, "--lr-min 0.6 is above --lr 0.5");
    c = nothing_said("tiny");
    c.steps = 4;
    c.warmup = 5;
    refused(&c, 1, "--warmup 5 is longer than the run of --steps 4");
    c.warmup = 4;
    assert_ok(zero_config_complete(&c, 1));
}

TEST(the_shape_is_the_presets_changed_by_the_user)
{
    for (int m = 0; m < n_models(); m++) {
        zero_shape preset, shape;
        zero_config c = nothing_said(model_name(m));
        assert_ok(zero_model_preset(model_name(m), &preset));
        assert_ok(zero_config_shape(&c, 300, &shape));
        assert_true(shape.layers == preset.layers && shape.hidden == preset.hidden);
        assert_true(shape.heads == preset.heads && shape.seq == preset.seq);
        assert_true(shape.vocab == (preset.vocab > 0 ? preset.vocab : 300));
        assert_true(shape.seed == 1337 && shape.dropout == 0.0f);
        c.shape.layers = 1, c.shape.hidden = 2, c.shape.heads = 3, c.shape.seq = 4,
        c.shape.vocab = 5;
        c.dropout = 0.5;
        assert_ok(zero_config_shape(&c, 300, &shape));
        assert_true(shape.layers == 1 && shape.hidden == 2 && shape.heads == 3);
        assert_true(shape.seq == 4 && shape.vocab == 5 && shape.dropout == 0.5f);
    }
}

TEST(an_unknown_preset_leaves_the_shape_alone)
{
    zero_shape shape = {.layers = 42};
    zero_config c = nothing_said("gpt3");
    assert_int_equal(zero_config_shape(&c, 300, &shape), ZERO_ERR_INVALID);
    assert_true(shape.layers == 42);
}

/* ---- imported weights ---- */

static const zero_shape distilled = {
    .layers = 6, .hidden = 768, .heads = 12, .seq = 1024, .vocab = 50257};

static zero_config imported(zero_config c, zero_shape found, bool has_model)
{
    c.init_from = "weights";
    assert_ok(zero_config_take_shape(&c, &found, has_model));
    assert_ok(zero_config_complete(&c, 1));
    return c;
}

TEST(imported_weights_decide_what_the_user_left_open)
{
    zero_config c = imported(nothing_said("tiny"), distilled, false);
    assert_true(c.shape.layers == 6 && c.shape.hidden == 768 && c.shape.heads == 12);
    assert_true(c.shape.seq == 1024 && c.shape.vocab == 50257);
    assert_string_equal(c.model, "gpt2"); /* the nearest in size */
    assert_true(c.lr == 6e-4 && c.steps == 100 && c.plan.micro_batch == 4);
    c = nothing_said("tiny");
    c.shape.seq = 128;
    c = imported(c, distilled, false);
    assert_true(c.shape.seq == 128 && c.shape.layers == 6);

    /* A preset by its name decides, and so does a shape that was given. */
    c = imported(nothing_said("gpt2-medium"), distilled, true);
    assert_true(c.shape.layers == 0 && c.shape.vocab == 0);
    c = nothing_said("tiny");
    c.shape.hidden = 768;
    c = imported(c, distilled, false);
    assert_string_equal(c.model, "tiny");
    assert_true(c.shape.layers == 6 && c.shape.heads == 12);
}

TEST(heads_that_no_file_shows_are_not_guessed)
{
    zero_shape found = distilled;
    zero_config c = nothing_said("tiny");
    c.init_from = "weights";
    found.heads = 0;
    assert_fails(zero_config_take_shape(&c, &found, false), ZERO_ERR_INVALID,
                 "give --heads N");
    c.shape.heads = 12;
    c = imported(c, found, false);
    assert_true(c.shape.heads == 12 && c.shape.layers == 6);
    found = (zero_shape){.layers = 4, .hidden = 128, .seq = 64, .vocab = 512};
    c = imported(nothing_said("tiny"), found, false); /* the preset itself */
    assert_true(c.shape.heads == 0 && c.shape.layers == 4);
}

TEST(a_rate_for_random_weights_is_known_as_one)
{
    zero_config c = imported(nothing_said("tiny"), distilled, false);
    assert_true(zero_config_scratch_rate(&c) == 6e-4);
    c.lr = 1e-5;
    assert_true(zero_config_scratch_rate(&c) == 6e-4);
}
