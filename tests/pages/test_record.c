#include "small_run.h"

#include <math.h>

#include "pages/figures.h"
#include "pages/notes.h"
#include "pages/record_read.h"

#define PATH "small.jsonl"

static zero_status parse(zero_record *record, const char *text)
{
    return zero_record_parse(record, PATH, text, strlen(text));
}

static zero_record parsed(const char *text)
{
    zero_record record;
    if (parse(&record, text) != ZERO_OK) fail_msg("%s", zero_last_error());
    return record;
}

/* ---- what a whole file says ---- */

static void the_first_line_says_what_the_run_was(void **state)
{
    (void)state;
    zero_record r = parsed(SMALL_FILE);
    assert_true(r.has_run && !r.fake_nodes && r.resumed_step == 0);
    assert_int_equal(r.ranks, 2);
    assert_int_equal(r.nodes, 1);
    assert_int_equal(r.stage, 3);
    assert_int_equal(r.parameters, 300);
    assert_string_equal(r.dtype, "bf16");
    assert_string_equal(r.model, "tiny");
    assert_string_equal(r.collectives, "shm");
    zero_record_destroy(&r);
}

static void a_long_program_has_its_peak_although_it_is_left_out(void **state)
{
    (void)state;
    static const int numbers[] = {1, 3, 5};
    zero_record r = parsed(SMALL_FILE);
    assert_int_equal(r.program_length, 5);
    assert_int_equal(r.n_program, 3);
    assert_int_equal(r.peak_at, 1);
    for (int i = 0; i < 3; i++) assert_int_equal(r.program[i].number, numbers[i]);
    assert_string_equal(r.program[1].name, "BACKWARD head");
    assert_int_equal(r.program[1].live_bytes, 100);
    assert_int_equal(r.program[1].live[ZERO_CLASS_ACTIVATIONS], 90);
    assert_int_equal(r.program[0].bytes, 512);
    assert_int_equal(r.program[2].bytes, -1);
    zero_record_destroy(&r);
}

static void steps_have_their_numbers_and_null_is_nan(void **state)
{
    (void)state;
    zero_record r = parsed(SMALL_FILE);
    assert_int_equal(r.n_steps, 4);
    assert_true(r.steps[0].loss == 5.5 && r.steps[0].tokens == 64.0);
    assert_true(isnan(r.steps[1].loss) && r.steps[1].skipped);
    assert_true(r.steps[2].has_val_loss && r.steps[2].val_loss == 4.75);
    assert_false(r.steps[3].has_val_loss || r.steps[3].skipped);
    assert_true(r.steps[3].exposed == 0.125 && r.steps[3].elapsed == 1.5);
    zero_record_destroy(&r);
}

static void the_last_line_has_the_ledgers(void **state)
{
    (void)state;
    zero_record r = parsed(SMALL_FILE);
    assert_true(r.ended && !r.cut);
    assert_int_equal(r.n_classes, 2);
    assert_int_equal(r.classes[1].planned, 90);
    assert_int_equal(r.classes[1].measured, 91);
    assert_int_equal(r.measured_peak, 101);
    assert_int_equal(r.n_host, 1);
    assert_int_equal(r.host[0].measured, 6);
    assert_int_equal(r.planned_host_peak, 5);
    assert_int_equal(r.n_moved, 1);
    assert_int_equal(r.moved[0].planned_written, 12);
    assert_int_equal(r.moved[0].written, 22);
    assert_int_equal(r.n_traffic, 3);
    assert_string_equal(r.traffic[2].name, "control");
    assert_int_equal(r.traffic[2].sent, 7);
    assert_int_equal(r.traffic[2].all_sent, 100);
    assert_int_equal(r.traffic[0].sent_across, 40);
    assert_int_equal(r.n_profile, 3);
    assert_string_equal(r.profile[1].unit, "block");
    assert_int_equal(r.n_peers, 2);
    assert_int_equal(r.peer[2], 201);
    assert_int_equal(r.planned_peer[2], 200);
    zero_record_destroy(&r);
}

/* ---- figures ---- */

static void figures_of(const zero_record *r, zero_figures *f)
{
    assert_int_equal(zero_figures_of(r, f), ZERO_OK);
}

