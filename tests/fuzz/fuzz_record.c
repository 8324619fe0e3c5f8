#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "pages/notes.h"
#include "pages/page.h"
#include "pages/record_read.h"
#include "pages/runs.h"

static void check_steps(const zero_record *r)
{
    FUZZ_LAW(r->n_steps > 0);
    for (int64_t i = 0; i < r->n_steps; i++) {
        const zero_record_step *s = &r->steps[i];
        FUZZ_LAW(s->step >= 1 && (i == 0 || s->step > s[-1].step));
        FUZZ_LAW(!(s->seconds < 0.0) && !(s->exposed < 0.0) && s->tokens >= 0.0);
    }
}

static void check_program(const zero_record *r)
{
    int64_t most = 0;
    FUZZ_LAW(r->peak_at < r->n_program && r->n_program <= r->program_length);
    for (int i = 0; i < r->n_program; i++) {
        FUZZ_LAW(r->program[i].number >= 1);
        FUZZ_LAW(r->program[i].number <= r->program_length);
        FUZZ_LAW(i == 0 || r->program[i].number > r->program[i - 1].number);
        if (r->program[i].live_bytes > most) most = r->program[i].live_bytes;
    }
    FUZZ_LAW((r->peak_at >= 0) == (r->n_program > 0));
}

static void check_end(const zero_record *r)
{
    FUZZ_LAW(r->ended || (r->n_classes == 0 && r->n_traffic == 0 && r->n_profile == 0));
    FUZZ_LAW(r->n_peers <= ZERO_RECORD_PEERS);
    for (int i = 0; i < r->n_peers; i++) FUZZ_LAW(r->node_of[i] < r->n_peers);
    for (int i = 0; i < r->n_classes; i++) FUZZ_LAW(r->classes[i].planned >= 0);
}

/* Everything that was read can be shown. */
static void show(const zero_record *r)
{
    zero_figures figures;
    FUZZ_LAW(zero_figures_of(r, &figures) == ZERO_OK);
    FUZZ_LAW(figures.loss == r->steps[r->n_steps - 1].loss || isnan(figures.loss));
    zero_runs runs = {r, &figures, 1};
    FILE *out = fopen("/dev/null", "w");
    FUZZ_LAW(out && zero_runs_print(&runs, out) == ZERO_OK);
    zero_runs_print_csv(&runs, out);
    json_t *all = zero_runs_describe(&runs);
    FUZZ_LAW(all != NULL);
    json_decref(all);
    zero_page page = {r, &figures, 1, NULL, 0, NULL};
    FUZZ_LAW(zero_page_print(&page, out) == ZERO_OK);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_record record;
    zero_status st = zero_record_parse(&record, "f.jsonl", data, size);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_FORMAT);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check_steps(&record);
    check_program(&record);
    check_end(&record);
    show(&record);
    zero_record_destroy(&record);
    return 0;
}
