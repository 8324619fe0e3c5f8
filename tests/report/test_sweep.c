/* A scaling study: its statistics, and its files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/sweep.h"
#include "report/sweep_file.h"
#include "report/sweep_show.h"

static const int stages[] = {0, 3}, ranks[] = {1, 2, 4};

static zero_sweep make(void)
{
    zero_sweep s;
    assert_int_equal(zero_sweep_init(&s, stages, 2, ranks, 3), ZERO_OK);
    s.version = "1";
    s.commit = "c";
    s.steps = 5;
    s.warm_up = 2;
    return s;
}

/* As if it had taken this time. */
static void measure(zero_sweep_point *p, double seconds)
{
    p->state = ZERO_SWEEP_MEASURED;
    p->time = (zero_step_time){seconds, seconds, seconds, 3, 2, 0};
    p->tokens = 100;
}

/* ---- statistics ---- */

static void quartiles_lie_between_their_neighbours(void **state)
{
    (void)state;
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

static void efficiency_is_time_or_work_per_rank(void **state)
{
    (void)state;
    /* Perfect scaling: the time stays (weak), or falls as 1/N (strong). */
    assert_true(zero_sweep_efficiency(false, 2.0, 1, 2.0, 8) == 1.0);
    assert_true(zero_sweep_efficiency(true, 2.0, 1, 0.25, 8) == 1.0);
    assert_true(zero_sweep_efficiency(false, 2.0, 2, 2.5, 8) == 0.8);
    assert_true(zero_sweep_efficiency(true, 2.0, 2, 1.0, 8) == 0.5);
}

static void each_stage_is_compared_with_its_fewest_measured_ranks(void **state)
{
    (void)state;
    zero_sweep s = make();
    measure(&s.points[0], 1.0); /* stage 0 on 1, 2 ranks; stage 3 on 2, 4 */
    measure(&s.points[1], 2.0);
    measure(&s.points[4], 3.0);
    measure(&s.points[5], 4.0);
    zero_sweep_compare(&s);
    assert_true(s.points[1].base == 1 && s.points[1].efficiency == 0.5);
    assert_true(s.points[4].base == 2 && s.points[4].efficiency == 1.0);
    assert_true(s.points[5].base == 2 && s.points[5].efficiency == 0.75);
    s.is_strong = true;
    zero_sweep_compare(&s);
    assert_true(s.points[1].efficiency == 0.25 && s.points[5].efficiency == 0.375);
    assert_int_equal(zero_sweep_count(&s, ZERO_SWEEP_MEASURED), 4);
    assert_int_equal(zero_sweep_count(&s, ZERO_SWEEP_MISSING), 2);
    zero_sweep_destroy(&s);
}

/* ---- metrics ---- */

#define RUN \
    "{\"run\": {\"resumed_step\": 0, \"ranks\": 2, \"nodes\": {\"count\": 1, \"fake\": " \
    "false}, \"hosts\": [\"a\"], \"cores\": 2, \"node_cores\": 3}}\n"
#define STEPS \
    "{\"step\": 1, \"tokens\": 8, \"step_seconds\": 9.0, \"exposed_seconds\": 9.0}\n" \
    "{\"step\": 2, \"tokens\": 8, \"step_seconds\": 2.0, \"exposed_seconds\": 0.5}\n" \
    "{\"step\": 3, \"tokens\": 8, \"step_seconds\": 4.0, \"exposed_seconds\": 3.0}\n"
#define FINAL "{\"final\": true}\n"

static zero_status measure_text(const char *text, zero_sweep_point *p)
{
    char path[] = "/tmp/zero_test_sweep_XXXXXX";
    int fd = mkstemp(path);
    zero_metrics_file file;
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    assert_int_equal(zero_metrics_read(&file, path), ZERO_OK);
    zero_status st = zero_sweep_measure(p, &file, 3, 1);
    zero_metrics_file_destroy(&file);
    unlink(path);
    return st;
}

static void a_point_is_what_its_metrics_say(void **state)
{
    (void)state;
    zero_sweep s = make();
    zero_sweep_point *p = &s.points[1];
    assert_int_equal(measure_text(RUN STEPS FINAL, p), ZERO_OK);
    assert_true(p->time.median == 3.0 && p->time.n == 2 && p->tokens == 8);
    assert_true(p->exposed == 0.5);
    assert_true(p->nodes == 1 && !p->fake_nodes && p->cores == 1.5);
    assert_int_equal(p->state, ZERO_SWEEP_MEASURED);
    assert_true(zero_sweep_tokens_per_second(p) == 8.0 / 3.0);
    zero_sweep_destroy(&s);
}

static void metrics_that_are_not_whole_measure_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {
        RUN STEPS, STEPS FINAL, RUN "{\"step\": 1, \"tokens\": 8}\n" FINAL,
        RUN "{\"step\": 1, \"tokens\": 8, \"step_seconds\": 1.0}\n"
            "{\"step\": 2}\n{\"step\": 3}\n" FINAL};
    zero_sweep s = make();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(measure_text(texts[i], &s.points[1]), ZERO_ERR_FORMAT);
        assert_int_equal(s.points[1].state, ZERO_SWEEP_MISSING);
    }
    assert_int_equal(measure_text(RUN STEPS FINAL, &s.points[2]), ZERO_ERR_FORMAT);
    assert_non_null(strstr(zero_last_error(), "expected a run of 4 ranks, found 2"));
    zero_sweep_destroy(&s);
}