static void figures_are_those_of_all_ranks(void **state)
{
    (void)state;
    zero_figures f;
    zero_record r = parsed(SMALL_FILE);
    figures_of(&r, &f);
    assert_true(f.of_all_ranks);
    assert_true(f.loss == 4.25 && f.step == 4);
    assert_true(f.val_loss == 4.75 && f.val_step == 3);
    assert_true(f.step_time.median == 0.5 && f.step_time.n == 1);
    assert_true(f.tokens_per_second == 128.0);
    assert_true(f.compute == 1.25 / 2.0);
    assert_true(f.exposed == 0.5 / 2.0 && f.waited == f.exposed);
    assert_true(f.imbalance == 1.5 / 1.25 - 1.0);
    assert_true(f.overlap == 0.75);
    zero_record_destroy(&r);
}

static void an_older_file_has_the_figures_of_rank_0(void **state)
{
    (void)state;
    zero_figures f;
    char *text = small_file_with(SMALL_FILE, "\"rank_seconds\"", "\"unknown\"");
    zero_record r = parsed(text);
    figures_of(&r, &f);
    assert_false(r.has_rank_seconds || f.of_all_ranks);
    assert_true(f.exposed == 0.25);          /* of the lines of the steps */
    assert_true(f.compute == 0.75 / 2.0);    /* FORWARD without its polls */
    assert_true(f.overlap == 1.0 - 1.0 / 4); /* two collectives */
    assert_true(isnan(f.imbalance));
    zero_record_destroy(&r);
    free(text);
}

/* Nothing was sent, whatever the bookkeeping of collectives took. */
static void traffic_without_bytes_hid_nothing(void **state)
{
    (void)state;
    zero_record_traffic one_rank = {.seconds = 1e-5, .exposed = 0.0};
    assert_true(isnan(zero_traffic_hidden(&one_rank)));
    one_rank.received = 8;
    assert_true(zero_traffic_hidden(&one_rank) == 1.0);
    zero_figures f;
    zero_record r = parsed(SMALL_FILE);
    r.ranks = 1;
    figures_of(&r, &f);
    assert_true(isnan(f.overlap));
    zero_record_destroy(&r);
}

/* ---- what is not there is said ---- */

static bool says(const zero_record *r, const char *text)
{
    char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES];
    int n = zero_notes_of(r, notes);
    for (int i = 0; i < n; i++)
        if (strstr(notes[i], text)) return true;
    return false;
}

static void a_whole_run_needs_no_notes(void **state)
{
    (void)state;
    char notes[ZERO_NOTES_MOST][ZERO_NOTE_BYTES];
    zero_record r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_FINAL);
    assert_int_equal(zero_notes_of(&r, notes), 0);
    zero_record_destroy(&r);
}

static void skipped_steps_and_losses_that_are_not_finite_are_said(void **state)
{
    (void)state;
    zero_record r = parsed(SMALL_FILE);
    assert_true(says(&r, "the loss of 1 step is not finite, first that of step 2"));
    assert_true(says(&r, "1 step was skipped"));
    zero_record_destroy(&r);
}

static void a_killed_run_has_its_steps_and_says_that_the_end_is_missing(void **state)
{
    (void)state;
    zero_figures f;
    zero_record r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "")
                               SMALL_STEP(2, 5.25, "") "{\"step\": 3, \"lo");
    assert_int_equal(r.n_steps, 2);
    assert_true(!r.ended && r.cut);
    assert_true(says(&r, "after step 2 of 4"));
    assert_true(says(&r, "half a line"));
    figures_of(&r, &f);
    assert_true(f.loss == 5.25 && f.exposed == 0.25 && isnan(f.compute));
    zero_record_destroy(&r);
}

static void steps_that_were_taken_twice_count_once(void **state)
{
    (void)state;
    char *again = small_file_with(SMALL_RUN, "\"resumed_step\": 0", "\"resumed_step\": 1");
    char text[8192];
    snprintf(text, sizeof text, "%s%s%s",
             SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_STEP(2, 5.0, ""), again,
             SMALL_STEP(2, 3.5, "") SMALL_FINAL);
    zero_record r = parsed(text);
    assert_int_equal(r.n_steps, 2);
    assert_true(r.steps[1].loss == 3.5 && r.ended);
    assert_true(says(&r, "resumed after step 1"));
    assert_true(says(&r, "shares are of the steps since"));
    zero_record_destroy(&r);
    free(again);
}

