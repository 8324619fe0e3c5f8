/* The line on a terminal fits its window, says true things in few words, and loses the least important
 * ones first. The time left is the sum of what is left to do. */

#include "support/test.h"

#include "report/live.h"

static const zero_live example = {.step = 1240,
                                  .steps = 4000,
                                  .has_step = true,
                                  .loss = 2.9812,
                                  .seconds = 0.0514,
                                  .tokens_per_second = 9911.0,
                                  .compute = 0.0382,
                                  .exposed = 0.0109,
                                  .has_val_loss = true,
                                  .val_loss = 3.0231,
                                  .left = 141.0,
                                  .saved = 1200};

static void expect(const zero_live *live, int width, const char *line)
{
    char text[ZERO_LIVE_TEXT];
    size_t length = zero_live_text(live, width, text);
    assert_string_equal(text, line);
    assert_int_equal(length, strlen(line));
}

TEST(a_wide_window_has_all_parts)
{
    expect(&example, 200,
           "step 1240/4000  31% [######              ]  loss 2.981 (val 3.02)  9.9k tok/s"
           "  51 ms: 38 compute 11 exposed  left 2 min 21 s  saved 1200");
}

TEST(a_narrow_window_loses_the_least_important_parts_first)
{
    expect(
        &example, 80,
        "step 1240/4000  31%  loss 2.981 (val 3.02)  9.9k tok/s  51 ms  left 2 min 21 s");
    expect(&example, 60, "step 1240/4000  31%  loss 2.981  left 2 min 21 s");
    expect(&example, 40, "step 1240/4000  left 2 min 21 s");
    expect(&example, 20, "step 1240/4000");
    expect(&example, 10, "");
    expect(&example, 1, "");
    expect(&example, 0, "");
}

/* Numbers as large as they get, too. */
TEST(no_line_reaches_the_last_column)
{
    zero_live long_run = example;
    long_run.step = long_run.steps = long_run.saved = INT64_C(999999999999);
    long_run.loss = long_run.val_loss = -1.234e300;
    long_run.seconds = long_run.compute = long_run.exposed = 1e9;
    long_run.tokens_per_second = 1e18;
    long_run.left = INFINITY;
    const zero_live *const lives[] = {&example, &long_run};
    for (size_t i = 0; i < 2; i++) {
        size_t before = 0;
        for (int width = 0; width <= 300; width++) {
            char text[ZERO_LIVE_TEXT];
            size_t length = zero_live_text(lives[i], width, text);
            assert_true(length < (size_t)width || length == 0);
            assert_true(length >= before); /* a wider window never shows less */
            before = length;
            for (size_t k = 0; k < length; k++) assert_in_range(text[k], ' ', '~');
        }
        assert_true(before > 80);
    }
}

TEST(unknown_numbers_are_left_out)
{
    zero_live begin = {.steps = 40, .left = NAN, .saved = -1};
    expect(&begin, 80, "step 0/40   0%");
    begin.step = begin.saved = 20;
    expect(&begin, 80, "step 20/40  50%  saved 20");
    zero_live queued = example;
    queued.compute = queued.exposed = NAN;
    queued.has_val_loss = false;
    queued.loss = NAN;
    expect(&queued, 100,
           "step 1240/4000  31%  loss nan  9.9k tok/s  51 ms  left 2 min 21 s  saved 1200");
}

static void part_of(const zero_live *live, const char *part)
{
    char text[ZERO_LIVE_TEXT];
    zero_live_text(live, ZERO_LIVE_TEXT, text);
    if (!strstr(text, part)) fail_msg("expected '%s' in '%s'", part, text);
}

TEST(numbers_of_all_sizes_are_short)
{
    static const struct {
        double seconds;
        const char *left;
    } times[] = {{0.0, "left 0 s"},          {59.4, "left 59 s"},
                 {59.6, "left 1 min 0 s"},   {3599.0, "left 59 min 59 s"},
                 {3600.0, "left 1 h 0 min"}, {86399.0, "left 23 h 59 min"},
                 {90000.0, "left 1 d 1 h"},  {1e30, "left 999 d 0 h"}};
    static const struct {
        double rate;
        const char *tokens;
    } rates[] = {{7.4, " 7 tok/s"},       {999.4, " 999 tok/s"},  {999.6, " 1.0k tok/s"},
                 {9949.0, " 9.9k tok/s"}, {9951.0, " 10k tok/s"}, {999600.0, " 1.0M tok/s"},
                 {2.5e9, " 2.5G tok/s"}};
    static const struct {
        double seconds;
        const char *step;
    } steps[] = {{0.00342, " 3.42 ms: 1.71 compute 0.34 exposed"},
                 {0.0514, " 51 ms: 26 compute 5 exposed"},
                 {9.9, " 9900 ms: 4950 compute 990 exposed"},
                 {12.34, " 12.3 s: 6.2 compute 1.2 exposed"}};
    zero_live live = example;
    for (size_t i = 0; i < COUNT(times); i++) {
        live.left = times[i].seconds;
        part_of(&live, times[i].left);
    }
    for (size_t i = 0; i < COUNT(rates); i++) {
        live.tokens_per_second = rates[i].rate;
        part_of(&live, rates[i].tokens);
    }
    for (size_t i = 0; i < COUNT(steps); i++) {
        live.seconds = steps[i].seconds;
        live.compute = 0.5 * live.seconds;
        live.exposed = 0.1 * live.seconds;
        part_of(&live, steps[i].step);
    }
}

/* ---- how long it still takes ---- */

TEST(what_is_due_is_counted)
{
    for (int64_t last = 1; last <= 12; last++)
        for (int64_t step = 0; step <= last; step++)
            for (int64_t every = 0; every <= 13; every++)
                for (int at_end = 0; at_end < 2; at_end++) {
                    int64_t n = 0;
                    for (int64_t k = step + 1; k <= last; k++)
                        n += (every > 0 && k % every == 0) || (at_end && k == last);
                    assert_int_equal(zero_live_due(step, last, every, at_end), n);
                }
}

TEST(the_time_left_is_that_of_steps_evaluations_and_saves)
{
    zero_live_times times = {0};
    zero_live_rest rest = {.steps = 100};
    assert_true(isnan(zero_live_left(&times, &rest)));
    zero_live_add_step(&times, 3.0);
    assert_true(zero_live_left(&times, &rest) == 300.0);
    /* A slow first step does not count for long. */
    for (int i = 0; i < 2; i++) zero_live_add_step(&times, 1.0);
    assert_true(zero_live_left(&times, &rest) == 100.0);
    /* They cost nothing before one was measured. */
    rest.evaluations = 5;
    rest.saves = 2;
    assert_true(zero_live_left(&times, &rest) == 100.0);
    times.evaluations = 6.0;
    times.n_evaluations = 3;
    times.saves = 8.0;
    times.n_saves = 2;
    assert_true(zero_live_left(&times, &rest) == 100.0 + 10.0 + 8.0);
    /* By the clock: after 50 s and 100 s. */
    rest.save_seconds = 50.0;
    assert_true(zero_live_left(&times, &rest) == 118.0 + 8.0);
}

TEST(only_the_last_steps_count)
{
    zero_live_times times = {0};
    zero_live_rest rest = {.steps = 1};
    for (int i = 0; i < 1000; i++) zero_live_add_step(&times, 7.0);
    for (int i = 0; i < ZERO_LIVE_STEPS / 2 + 1; i++) zero_live_add_step(&times, 2.0);
    assert_true(zero_live_left(&times, &rest) == 2.0);
}
