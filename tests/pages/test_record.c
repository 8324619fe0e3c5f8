#include "small_run.h"

#include "base/fail.h"
#include "pages/run.h"
#include "support/laws.h"
#include "support/table.h"

#define PATH "small.jsonl"

static zero_status parse(zero_run *run, const char *text)
{
    return zero_run_parse(run, PATH, text, strlen(text));
}

static zero_run parsed(const char *text)
{
    zero_run run;
    assert_ok(parse(&run, text));
    return run;
}

/* ---- what a whole file says ---- */

TEST(the_first_line_is_in_the_tree)
{
    zero_run r = parsed(SMALL_FILE);
    LAWS(r.tree, "run/ranks == 2", "!run/nodes/fake", "run/model/name == \"tiny\"",
         "path == \"small.jsonl\"", "more/name == \"small.jsonl\"",
         "run/config/steps == 4");
    zero_run_destroy(&r);
}

TEST(a_long_program_has_its_peak_although_it_is_left_out)
{
    char law[80];
    zero_run r = parsed(SMALL_FILE);
    LAWS(r.tree, "count(more/program) == 3", "more/program/0/number == 1",
         "more/program/1/number == 3", "more/program/2/number == 5",
         "more/program/1/name == \"BACKWARD head\"", "more/program/1/bytes == 100",
         "first(more/program, number == run/schedule/peak)/number == 3",
         "more/program/0/bytes == 10");
    snprintf(law, sizeof law, "more/program/1/live/%d == 90", ZERO_CLASS_ACTIVATIONS);
    LAWS(r.tree, law);
    zero_run_destroy(&r);
}

TEST(steps_have_their_numbers_and_null_is_nan)
{
    zero_run r = parsed(SMALL_FILE);
    assert_int_equal(r.n, 4);
    assert_true(r.steps[ZERO_STEP_LOSS][0] == 5.5 && r.steps[ZERO_STEP_TOKENS][0] == 64.0);
    assert_true(isnan(r.steps[ZERO_STEP_LOSS][1]) && r.steps[ZERO_STEP_SKIPPED][1] == 1.0);
    assert_true(r.steps[ZERO_STEP_VAL_LOSS][2] == 4.75);
    assert_true(isnan(r.steps[ZERO_STEP_VAL_LOSS][3]) &&
                r.steps[ZERO_STEP_SKIPPED][3] == 0.0);
    assert_true(r.steps[ZERO_STEP_EXPOSED][3] == 0.125 &&
                r.steps[ZERO_STEP_ELAPSED][3] == 1.5);
    zero_run_destroy(&r);
}

TEST(the_last_line_has_the_ledgers)
{
    zero_run r = parsed(SMALL_FILE);
    LAWS(r.tree, "ended", "!cut", "count(memory) == 2", "memory/1/planned_bytes == 90",
         "memory/1/measured_bytes == 91", "!memory/1/equal", "memory/0/equal",
         "count(host_memory) == 1", "host_memory/0/measured_bytes == 6", "count(file) == 1",
         "file/0/planned_bytes_written == 12", "file/0/bytes_written == 22",
         "count(communication) == 3", "communication/2/collective == \"control\"",
         "communication/2/bytes_sent == 7", "communication/2/messages_sent == 9",
         "communication/2/all_bytes_sent == 100",
         "communication/0/bytes_sent_across_nodes == 40",
         "communication/0/hidden_share == 0.75", "count(profile) == 3",
         "profile/1/unit == \"block\"", "count(more/ledgers) == 3",
         "more/ledgers/2/rows/1/name == \"optimizer states written\"");
    zero_run_destroy(&r);
}

/* ---- figures ---- */

TEST(figures_are_those_of_all_ranks)
{
    zero_run r = parsed(SMALL_FILE);
    LAWS(r.tree, "figures/of_all_ranks", "figures/loss == 4.25", "figures/step == 4",
         "figures/val_loss == 4.75", "figures/val_step == 3", "figures/step_seconds == 0.5",
         "figures/steps_that_count == 1", "figures/tokens_per_second == 128",
         "figures/compute == 1.25 / 2", "figures/exposed == 0.5 / 2",
         "figures/waited == figures/exposed", "figures/imbalance == 1.5 / 1.25 - 1",
         "figures/overlap == 0.75", "figures/peak_bytes == 101");
    zero_run_destroy(&r);
}

TEST(an_older_file_has_the_figures_of_rank_0)
{
    char *text = small_file_with(SMALL_FILE, "\"rank_seconds\"", "\"unknown\"");
    zero_run r = parsed(text);
    LAWS(r.tree, "!figures/of_all_ranks", "!final/rank_seconds",
         "figures/exposed == 0.25",       /* of the lines of the steps */
         "figures/compute == 0.75 / 2",   /* FORWARD without its polls */
         "figures/overlap == 1 - 1 / 4"); /* two collectives */
    assert_true(json_is_null(zero_fact_at(r.tree, "figures/imbalance")));
    zero_run_destroy(&r);
    free(text);
}

/* Nothing was sent, whatever the bookkeeping of collectives took; and the page says so. */
TEST(one_rank_hides_nothing)
{
    const char *changes[][2] = {{"\"ranks\": 2, \"tp\"", "\"ranks\": 1, \"tp\""},
                                {"\"ranks\": 2, \"memory\"", "\"ranks\": 1, \"memory\""},
                                {"\"peers\"", "\"others\""},
                                {"\"rank_seconds\"", "\"unknown\""},
                                {"\"bytes_sent\": 100", "\"bytes_sent\": 0"},
                                {"\"bytes_received\": 101", "\"bytes_received\": 0"}};
    char *text = strdup(SMALL_FILE);
    for (size_t i = 0; i < COUNT(changes); i++) {
        char *next = small_file_with(text, changes[i][0], changes[i][1]);
        free(text);
        text = next;
    }
    zero_run r = parsed(text);
    assert_true(json_is_null(zero_fact_at(r.tree, "figures/overlap")));
    assert_true(json_is_null(zero_fact_at(r.tree, "communication/0/hidden_share")));
    LAWS(r.tree, "communication/1/hidden_share == 0.75");
    zero_run_destroy(&r);
    free(text);
}