static void a_file_of_two_runs_says_that_the_last_one_counts(void **state)
{
    (void)state;
    char text[8192];
    snprintf(text, sizeof text, "%s%s", SMALL_FILE, SMALL_RUN SMALL_STEP(1, 2.5, ""));
    zero_record r = parsed(text);
    assert_int_equal(r.n_steps, 1);
    assert_true(r.steps[0].loss == 2.5 && !r.ended);
    assert_true(says(&r, "first lines of 2 runs"));
    zero_record_destroy(&r);
}

static void lost_lines_are_added_up_and_gaps_are_counted(void **state)
{
    (void)state;
    zero_record r = parsed(SMALL_RUN SMALL_STEP(1, 5.5, "") SMALL_STEP(
        4, 5.0, ", \"lost_lines\": 2") SMALL_STEP(6, 5.0, ", \"lost_lines\": 1"));
    assert_int_equal(r.lost_lines, 3);
    assert_int_equal(zero_record_missing_steps(&r), 3);
    assert_true(says(&r, "3 lines could not be written"));
    assert_true(says(&r, "3 steps between"));
    zero_record_destroy(&r);
}

static void a_file_without_its_first_line_is_read_and_says_so(void **state)
{
    (void)state;
    zero_record r = parsed(SMALL_STEPS SMALL_FINAL);
    assert_false(r.has_run);
    assert_int_equal(r.n_program, 0);
    assert_int_equal(r.peak_at, -1);
    assert_true(says(&r, "does not say what its run was"));
    zero_record_destroy(&r);
}

static void keys_of_newer_versions_are_ignored(void **state)
{
    (void)state;
    static const char *const more[][2] = {
        {"\"stage\": 3, \"dtype\"", "\"stage\": 3, \"new\": [1], \"dtype\""},
        {"\"lr\": 0.001", "\"lr\": 0.001, \"new\": {}"},
        {"\"digest\"", "\"new\": null, \"digest\""},
        {"\"collectives\": \"shm\", \"reduce\"", "\"new\": 7, \"reduce\""},
    };
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        char *text = small_file_with(SMALL_FILE, more[i][0], more[i][1]);
        zero_record r = parsed(text);
        assert_int_equal(r.n_steps, 4);
        zero_record_destroy(&r);
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

static void damage_is_refused_with_its_line_and_what_was_expected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        zero_record r;
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

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    zero_record r;
    assert_int_equal(zero_record_read(&r, "nosuch.jsonl"), ZERO_ERR_IO);
    assert_int_equal(parse(&r, ""), ZERO_ERR_FORMAT);
    assert_int_equal(parse(&r, SMALL_RUN), ZERO_ERR_FORMAT);
    assert_non_null(strstr(zero_last_error(), "no line of a step"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_line_says_what_the_run_was),
        cmocka_unit_test(a_long_program_has_its_peak_although_it_is_left_out),
        cmocka_unit_test(steps_have_their_numbers_and_null_is_nan),
        cmocka_unit_test(the_last_line_has_the_ledgers),
        cmocka_unit_test(figures_are_those_of_all_ranks),
        cmocka_unit_test(an_older_file_has_the_figures_of_rank_0),
        cmocka_unit_test(traffic_without_bytes_hid_nothing),
        cmocka_unit_test(a_whole_run_needs_no_notes),
        cmocka_unit_test(skipped_steps_and_losses_that_are_not_finite_are_said),
        cmocka_unit_test(a_killed_run_has_its_steps_and_says_that_the_end_is_missing),
        cmocka_unit_test(steps_that_were_taken_twice_count_once),
        cmocka_unit_test(a_file_of_two_runs_says_that_the_last_one_counts),
        cmocka_unit_test(lost_lines_are_added_up_and_gaps_are_counted),
        cmocka_unit_test(a_file_without_its_first_line_is_read_and_says_so),
        cmocka_unit_test(keys_of_newer_versions_are_ignored),
        cmocka_unit_test(damage_is_refused_with_its_line_and_what_was_expected),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
