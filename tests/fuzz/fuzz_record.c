#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "pages/page.h"
#include "pages/run.h"

#define PEAK "first(more/program, number == run/schedule/peak)"

static void check_steps(const zero_run *r)
{
    FUZZ_LAW(r->n > 0);
    for (int64_t i = 0; i < r->n; i++) {
        const double *step = &r->steps[ZERO_STEP][i];
        FUZZ_LAW(*step >= 1.0 && (i == 0 || *step > step[-1]));
        FUZZ_LAW(!(r->steps[ZERO_STEP_SECONDS][i] < 0.0) &&
                 !(r->steps[ZERO_STEP_EXPOSED][i] < 0.0) &&
                 r->steps[ZERO_STEP_TOKENS][i] >= 0.0);
    }
}

static void check_program(const zero_run *r)
{
    const json_t *program = zero_fact_at(r->tree, "more/program");
    int64_t before = 0, peak = (int64_t)zero_fact_number(r->tree, "or(" PEAK "/bytes, 0)");
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)program, i, row)
    {
        int64_t number = json_integer_value(json_object_get(row, "number"));
        FUZZ_LAW(number > before && number <= zero_run_whole(r, "run/schedule/length"));
        FUZZ_LAW(json_integer_value(json_object_get(row, "bytes")) <= peak);
        before = number;
    }
    FUZZ_LAW((zero_fact_number(r->tree, "count(" PEAK ")") > 0.0) ==
             (json_array_size(program) > 0));
}

static void check_end(const zero_run *r)
{
    bool ended = json_is_true(zero_fact_at(r->tree, "ended"));
    FUZZ_LAW(ended == (zero_fact_at(r->tree, "final") != NULL));
    FUZZ_LAW(ended == (zero_fact_at(r->tree, "memory") != NULL));
    FUZZ_LAW(json_array_size(zero_fact_at(r->tree, "final/peers/node_of")) <=
             ZERO_RUN_PEERS);
}

/* Everything that was read can be shown. */
static void show(const zero_run *r)
{
    double loss = zero_fact_number(r->tree, "figures/loss");
    FUZZ_LAW(loss == r->steps[ZERO_STEP_LOSS][r->n - 1] || isnan(loss));
    FILE *out = fopen("/dev/null", "w");
    FUZZ_LAW(out && zero_runs_print(r, 1, out) == ZERO_OK);
    const zero_run both[] = {*r, *r};
    FUZZ_LAW(zero_runs_print(both, 2, out) == ZERO_OK);
    zero_runs_print_csv(r, 1, out);
    zero_page page = {.runs = r, .n_runs = 1};
    FUZZ_LAW(zero_page_print(&page, out) == ZERO_OK);
    json_t *all = zero_runs_describe(r, 1);
    FUZZ_LAW(all != NULL);
    json_decref(all);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_run run;
    zero_status st = zero_run_parse(&run, "f.jsonl", data, size);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_FORMAT);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check_steps(&run);
    check_program(&run);
    check_end(&run);
    show(&run);
    zero_run_destroy(&run);
    return 0;
}
