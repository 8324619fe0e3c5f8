/* The page of runs and traces: well-formed, without a network or a script, small, and true. */
#include "support/test.h"

#include "small_run.h"
#include "well_formed.h"

#include "pages/page.h"
#include "pages/study.h"

#define MOST_BYTES 300000 /* of a page of 8 ranks and 3 steps */

/* ---- making pages ---- */

static char *print(const zero_page *page)
{
    char *text = NULL;
    size_t n = 0;
    well_state well;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    assert_ok(zero_page_print(page, out));
    assert_int_equal(fclose(out), 0);
    if (well_formed(text, &well)[0]) fail_msg("not well-formed: %s", well.why);
    assert_null(strstr(text, "http"));
    assert_null(strstr(text, "HTTP"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf\""));
    return text;
}

static char *page_of(const char *path, const char *file, const zero_traced *trace)
{
    zero_run run;
    assert_ok(zero_run_parse(&run, path, file, strlen(file)));
    zero_page page = {.runs = &run, .n_runs = 1, .trace = trace};
    char *text = print(&page);
    zero_run_destroy(&run);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("the page has no '%s'", part);
}

/* ---- runs ---- */

TEST(a_whole_run_has_all_sections)
{
    char *text = page_of("small.jsonl", SMALL_FILE, NULL);
    assert_has(text, "<h1>small.jsonl</h1>");
    assert_has(text, "ZeRO stage 3, bf16, 2 ranks on 1 node, 4 steps");
    assert_has(text, "<h2>Loss</h2>");
    assert_has(text, "<h2>Tokens per second</h2>");
    assert_has(text, "peak 100 B: 3 BACKWARD head");
    assert_has(text, "No trace was given");
    assert_has(text, "step 3: validation loss 4.75");
    assert_has(text, "step 2: not a number");
    free(text);
}

TEST(planned_and_measured_are_compared)
{
    char *text = page_of("small.jsonl", SMALL_FILE, NULL);
    assert_has(text, "parameters</th><td>10 B</td><td class=\"same\">=</td><td>10 B</td>");
    assert_has(text, "activations</th><td>90 B</td><td class=\"differs\">DIFFERS</td>");
    assert_has(text, "used DIFFERS");
    assert_has(text, "rank 0 to rank 1, inside a node: 200 B, as planned");
    assert_has(text, "rank 1 to rank 0, inside a node: 201 B; planned 200 B: DIFFERS");
    assert_has(text, "reduce</th><td>100 B</td><td class=\"same\">=</td>");
    free(text);
}

TEST(a_run_without_its_end_says_so)
{
    char *text = page_of("cut.jsonl", SMALL_RUN SMALL_STEPS, NULL);
    assert_has(text, "The end is missing");
    assert_has(text, "4 steps</p>");
    assert_has(text, "this run has none: it did not end");
    assert_has(text, "The metrics do not have it: the run did not end.");
    assert_null(strstr(text, "planned = used"));
    free(text);
}

TEST(one_step_without_anything_else_is_a_page)
{
    char *text = page_of("one.jsonl", SMALL_STEP(1, 5.5, ""), NULL);
    assert_has(text, "1 step</p>");
    assert_has(text, "cannot be drawn");
    free(text);
    text = page_of("none.jsonl", SMALL_STEP(1, null, ""), NULL);
    assert_has(text, "The loss of 1 step is not finite");
    free(text);
}

TEST(seconds_that_are_unknown_are_not_drawn)
{
    char *file =
        small_file_with(SMALL_FILE, "\"least_seconds\": 0.75", "\"least_seconds\": null");
    char *text = page_of("unknown.jsonl", file, NULL);
    assert_null(strstr(text, "nan\""));
    free(text);
    free(file);
}

