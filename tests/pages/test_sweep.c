/* A scaling study: its statistics, and its files. */

#include "support/test.h"

#include "facts/facts.h"
#include "pages/forms.h"
#include "pages/study.h"
#include "train/step_times.h"

static const int stages[] = {0, 3}, ranks[] = {1, 2, 4};

static json_t *make(void)
{
    return json_pack("{s:i, s:s, s:i, s:i, s:o}", "study", ZERO_STUDY_FORMAT, "scaling",
                     "weak", "steps", 5, "warm_up", 2, "points",
                     zero_study_points(stages, 2, ranks, 3));
}

static json_t *point_of(const json_t *study, size_t i)
{
    return json_array_get(json_object_get(study, "points"), i);
}

/* As if it had taken this time. */
static void measure(json_t *point, double seconds)
{
    json_t *measured = json_pack(
        "{s:s, s:{s:f, s:f, s:f, s:i}, s:i, s:f, s:f, s:f, s:{s:i, s:b}, s:{}}", "state",
        "measured", "step_seconds", "median", seconds, "lower_quartile", seconds,
        "upper_quartile", seconds, "steps", 3, "tokens", 100, "tokens_per_rank", 50.0,
        "exposed_share", 0.5, "cores_per_rank", 0.0, "nodes", "count", 1, "fake", 0, "run");
    assert_int_equal(json_object_update(point, measured), 0);
    json_decref(measured);
}

static void is(const json_t *point, const char *expression)
{
    if (zero_fact_number(point, expression) != 1.0) fail_msg("%s is not so", expression);
}

/* ---- statistics ---- */

TEST(quartiles_lie_between_their_neighbours)
{
    double five[] = {9.0, 8.0, 4.0, 1.0, 3.0, 2.0, 5.0}; /* 9 and 8 do not count */
    zero_step_time t = zero_step_times_of(five, 7, 2);
    assert_int_equal(t.n, 5);
    assert_true(t.median == 3.0 && t.lower == 2.0 && t.upper == 4.0);
    double four[] = {4.0, 1.0, 3.0, 2.0};
    t = zero_step_times_of(four, 4, 0);
    assert_true(t.median == 2.5 && t.lower == 1.75 && t.upper == 3.25);
    double one[] = {7.0, 6.0};
    t = zero_step_times_of(one, 2, 1);
    assert_true(t.n == 1 && t.median == 6.0 && t.lower == 6.0 && t.upper == 6.0);
}

/* The probability that i of n numbers lie below the true median is C(n, i) / 2^n. */
TEST(the_interval_holds_the_median_with_95_percent)
{
    double numbers[300], narrow = 0.0;
    for (int n = 1; n < 300; n++) {
        double share = pow(0.5, n), held = 0.0;
        for (int i = 0; i < n; i++) numbers[i] = n - 1 - i;
        zero_step_time t = zero_step_times_of(numbers, n, 0);
        assert_true(n < 6 ? isnan(t.low) && isnan(t.high) : t.low < t.median);
        if (n < 6) continue;
        for (int i = 0; i <= n; i++) {
            if (i > t.low && i <= t.high) held += share;
            share *= (double)(n - i) / (i + 1);
        }
        if (held < 0.95) fail_msg("%d numbers: %g", n, held);
        narrow = fmax(narrow, n > 30 ? held : 0.0);
    }
    assert_true(narrow < 0.988); /* and not more than it must */
}

TEST(efficiency_is_time_or_work_per_rank)
{
    /* Perfect scaling: the time stays (weak), or falls as 1/N (strong). */
    assert_true(zero_study_efficiency(false, 2.0, 1, 2.0, 8) == 1.0);
    assert_true(zero_study_efficiency(true, 2.0, 1, 0.25, 8) == 1.0);
    assert_true(zero_study_efficiency(false, 2.0, 2, 2.5, 8) == 0.8);
    assert_true(zero_study_efficiency(true, 2.0, 2, 1.0, 8) == 0.5);
}

TEST(each_stage_is_compared_with_its_fewest_measured_ranks)
{
    json_t *s = make();
    measure(point_of(s, 0), 1.0); /* stage 0 on 1, 2 ranks; stage 3 on 2, 4 */
    measure(point_of(s, 1), 2.0);
    measure(point_of(s, 4), 3.0);
    measure(point_of(s, 5), 4.0);
    zero_study_compare(s);
    is(point_of(s, 1), "efficiency_to_ranks == 1 && efficiency == 0.5");
    is(point_of(s, 4), "efficiency_to_ranks == 2 && efficiency == 1");
    is(point_of(s, 5), "efficiency_to_ranks == 2 && efficiency == 0.75");
    json_object_set_new(s, "scaling", json_string("strong"));
    zero_study_compare(s);
    is(point_of(s, 1), "efficiency == 0.25");
    is(point_of(s, 5), "efficiency == 0.375");
    assert_int_equal(zero_study_count(s, "measured"), 4);
    assert_int_equal(zero_study_count(s, "missing"), 2);
    json_decref(s);
}