/* ---- files ---- */

static void a_field_of_csv_has_quotes_only_where_it_needs_them(void **state)
{
    (void)state;
    static const char *const fields[][2] = {{"plain text", "plain text"},
                                            {"", ""},
                                            {"a,b", "\"a,b\""},
                                            {"say \"x\"", "\"say \"\"x\"\"\""},
                                            {"two\nlines", "\"two\nlines\""},
                                            {"\r", "\"\r\""}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        zero_bytes out = {0};
        assert_int_equal(zero_sweep_write_field(fields[i][0], &out), ZERO_OK);
        assert_int_equal(out.len, strlen(fields[i][1]));
        if (out.len > 0) assert_memory_equal(out.bytes, fields[i][1], out.len);
        zero_bytes_destroy(&out);
    }
}

static int count(const char *text, char c)
{
    int n = 0;
    for (; *text; text++) n += *text == c;
    return n;
}

static void every_row_has_every_column(void **state)
{
    (void)state;
    zero_sweep s = make();
    zero_bytes out = {0};
    assert_int_equal(measure_text(RUN STEPS FINAL, &s.points[1]), ZERO_OK);
    s.points[1].planned = (zero_sweep_model){0.25, 0.5};
    zero_sweep_compare(&s);
    assert_int_equal(zero_sweep_write_csv(&s, &out), ZERO_OK);
    assert_int_equal(zero_bytes_append(&out, "", 1), ZERO_OK);
    char *row = (char *)out.bytes, *end = strchr(row, '\n');
    assert_int_equal(count(row, '\n'), 1 + s.n);
    *end = '\0';
    int columns = count(row, ',');
    for (int i = 0; i < s.n; i++) {
        row = end + 1;
        end = strchr(row, '\n');
        *end = '\0';
        assert_int_equal(count(row, ','), columns);
        if (i == 1)
            assert_non_null(strstr(row, "weak,0,2,measured,1,false,4,8,2,3,2.5,3.5,"));
        if (i == 0) assert_non_null(strstr(row, "weak,0,1,missing,,,,"));
    }
    zero_bytes_destroy(&out);
    zero_sweep_destroy(&s);
}

static void a_study_keeps_when_its_points_began(void **state)
{
    (void)state;
    zero_sweep s = make(), later = make();
    snprintf(s.points[0].started, sizeof s.points[0].started, "2026-11-23T13:00:00Z");
    for (int i = 0; i < 3; i++) s.points[0].load[i] = i + 0.5;
    json_t *study = zero_sweep_describe(&s);
    const json_t *points = json_object_get(study, "points");
    zero_sweep_recall(&later.points[0], json_array_get(points, 0));
    zero_sweep_recall(&later.points[1], json_array_get(points, 1));
    assert_string_equal(later.points[0].started, s.points[0].started);
    assert_true(later.points[0].load[2] == 2.5);
    assert_true(later.points[1].started[0] == '\0' && later.points[1].load[0] < 0.0);
    json_decref(study);
    zero_sweep_destroy(&s);
    zero_sweep_destroy(&later);
}

static void the_table_names_what_cannot_be_compared(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    zero_sweep s = make();
    measure(&s.points[0], 1.0);
    measure(&s.points[1], 2.0);
    s.points[0].run = json_pack("{s:s}", "mpi", "A");
    s.points[1].run = json_pack("{s:s}", "mpi", "B");
    s.points[1].fake_nodes = true;
    s.points[1].cores = 0.5;
    zero_sweep_compare(&s);
    FILE *out = open_memstream(&text, &size);
    zero_sweep_show(&s, out);
    fclose(out);
    assert_non_null(strstr(text, "not comparable: stage 0 on 2 ranks had another mpi"));
    assert_non_null(strstr(text, "f: fake nodes"));
    assert_non_null(strstr(text, "from 2 ranks on there are fewer cores than ranks"));
    assert_null(strstr(text, "planned"));
    free(text);
    zero_sweep_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quartiles_lie_between_their_neighbours),
        cmocka_unit_test(efficiency_is_time_or_work_per_rank),
        cmocka_unit_test(each_stage_is_compared_with_its_fewest_measured_ranks),
        cmocka_unit_test(a_point_is_what_its_metrics_say),
        cmocka_unit_test(metrics_that_are_not_whole_measure_nothing),
        cmocka_unit_test(a_field_of_csv_has_quotes_only_where_it_needs_them),
        cmocka_unit_test(every_row_has_every_column),
        cmocka_unit_test(a_study_keeps_when_its_points_began),
        cmocka_unit_test(the_table_names_what_cannot_be_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