TEST(names_from_outside_do_no_harm)
{
    char *file = small_file_with(
        SMALL_FILE, "zero train",
        "<script>alert(1)</script> \\u0007\\u202e https://x ]]> \\\"onload=\\\"");
    char *text = page_of("a/<b>\"&.jsonl", file, NULL);
    assert_has(text, "<h1>&lt;b&gt;&quot;&amp;.jsonl</h1>");
    assert_has(text,
               "&lt;script&gt;alert(1)&lt;/script&gt; \\u{7}\\u{202E} &#104;ttps://x");
    free(text);
    text = page_of("\xff\x1b.jsonl", file, NULL);
    assert_has(text, "<h1>\\x{FF}\\u{1B}.jsonl</h1>");
    free(text);
    free(file);
}

TEST(runs_stand_side_by_side)
{
    static const char *const paths[] = {"a.jsonl", "<b>.jsonl", "c.jsonl"};
    zero_run runs[3];
    char *other = small_file_with(SMALL_FILE, "\"config\": {\"steps\": 4, \"stage\": 3",
                                  "\"config\": {\"steps\": 4, \"stage\": 2");
    for (int k = 0; k < 3; k++) {
        const char *file = k == 1 ? other : SMALL_FILE;
        assert_ok(zero_run_parse(&runs[k], paths[k], file, strlen(file)));
    }
    zero_page page = {.runs = runs, .n_runs = 3};
    char *text = print(&page);
    assert_has(text, "<h2>Side by side</h2>");
    assert_has(text, "--stage</th><td>3</td><td>2</td><td>3</td>");
    assert_has(text, "digest</th><td>00112233...</td><td>equal</td><td>equal</td>");
    assert_has(text, "curve strong r2");
    assert_has(text, "&lt;b&gt;.jsonl");
    free(text);
    free(other);
    for (int k = 0; k < 3; k++) zero_run_destroy(&runs[k]);
}

/* ---- studies ---- */

TEST(a_study_draws_its_stages)
{
#define POINT(ranks, rate, efficiency) \
    "{\"stage\": 3, \"ranks\": " ranks ", \"state\": \"measured\", \"step_seconds\": " \
    "{\"median\": 0.5, \"lower_quartile\": 0.5, \"upper_quartile\": 0.5}, " \
    "\"tokens_per_second\": " rate ", \"efficiency\": " efficiency \
    ", \"exposed_share\": null, \"cores_per_rank\": 0.5, \"nodes\": {\"fake\": false}, " \
    "\"planned\": null, \"simulated\": {\"step_seconds\": 0.25}, \"run\": {\"cpu\": " \
    "\"<cpu>\", \"mpi\": \"Open MPI\", \"command\": \"zero train\", \"dtype\": \"bf16\", " \
    "\"model\": {\"name\": \"tiny\", \"parameters\": 12}}}"
    static const char file[] =
        "{\"study\": 1, \"scaling\": \"strong\", \"points\": [" POINT(
            "4", "2700", "0.5") ", " POINT("1", "900", "1") ", " POINT("2", "null",
                                                                       "null") "]}";
    json_t *study;
    assert_ok(zero_study_parse(&study, "<study>", file, strlen(file)));
    zero_page page = {.studies = &study, .n_studies = 1};
    char *text = print(&page);
    assert_has(text, "Strong scaling");
    assert_has(text, "stage 3, 4 ranks: 50 %");
    assert_has(text, "class=\"ideal\"");
    assert_has(text, "<dt>machine</dt><dd>&lt;cpu&gt;, Open MPI");
    assert_has(text, "tiny: 12 parameters, bf16");
    assert_has(text, "<code>zero train</code>");
    assert_has(text, "From 1 ranks on there are fewer cores than ranks");
    assert_null(strstr(text, "Memory of rank 0"));
    assert_null(strstr(text, "Efficiency of all studies"));
    free(text);
    json_t *both[] = {study, study}; /* in one picture, and each alone */
    text = print(&(zero_page){.studies = both, .n_studies = 2});
    assert_has(text, "Efficiency of all studies");
    assert_has(text, "<title>strong, stage 3, 4 ranks: 50 %");
    free(text);
    json_decref(study);
}