/* ---- metrics ---- */

static char *text_of(const json_t *study, const char *field, bool is_table);

#define RUN \
    "{\"run\": {\"resumed_step\": 0, \"ranks\": 2, \"nodes\": {\"count\": 1, \"fake\": " \
    "false}, \"hosts\": [\"a\"], \"cores\": 2, \"node_cores\": 3}}\n"
#define STEPS \
    "{\"step\": 1, \"tokens\": 8, \"step_seconds\": 9.0, \"exposed_seconds\": 9.0}\n" \
    "{\"step\": 2, \"tokens\": 8, \"step_seconds\": 2.0, \"exposed_seconds\": 0.5}\n" \
    "{\"step\": 3, \"tokens\": 8, \"step_seconds\": 4.0, \"exposed_seconds\": 3.0}\n"
#define FINAL "{\"final\": true}\n"

static zero_status measure_text(const char *text, json_t *point)
{
    zero_metrics_file file;
    assert_ok(zero_metrics_parse(&file, "m.jsonl", text, strlen(text)));
    zero_status st = zero_study_measure(point, &file, 3, 1);
    zero_metrics_file_destroy(&file);
    return st;
}

TEST(a_point_is_what_its_metrics_say)
{
    json_t *s = make(), *p = point_of(s, 1);
    assert_ok(measure_text(RUN STEPS FINAL, p));
    is(p, "step_seconds/median == 3 && step_seconds/steps == 2 && tokens == 8");
    is(p, "exposed_share == 0.5 && nodes/count == 1 && !nodes/fake");
    is(p, "cores_per_rank == 1.5 && tokens_per_second == 8 / 3");
    assert_true(zero_point_is(p, "measured"));
    json_decref(s);
}

TEST(a_point_has_what_it_used_of_the_machine)
{
    static const char text[] =
        "{\"run\": {\"resumed_step\": 2, \"ranks\": 2, \"nodes\": {\"count\": 2, \"fake\": "
        "false}, \"hosts\": [\"a\", \"b\"], \"cores\": 2, \"node_cores\": 3, \"wire\": "
        "{\"bytes_per_second\": 100.0}}}\n" STEPS
        "{\"final\": true, \"peak\": {\"share\": 0.25}, \"rank_seconds\": {\"compute\": "
        "{\"mean\": 2.0, \"most\": 3.0, \"ranks\": [1.0, 3.0]}}, \"communication\": "
        "{\"collectives\": \"p2p\", \"reduce\": {\"inside_nodes\": {\"bytes_sent\": 30}, "
        "\"across_nodes\": {\"bytes_sent\": 300}}, \"gather\": {\"inside_nodes\": "
        "{\"bytes_sent\": 60}, \"across_nodes\": {\"bytes_sent\": 150}}, "
        "\"largest_poll_gap_seconds\": 0.5}}\n";
    json_t *s = make(), *p = point_of(s, 1);
    assert_ok(measure_text(text, p));
    zero_study_compare(s);
    is(p, "imbalance == 0.5 && slowest_rank == 1 && products_share == 0.25");
    is(p, "inside_bytes == 30 && across_bytes == 150 && wire_share == 0.5");
    is(p, "resumed_step == 2");
    char *table = text_of(s, NULL, true);
    assert_non_null(
        strstr(table, "slow rank: rank 1 of stage 0 on 2 computed 50.0 % longer"));
    assert_non_null(strstr(table, "interrupted: stage 0 on 2 ranks was resumed at step 2"));
    assert_non_null(strstr(table, "incomplete: 5 of 6 points are not measured"));
    free(table);
    json_decref(s);
}

TEST(metrics_that_are_not_whole_measure_nothing)
{
    static const char *const texts[] = {
        RUN STEPS, STEPS FINAL, RUN "{\"step\": 1, \"tokens\": 8}\n" FINAL,
        RUN "{\"step\": 1, \"tokens\": 8, \"step_seconds\": 1.0}\n"
            "{\"step\": 2}\n{\"step\": 3}\n" FINAL};
    json_t *s = make();
    for (size_t i = 0; i < COUNT(texts); i++) {
        assert_int_equal(measure_text(texts[i], point_of(s, 1)), ZERO_ERR_FORMAT);
        assert_true(zero_point_is(point_of(s, 1), "missing"));
    }
    assert_fails(measure_text(RUN STEPS FINAL, point_of(s, 2)), ZERO_ERR_FORMAT,
                 "expected a run of 4 ranks, found 2");
    json_decref(s);
}