/* ---- what is not there is said ---- */

static bool says(const zero_run *r, const char *text)
{
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(r->tree, "notes"), i, note)
    {
        if (strstr(json_string_value(note), text)) return true;
    }
    return false;
}

TEST(a_whole_run_needs_no_notes)
{
    zero_run r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_FINAL);
    LAWS(r.tree, "count(notes) == 0");
    zero_run_destroy(&r);
}

TEST(skipped_steps_and_losses_that_are_not_finite_are_said)
{
    zero_run r = parsed(SMALL_FILE);
    assert_true(says(&r, "the loss of 1 step is not finite, first that of step 2"));
    assert_true(says(&r, "1 step was skipped"));
    zero_run_destroy(&r);
}

TEST(a_killed_run_has_its_steps_and_says_that_the_end_is_missing)
{
    zero_run r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "")
                            SMALL_STEP(2, 5.25, "") "{\"step\": 3, \"lo");
    assert_int_equal(r.n, 2);
    assert_true(says(&r, "after step 2 of 4"));
    assert_true(says(&r, "half a line"));
    LAWS(r.tree, "!ended", "cut", "figures/loss == 5.25", "figures/exposed == 0.25");
    assert_true(json_is_null(zero_fact_at(r.tree, "figures/compute")));
    zero_run_destroy(&r);
}

TEST(steps_that_were_taken_twice_count_once)
{
    char *again = small_file_with(SMALL_RUN, "\"resumed_step\": 0", "\"resumed_step\": 1");
    char text[8192];
    snprintf(text, sizeof text, "%s%s%s",
             SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_STEP(2, 5.0, ""), again,
             SMALL_STEP(2, 3.5, "") SMALL_FINAL);
    zero_run r = parsed(text);
    assert_int_equal(r.n, 2);
    assert_true(r.steps[ZERO_STEP_LOSS][1] == 3.5);
    LAWS(r.tree, "ended");
    assert_true(says(&r, "resumed after step 1"));
    assert_true(says(&r, "shares are of the steps since"));
    zero_run_destroy(&r);
    free(again);
}

TEST(a_file_of_two_runs_says_that_the_last_one_counts)
{
    char text[8192];
    snprintf(text, sizeof text, "%s%s", SMALL_FILE, SMALL_RUN SMALL_STEP(1, 2.5, ""));
    zero_run r = parsed(text);
    assert_int_equal(r.n, 1);
    assert_true(r.steps[ZERO_STEP_LOSS][0] == 2.5);
    LAWS(r.tree, "!ended");
    assert_true(says(&r, "first lines of 2 runs"));
    zero_run_destroy(&r);
}

TEST(lost_lines_are_added_up_and_gaps_are_counted)
{
    zero_run r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_STEP(
        4, 5.0, ", \"lost_lines\": 2") SMALL_STEP(6, 5.0, ", \"lost_lines\": 1"));
    LAWS(r.tree, "lost_lines == 3");
    assert_true(says(&r, "3 lines could not be written"));
    assert_true(says(&r, "3 steps between the first and the last have no line"));
    zero_run_destroy(&r);
}

TEST(a_file_without_its_first_line_is_read_and_says_so)
{
    zero_run r = parsed(SMALL_STEPS SMALL_FINAL);
    LAWS(r.tree, "!run", "!more/program",
         "!first(more/program, number == run/schedule/peak)");
    assert_true(says(&r, "does not say what its run was"));
    zero_run_destroy(&r);
}

TEST(keys_of_newer_versions_are_ignored)
{
    static const char *const more[][2] = {
        {"\"stage\": 3, \"dtype\"", "\"stage\": 3, \"new\": [1], \"dtype\""},
        {"\"lr\": 0.001", "\"lr\": 0.001, \"new\": {}"},
        {"\"digest\"", "\"new\": null, \"digest\""},
        {"\"collectives\": \"shm\", \"reduce\"", "\"new\": 7, \"reduce\""},
        {"\"step\": {\"least\"", "\"new\": {\"ranks\": 7}, \"step\": {\"least\""},
    };
    for (size_t i = 0; i < COUNT(more); i++) {
        char *text = small_file_with(SMALL_FILE, more[i][0], more[i][1]);
        zero_run r = parsed(text);
        assert_int_equal(r.n, 4);
        zero_run_destroy(&r);
        free(text);
    }
}

/* ---- damage ---- */

/* Rows: what becomes something else, and what; the line and the words of the message. */
TEST(damage_is_refused_with_its_line_and_what_was_expected)
{
    for (test_table t = table_open("pages/damage.txt"); table_next(&t);) {
        zero_run r;
        char *text = small_file_with(SMALL_FILE, t.field[0], t.field[1]);
        assert_fails(parse(&r, text), ZERO_ERR_FORMAT, PATH);
        assert_told(t.field[2]);
        assert_told(t.field[3]);
        free(text);
    }
}

TEST(what_is_no_file_is_refused)
{
    zero_run r;
    assert_int_equal(zero_run_read(&r, "nosuch.jsonl"), ZERO_ERR_IO);
    assert_int_equal(parse(&r, ""), ZERO_ERR_FORMAT);
    assert_fails(parse(&r, SMALL_RUN), ZERO_ERR_FORMAT, "no line of a step");
}
