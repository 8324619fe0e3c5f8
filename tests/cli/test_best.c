/* `zero plan --best`: its rows are the plans of their own words, and none is faster. */

#include <jansson.h>

#include "support/test.h"

#include "base/number.h"
#include "cli/best.h"
#include "report/plan_facts.h"
#include "support/plan_words.h"

#define JOB \
    "--model gpt2 --layers 3 --seq 256 --dtype fp16 --ranks 32 --machine v100-dgx2 " \
    "--global-batch 256 "

static zero_status show(const char *line, json_t **best)
{
    zero_plan_options o;
    ZERO_AT_END(zero_options_destroy) zero_options given = {0};
    char words[512], text[16384] = "";
    char *argv[32];
    int argc = 0;
    snprintf(words, sizeof words, "%s--best --json", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    assert_ok(zero_options_read(&zero_command_plan, argc, argv, &o, &given));
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    zero_status st = zero_best_show(&o, &given, out);
    assert_int_equal(fclose(out), 0);
    *best = json_loads(text, 0, NULL);
    return st;
}

static json_t *best_of(const char *line)
{
    json_t *best;
    if (show(line, &best) != ZERO_OK) fail_msg("%s: %s", line, zero_last_error());
    assert_non_null(best);
    return best;
}

static double real_of(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static double least_step(const json_t *best)
{
    double least = INFINITY;
    json_t *rows = json_object_get(best, "rows"), *row;
    size_t k;
    json_array_foreach(rows, k, row) least = fmin(least, real_of(row, "step_seconds"));
    return least;
}

/* Of the rank that needs most: of a pipeline in one of its stages. */
static size_t needed_of(const zero_plan_report *r)
{
    const int P = zero_plan_stages(&r->config.plan);
    size_t most = 0;
    for (int s = 0; s < P; s++) {
        zero_plan_rank of;
        assert_ok(zero_plan_rank_open(r, zero_plan_stage_number(&r->stages[0]),
                                      s * r->layout.size / P, &of));
        most = zero_max_size(most, zero_plan_needed(&of.schedule));
        zero_plan_rank_close(&of);
    }
    return most;
}

/* Memory and time are what zero plan says of the same words, and within the limit. */
static void check_rows(const char *job, const char *disk, double limit)
{
    char all[512];
    json_t *row;
    size_t k, offloaded = 0;
    snprintf(all, sizeof all, "%s%s", job, disk);
    json_t *best = best_of(all);
    assert_true(json_array_size(json_object_get(best, "rows")) == 10);
    json_array_foreach(json_object_get(best, "rows"), k, row)
    {
        zero_plan_options o;
        zero_plan_report r;
        char line[512], words[512];
        const char *setting = json_string_value(json_object_get(row, "setting"));
        const bool is_offloaded = strstr(setting, "--offload") != NULL;
        offloaded += is_offloaded;
        snprintf(line, sizeof line, "%s%s%s --micro-batch %d", job,
                 is_offloaded ? disk : "", setting, (int)real_of(row, "micro_batch"));
        assert_ok(parse(&o, line, words));
        if (zero_plan_report_make(&r, &o.request) != ZERO_OK)
            fail_msg("%s: %s", line, zero_last_error());
        assert_true((double)needed_of(&r) == real_of(row, "needed"));
        assert_true(real_of(row, "needed") <= limit);
        assert_true(is_near(r.stages[0].time.step, real_of(row, "step_seconds")));
        assert_int_equal(k < 5, json_object_get(row, "simulated_step_seconds") != NULL);
        zero_plan_report_destroy(&r);
    }
    assert_true(*disk == '\0' || offloaded > 0);
    json_decref(best);
}

TEST(rows_are_the_plans_of_their_words_and_fit)
{
    check_rows(JOB, "", 32e9);
    check_rows(JOB "--memory-limit 300M ", "", 3e8);
    check_rows(JOB "--memory-limit 400M ", "--disk 100G,100G ", 4e8);
}

/* All of a plain set of settings, by whole plans. */
TEST(no_setting_that_fits_is_faster)
{
    static const char *const limits[] = {"32G", "300M"};
    static const char *const more[] = {"",       "--recompute",      "--tp 2",
                                       "--tp 4", "--shard-ranks 16", "--tp 2 --recompute",
                                       "--pp 2", "--prefetch 4"};
    for (int l = 0; l < ZERO_COUNT(limits); l++) {
        char job[256], line[512], words[512];
        double fastest = INFINITY;
        snprintf(job, sizeof job, "%s--memory-limit %s ", JOB, limits[l]);
        for (int stage = 0; stage < 4; stage++)
            for (int m = 0; m < ZERO_COUNT(more); m++)
                for (int batch = 1; batch <= 32; batch *= 2) {
                    zero_plan_options o;
                    zero_plan_report r;
                    snprintf(line, sizeof line, "%s%s --stage %d --micro-batch %d", job,
                             more[m], stage, batch);
                    assert_ok(parse(&o, line, words));
                    if (zero_plan_report_make(&r, &o.request) != ZERO_OK) continue;
                    if (needed_of(&r) <= (size_t)r.config.memory_limit)
                        fastest = fmin(fastest, r.stages[0].time.step);
                    zero_plan_report_destroy(&r);
                }
        json_t *best = best_of(job);
        assert_true(isfinite(fastest));
        assert_true(least_step(best) <= fastest * (1.0 + 1e-9));
        json_decref(best);
    }
}

TEST(given_options_stay_and_what_fits_nowhere_is_refused_with_the_least)
{
    json_t *best = best_of(JOB "--stage 2 --micro-batch 1 "), *row;
    size_t k;
    json_array_foreach(json_object_get(best, "rows"), k, row)
    {
        assert_null(strstr(json_string_value(json_object_get(row, "setting")), "--stage"));
        assert_true(real_of(row, "micro_batch") == 1.0);
    }
    json_decref(best);
    assert_int_equal(show(JOB "--memory-limit 60M ", &best), ZERO_ERR_INVALID);
    assert_null(best);
    assert_non_null(strstr(zero_last_error(), "the least needs"));
}
