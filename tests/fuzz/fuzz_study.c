#include <stdio.h>

#include "facts/facts.h"
#include "fuzz.h"
#include "pages/page_parts.h"
#include "pages/study.h"

static void check(const json_t *report)
{
    int64_t last_stage = -1;
    size_t s, i;
    json_t *stage, *point;
    FUZZ_LAW(json_array_size(json_object_get(report, "stages")) > 0);
    json_array_foreach(json_object_get(report, "stages"), s, stage)
    {
        int64_t number = zero_point_whole(stage, "stage"), last_ranks = 0;
        FUZZ_LAW(number > last_stage && number <= 3);
        last_stage = number;
        FUZZ_LAW(json_array_size(json_object_get(stage, "points")) > 0);
        json_array_foreach(json_object_get(stage, "points"), i, point)
        {
            FUZZ_LAW(zero_point_whole(point, "ranks") > last_ranks);
            last_ranks = zero_point_whole(point, "ranks");
            FUZZ_LAW(!(zero_fact_number(point, "step_seconds") < 0.0) &&
                     !(zero_fact_number(point, "efficiency") < 0.0) &&
                     !(zero_fact_number(point, "planned_seconds") < 0.0));
        }
    }
}

/* Everything that was read can be shown. */
static void show(json_t *report)
{
    FILE *out = fopen("/dev/null", "w");
    FUZZ_LAW(out && zero_study_print(report, out) == ZERO_OK);
    zero_studies_print_csv(&report, 1, out);
    json_t *page = zero_page_study(report), *plots = json_object_get(page, "plots"), *plot;
    size_t i;
    json_array_foreach(plots, i, plot)
        FUZZ_LAW(zero_page_form("study", json_incref(plot), out) == ZERO_OK);
    FUZZ_LAW(zero_page_form("study_table", page, out) == ZERO_OK);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *report;
    zero_status st = zero_study_parse(&report, "f.json", data, size);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_FORMAT);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check(report);
    show(report);
    json_decref(report);
    return 0;
}
