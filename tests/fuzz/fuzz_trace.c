#include "fuzz.h"
#include "pages/breakdown.h"
#include "pages/page_parts.h"

static void check_spans(const zero_traced *t, const zero_traced_span *s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        FUZZ_LAW(s[i].name != NULL && s[i].kind < ZERO_TRACED_KINDS);
        FUZZ_LAW(s[i].begin >= 0 && s[i].begin <= s[i].end);
        FUZZ_LAW(s[i].waited >= 0 && s[i].waited <= s[i].end - s[i].begin);
        FUZZ_LAW(s[i].step >= t->first_step && s[i].step <= t->last_step);
        FUZZ_LAW(i == 0 || s[i - 1].end <= s[i].begin);
        FUZZ_LAW(s[i].bytes >= -1 && s[i].live >= 0 && s[i].group >= -1);
    }
}

static void check_rank(const zero_traced *t, const zero_traced_rank *r)
{
    FUZZ_LAW(r->rank < t->world);
    FUZZ_LAW(t->hosts[r->node] != NULL);
    check_spans(t, r->spans, r->n_spans);
    for (int64_t k = 0; k < r->n_queues; k++) check_spans(t, &r->queues[k], 1);
    for (int64_t i = 0; i < r->n_spans; i++) FUZZ_LAW(r->spans[i].end <= t->end);
    for (int64_t i = 0; i < r->n_flights; i++) {
        const zero_traced_span *f = &r->flights[i];
        FUZZ_LAW(f->name != NULL && f->begin >= 0 && f->begin <= f->end);
        FUZZ_LAW(f->end <= t->end && f->bytes >= 0 && f->first < t->world && f->row > 0);
        FUZZ_LAW(i == 0 || f[-1].begin <= f->begin);
    }
    for (int64_t i = 0; i < r->n_samples; i++) {
        FUZZ_LAW(i == 0 || r->samples[i - 1].at <= r->samples[i].at);
        for (int c = 0; c < ZERO_CLASSES; c++) FUZZ_LAW(r->samples[i].of_class[c] >= 0);
    }
}

/* Everything that was read can be shown. */
static void show(const zero_traced *t)
{
    json_t *breakdown;
    FILE *out = fopen("/dev/null", "w");
    FUZZ_LAW(out && zero_breakdown_of(t, &breakdown) == ZERO_OK);
    FUZZ_LAW(zero_breakdown_print(breakdown, out) == ZERO_OK);
    zero_breakdown_print_csv(breakdown, out);
    json_t *all = zero_breakdown_describe(breakdown);
    FUZZ_LAW(all != NULL);
    json_decref(all);
    json_decref(breakdown);
    FUZZ_LAW(zero_page_form("trace", zero_page_timeline(t), out) == ZERO_OK);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_traced t;
    zero_status st = zero_traced_parse(&t, "f", data, size);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_FORMAT);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    FUZZ_LAW(t.n_ranks <= t.world && t.nodes <= t.world && t.command && t.version);
    for (int64_t k = 0; k < t.n_ranks; k++) {
        FUZZ_LAW(k == 0 || t.ranks[k - 1].rank < t.ranks[k].rank);
        check_rank(&t, &t.ranks[k]);
    }
    show(&t);
    zero_traced_destroy(&t);
    return 0;
}
