#include <stdio.h>

#include "fuzz.h"
#include "pages/study_forms.h"
#include "pages/study_read.h"

static void check(const zero_study *study)
{
    FUZZ_LAW(study->n_series > 0);
    for (int s = 0; s < study->n_series; s++) {
        const zero_study_series *series = &study->series[s];
        FUZZ_LAW(series->n > 0 && series->stage >= 0 && series->stage <= 3);
        FUZZ_LAW(s == 0 || series->stage > series[-1].stage);
        for (int i = 0; i < series->n; i++) {
            const zero_study_point *p = &series->points[i];
            FUZZ_LAW(p->ranks >= 1 && (i == 0 || p->ranks > p[-1].ranks));
            FUZZ_LAW(!(p->step < 0.0) && !(p->efficiency < 0.0) && !(p->planned < 0.0));
        }
    }
}

/* Everything that was read can be shown. */
static void show(const zero_study *study)
{
    FILE *out = fopen("/dev/null", "w");
    FUZZ_LAW(out != NULL);
    zero_study_print(study, out);
    zero_studies_print_csv(study, 1, out);
    fclose(out);
    json_t *all = zero_study_describe(study);
    FUZZ_LAW(all != NULL);
    json_decref(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_study study;
    zero_status st = zero_study_parse(&study, "f.json", data, size);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_FORMAT);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check(&study);
    show(&study);
    zero_study_destroy(&study);
    return 0;
}
