#include "support/test.h"

#include "small_run.h"

#include "base/fail.h"
#include "pages/run.h"

#define PATH "small.jsonl"

static zero_status parse(zero_run *run, const char *text)
{
    return zero_run_parse(run, PATH, text, strlen(text));
}

static zero_run parsed(const char *text)
{
    zero_run run;
    if (parse(&run, text) != ZERO_OK) fail_msg("%s", zero_last_error());
    return run;
}

/* Expressions over the tree (facts.h), each of which is true. */
static void check(const zero_run *run, const char *const *laws)
{
    for (; *laws; laws++) {
        zero_fact fact;
        zero_scope scope = {.node = run->tree};
        zero_status st = zero_fact_of(*laws, strlen(*laws), &scope, &fact);
        if (st != ZERO_OK || !zero_fact_is_true(&fact))
            fail_msg("%s: %s", *laws, st == ZERO_OK ? "is not so" : zero_last_error());
    }
}

#define LAWS(run, ...) check(run, (const char *const[]){__VA_ARGS__, NULL})

/* ---- what a whole file says ---- */

TEST(the_first_line_is_in_the_tree)
{
    zero_run r = parsed(SMALL_FILE);
    LAWS(&r, "run/ranks == 2", "!run/nodes/fake", "run/model/name == \"tiny\"",
         "path == \"small.jsonl\"", "more/name == \"small.jsonl\"", "more/wanted == 4");
    zero_run_destroy(&r);
}