/* ---- traces ---- */

enum { RANKS = 8, STEPS = 3, SPANS = 72, ROUNDS = STEPS * SPANS };

static zero_traced_span spans[RANKS][ROUNDS];
static zero_traced_span flights[RANKS][ROUNDS / 6];
static zero_traced_rank ranks[RANKS];

/* Rank r's span i takes 100 us and more, and rank 3 is slower. */
static zero_traced make_trace(void)
{
    static const char *const names[] = {
        "GATHER_WAIT block 3", "FORWARD block 3, microbatch 0",
        "RELEASE block 3",     "BACKWARD block 3, microbatch 0",
        "REDUCE block <3>",    "LOSS"};
    for (int r = 0; r < RANKS; r++) {
        int64_t now = 0;
        for (int i = 0; i < ROUNDS; i++) {
            int64_t took = 100000 + 1000 * (i % 7) + (r == 3 && i % 6 == 1 ? 100000 : 0);
            spans[r][i] = (zero_traced_span){.begin = now,
                                             .end = now + took,
                                             .name = names[i % 6],
                                             .step = 1 + i / SPANS,
                                             .at = 1 + i % SPANS};
            if (i % 6 == 0)
                flights[r][i / 6] = (zero_traced_span){.begin = now,
                                                       .end = now + 3 * took,
                                                       .name = "all-gather block 3",
                                                       .step = 1 + i / SPANS,
                                                       .bytes = 4096};
            now += took;
        }
        ranks[r] = (zero_traced_rank){.rank = r,
                                      .node = r / 4,
                                      .spans = spans[r],
                                      .n_spans = ROUNDS,
                                      .flights = flights[r],
                                      .n_flights = ROUNDS / 6};
    }
    return (zero_traced){.path = "t.json",
                         .world = RANKS,
                         .nodes = 2,
                         .first_step = 1,
                         .last_step = STEPS,
                         .clock_uncertainty = 1500,
                         .ranks = ranks,
                         .n_ranks = RANKS};
}

TEST(eight_ranks_and_three_steps_are_a_small_page)
{
    zero_traced trace = make_trace();
    char *text = page_of("small.jsonl", SMALL_FILE, &trace);
    if (strlen(text) >= MOST_BYTES) fail_msg("%zu bytes", strlen(text));
    assert_has(text, ">rank 7</text>");
    assert_has(text, "8 of 8 ranks, steps 1 to 3");
    assert_has(text, "Clocks of nodes are known to 1.500 us");
    assert_has(text, "class=\"node\"");
    assert_has(text, "step 3</text>");
    free(text);
}

TEST(a_short_trace_has_its_spans_with_names)
{
    zero_traced trace = make_trace();
    trace.n_ranks = 3;
    trace.last_step = 1;
    for (int r = 0; r < 3; r++) ranks[r].n_spans = 12, ranks[r].n_flights = 2;
    trace.note = "the ring <wrapped>";
    char *text = page_of("small.jsonl", SMALL_FILE, &trace);
    assert_has(text, "step 1, 4 BACKWARD block 3, microbatch 0: 103.0 us from 303.0 us on");
    assert_has(text, "class=\"on forward\">F3</text>");
    assert_has(text, "REDUCE block &lt;3&gt;");
    assert_has(text, "all-gather block 3: 300.0 us in flight, 4.00 KiB sent");
    assert_has(text, "the ring &lt;wrapped&gt;");
    free(text);
}

TEST(a_trace_without_spans_says_so)
{
    zero_traced trace = {.path = "t.json", .world = 8, .is_cut = true};
    char *text = page_of("small.jsonl", SMALL_FILE, &trace);
    assert_has(text, "The trace has no spans");
    free(text);
}