/* ---- files ---- */

static char *text_of(const json_t *study, const char *field, bool is_table)
{
    static char text[16384];
    FILE *out = fmemopen(text, sizeof text, "w");
    text[0] = '\0';
    if (!out) abort();
    if (field)
        zero_csv_text(field, out);
    else if (is_table)
        assert_ok(zero_study_show(study, false, false, out));
    else
        zero_study_print_csv(study, out);
    fclose(out);
    return strdup(text);
}

TEST(a_field_of_csv_has_quotes_only_where_it_needs_them)
{
    static const char *const fields[][2] = {{"plain text", "plain text"},
                                            {"", ""},
                                            {"a,b", "\"a,b\""},
                                            {"say \"x\"", "\"say \"\"x\"\"\""},
                                            {"two\nlines", "\"two\\u{A}lines\""}};
    for (size_t i = 0; i < COUNT(fields); i++) {
        char *text = text_of(NULL, fields[i][0], false);
        assert_string_equal(text, fields[i][1]);
        free(text);
    }
}

static int count(const char *text, char c)
{
    int n = 0;
    for (; *text; text++) n += *text == c;
    return n;
}

TEST(every_row_has_every_column)
{
    json_t *s = make();
    assert_ok(measure_text(RUN STEPS FINAL, point_of(s, 1)));
    json_object_set_new(
        point_of(s, 1), "planned",
        json_pack("{s:f, s:f}", "step_seconds", 0.25, "exposed_share", 0.5));
    zero_study_compare(s);
    char *csv = text_of(s, NULL, false), *row = csv, *end = strchr(row, '\n');
    assert_int_equal(count(row, '\n'), 7);
    *end = '\0';
    int columns = count(row, ',');
    for (int i = 0; i < 6; i++) {
        row = end + 1;
        end = strchr(row, '\n');
        *end = '\0';
        assert_int_equal(count(row, ','), columns);
        if (i == 1)
            assert_non_null(strstr(row, "weak,0,2,measured,1,false,4,8,2,3,2.5,3.5,"));
        if (i == 0) assert_non_null(strstr(row, "weak,0,1,missing,,,,"));
    }
    free(csv);
    json_decref(s);
}

/* study.csv and study.json are one study. */
TEST(a_study_is_read_from_either_file)
{
    json_t *s = make(), *reports[2];
    assert_ok(measure_text(RUN STEPS FINAL, point_of(s, 1)));
    zero_study_compare(s);
    char *texts[] = {text_of(s, NULL, false), json_dumps(s, 0)};
    for (int i = 0; i < 2; i++) {
        assert_ok(zero_study_parse(&reports[i], "s", texts[i], strlen(texts[i])));
        json_object_del(reports[i], "more");
        free(texts[i]);
    }
    for (int i = 0; i < 2; i++) {
        is(reports[i], "count(stages) == 2 && count(stages/0/points) == 3");
        is(reports[i], "stages/0/points/1/ranks == 2 && stages/0/points/1/measured");
        is(reports[i],
           "stages/0/points/1/step_seconds == 3 && !stages/0/points/0/measured");
        is(reports[i],
           "stages/0/points/1/efficiency == 1 && !stages/0/points/1/fake_nodes");
        is(reports[i], "stages/0/points/1/exposed_share == 0.5");
        json_decref(reports[i]);
    }
    json_decref(s);
}

TEST(the_table_names_what_cannot_be_compared)
{
    json_t *s = make();
    measure(point_of(s, 0), 1.0);
    measure(point_of(s, 1), 2.0);
    json_object_set_new(point_of(s, 0), "run", json_pack("{s:s}", "mpi", "A"));
    json_object_set_new(point_of(s, 1), "run", json_pack("{s:s}", "mpi", "B"));
    json_object_set_new(point_of(s, 1), "cores_per_rank", json_real(0.5));
    json_object_set_new(json_object_get(point_of(s, 1), "nodes"), "fake", json_true());
    zero_study_compare(s);
    char *text = text_of(s, NULL, true);
    assert_non_null(strstr(text, "not comparable: stage 0 on 2 ranks had another mpi"));
    assert_non_null(strstr(text, "f: fake nodes"));
    assert_non_null(strstr(text, "from 2 ranks on there are fewer cores than ranks"));
    assert_null(strstr(text, "planned"));
    free(text);
    json_decref(s);
}