TEST(a_long_program_has_its_peak_although_it_is_left_out)
{
    char law[80];
    zero_run r = parsed(SMALL_FILE);
    LAWS(&r, "count(more/program) == 3", "more/program/0/number == 1",
         "more/program/1/number == 3", "more/program/2/number == 5",
         "more/program/1/name == \"BACKWARD head\"", "more/program/1/bytes == 100",
         "more/peak/number == 3", "more/program/0/bytes == 10");
    snprintf(law, sizeof law, "more/program/1/live/%d == 90", ZERO_CLASS_ACTIVATIONS);
    LAWS(&r, law);
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
    LAWS(&r, "ended", "!cut", "count(memory) == 2", "memory/1/planned_bytes == 90",
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
    LAWS(&r, "figures/of_all_ranks", "figures/loss == 4.25", "figures/step == 4",
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
    LAWS(&r, "!figures/of_all_ranks", "!more/spent",
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
    LAWS(&r, "communication/1/hidden_share == 0.75",
         "more/numbers/3/why == \"One rank sends nothing that computing could hide.\"");
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
    LAWS(&r, "count(notes) == 0");
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
    LAWS(&r, "!ended", "cut", "figures/loss == 5.25", "figures/exposed == 0.25",
         "more/numbers/0/why == \"The metrics do not have it: the run did not end.\"");
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
    LAWS(&r, "ended");
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
    LAWS(&r, "!ended");
    assert_true(says(&r, "first lines of 2 runs"));
    zero_run_destroy(&r);
}

TEST(lost_lines_are_added_up_and_gaps_are_counted)
{
    zero_run r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_STEP(
        4, 5.0, ", \"lost_lines\": 2") SMALL_STEP(6, 5.0, ", \"lost_lines\": 1"));
    LAWS(&r, "lost_lines == 3");
    assert_true(says(&r, "3 lines could not be written"));
    assert_true(says(&r, "3 steps between the first and the last have no line"));
    zero_run_destroy(&r);
}

TEST(a_file_without_its_first_line_is_read_and_says_so)
{
    zero_run r = parsed(SMALL_STEPS SMALL_FINAL);
    LAWS(&r, "!run", "!more/program", "!more/peak");
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

/* `from` becomes `to`: the message names `line` and says `message`. */
static const struct {
    const char *from, *to, *line, *message;
} damage[] = {
    {"\"ranks\": 2, \"tp\"", "\"ranks\": 0, \"tp\"", "line 1", "from 1 to 1048576"},
    {"\"ranks\": 2, \"tp\"", "\"ranks\": \"2\", \"tp\"", "line 1", "found a text"},
    {"\"stage\": 3, \"dtype\"", "\"stage\": 4, \"dtype\"", "line 1", "0 to 3"},
    {"\"stage\": 3, \"dtype\"", "\"dtype\"", "line 1", "\"stage\" is missing"},
    {"bf16", "fp8", "line 1", "expected fp32, bf16 or fp16, found fp8"},
    {"bf16", "brainfloat16", "line 1", "at most 7 bytes"},
    {"\"count\": 1", "\"count\": 3", "line 1", "from 1 to 2"},
    {"\"fake\": false", "\"fake\": 0", "line 1", "true or false"},
    {"\"tiny\"", "7", "line 1", "expected a text"},
    {"\"parameters\": 300", "\"parameters\": -1", "line 1", "\"parameters\""},
    {"\"options\": {\"steps\": 4}", "\"options\": []", "line 1", "an object"},
    {"\"peak\": 3", "\"peak\": 6", "line 1", "from 1 to 5"},
    {"\"live\": [10, 90]", "\"live\": [1, 2]", "line 1", "and more at 1"},
    {"\"length\": 5", "\"length\": 6", "line 1", "expected 3, found 2"},
    {"\"parameters\", \"activations\"], \"length\"", "\"parameters\"], \"length\"",
     "line 1", "expected 1 numbers, found 2"},
    {"\"activations\"], \"length\"", "\"parameters\"], \"length\"", "line 1", "twice"},
    {"\"activations\"], \"length\"", "\"nonsense\"], \"length\"", "line 1",
     "found nonsense"},
    {"\"live\": [10, 0]", "\"live\": [10, -1]", "line 1", "instruction 1"},
    {"\"peak_instruction\"", "\"other\"", "line 1", "\"peak_instruction\" is missing"},
    {"\"loss\": 5.5", "\"loss\": \"5.5\"", "line 2", "expected a finite number"},
    {"\"lr\": 0.001, ", "", "line 2", "\"lr\" is missing"},
    {"\"lr\": 0.001", "\"lr\": -0.001", "line 2", "at least 0"},
    {"\"tokens\": 64", "\"tokens\": 6.5", "line 2", "expected a whole number"},
    {"\"step_seconds\": 0.5", "\"step_seconds\": -1", "line 2", "found -1"},
    {"\"step\": 2", "\"step\": 0", "line 3", "from 1"},
    {"\"skipped\": true", "\"skipped\": 1", "line 3", "true or false"},
    {"\"val_loss\": 4.75", "\"val_loss\": []", "line 4", "\"val_loss\""},
    {"\"final\": true", "\"final\": 1", "line 6", "\"final\""},
    {"00112233445566778899aabbccddeeff", "00112233445566778899aabbccddeeff0", "line 6",
     "at most 32 bytes"},
    {"\"ranks\": 2, \"memory\"", "\"ranks\": 3, \"memory\"", "line 6",
     "expected 2 as in the first line, found 3"},
    {"\"measured_bytes\": {\"parameters\": 10, ", "\"measured_bytes\": {", "line 6",
     "found 2 and 1"},
    {"\"host_measured_peak_bytes\": 6", "\"other\": 6", "line 6", "is missing"},
    {"\"bytes_written\": 22", "\"bytes_written\": 2.5", "line 6", "\"bytes_written\""},
    {"\"planned_peak_bytes\": 100", "\"planned_peak_bytes\": -1", "line 6", "-1"},
    {"\"reduce\"", "\"reduced\"", "line 6", "\"reduce\" is missing"},
    {"\"bytes_sent\": 100", "\"bytes_sent\": null", "line 6: \"reduce\"", "found null"},
    {"\"count\": 4", "\"count\": -4", "line 6: \"FORWARD\"", "\"count\""},
    {"\"units\": {", "\"units\": 7, \"other\": {", "line 6", "\"units\""},
    {"\"node_of\": [0, 0]", "\"node_of\": [0]", "line 6", "expected 2, found 1"},
    {"\"node_of\": [0, 0]", "\"node_of\": [0, 2]", "line 6", "from 0 to 1"},
    {"[[0, 200], [200, 0]]", "[[0, 200]]", "line 6", "\"planned\""},
    {"[201, 0]", "[201]", "line 6", "\"sent\""},
    {"[201, 0]", "[-1, 0]", "line 6", "\"sent\""},
    {"\"awaited\"", "\"waiting\"", "line 6", "\"awaited\" is missing"},
    {"\"ranks\": [1.0, 1.5]", "\"ranks\": [1.0]", "line 6: \"compute\"", "found 1"},
    {"\"ranks\": [1.0, 1.5]", "\"ranks\": [1.0, -1]", "line 6: \"compute\"", "at least 0"},
    {"{\"step\": 2", "{\"step\" 2", "line 3", "JSON"},
};

TEST(damage_is_refused_with_its_line_and_what_was_expected)
{
    for (size_t i = 0; i < COUNT(damage); i++) {
        zero_run r;
        char *text = small_file_with(SMALL_FILE, damage[i].from, damage[i].to);
        if (parse(&r, text) != ZERO_ERR_FORMAT)
            fail_msg("%s was taken for %s", damage[i].to, damage[i].from);
        const char *why = zero_last_error();
        if (!strstr(why, PATH) || !strstr(why, damage[i].line) ||
            !strstr(why, damage[i].message))
            fail_msg("%s: %s", damage[i].to, why);
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
