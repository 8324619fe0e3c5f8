/* Overlap of a collective with a compute loop of about the same length:
 *
 *     overlap = 1 - (both together - compute alone) / collective alone */
#include <stdio.h>

#include "base/fail.h"
#include "bench_compute.h"
#include "bench_modes.h"

#define WARM_UP 5

static const double gaps[] = {BENCH_NO_POLL, 0.2e-3, 1e-3, 5e-3, 20e-3};
#define N_GAPS ((int)(sizeof gaps / sizeof gaps[0]))

enum { ALONE, COMPUTE, FIRST_GAP, N_WORKS = FIRST_GAP + N_GAPS };

typedef struct {
    bench_case c;
    bench_computer computer;
    double compute; /* seconds */
} duet;

/* The collective and the compute loop, polled at one gap. */
typedef struct {
    duet *duet;
    double gap;
} beside;

static zero_status prepare_both(void *arg)
{
    return bench_case_prepare(&((beside *)arg)->duet->c);
}

static zero_status run_both(void *arg)
{
    const beside *b = arg;
    bench_case *c = &b->duet->c;
    ZERO_TRY(zero_collective_begin(&c->op, c->in, c->out, c->staging.base));
    ZERO_TRY(bench_compute(&b->duet->computer, b->duet->compute, b->gap));
    return zero_collective_wait(&c->op);
}

static zero_status run_compute(void *arg)
{
    const duet *d = arg;
    return bench_compute(&d->computer, d->compute, BENCH_NO_POLL);
}

/* Sets the length of the compute loop to the collective's time. */
static zero_status measure_alone(duet *d, zero_comm *comm)
{
    bench_clock clock = {.comm = comm, .rounds = WARM_UP};
    bench_work work = bench_case_work(&d->c);
    bench_series series;
    ZERO_TRY(zero_agree(comm, bench_series_init(&series, &clock, 1)));
    zero_status st = ZERO_OK;
    while (st == ZERO_OK && bench_series_wants_more(&series))
        st = bench_series_add(&series, &clock, &work, 1);
    d->compute = bench_seconds(&series, 0);
    bench_series_destroy(&series);
    return st;
}

static zero_status measure(duet *d, const bench_clock *clock, bench_series *series)
{
    beside both[N_GAPS];
    bench_work works[N_WORKS] = {
        [ALONE] = bench_case_work(&d->c),
        [COMPUTE] = {NULL, run_compute, d},
    };
    for (int g = 0; g < N_GAPS; g++) {
        both[g] = (beside){d, gaps[g]};
        works[FIRST_GAP + g] = (bench_work){prepare_both, run_both, &both[g]};
    }
    ZERO_TRY(measure_alone(d, clock->comm));
    while (bench_series_wants_more(series))
        ZERO_TRY(bench_series_add(series, clock, works, 1));
    return ZERO_OK;
}

static void print_header(const bench_field *field)
{
    printf("\n%s, %.6g KiB: overlap in %%, polled every ... ms\n",
           zero_type_name(field->type), (double)field->bytes / 1024.0);
    printf("%-15s%-27s%-19s%10s%10s", "", "", "memory", "alone ms", "compute");
    for (int g = 0; g < N_GAPS; g++)
        if (gaps[g] < 0.0)
            printf("%7s", "never");
        else
            printf("%7g", 1e3 * gaps[g]);
    printf("%10s\n", "kept");
}

static zero_status report(const duet *d, const bench_series *s, const bench_run *run)
{
    const bench_variant *variant = d->c.variant;
    const char *kind = zero_collective_kind_name(variant->kind);
    double alone = bench_seconds(s, ALONE), compute = bench_seconds(s, COMPUTE);
    json_t *overlaps = json_array();
    printf("%-15s%-27s%-19s", kind, variant->name, bench_memory_name(variant->memory));
    bench_print_number("%*.3f", 10, 1e3 * alone);
    bench_print_number("%*.3f", 10, 1e3 * compute);
    for (int g = 0; g < N_GAPS; g++) {
        double overlap = bench_overlap(s, FIRST_GAP + g, COMPUTE, ALONE);
        bench_print_number("%*.0f", 7, 100.0 * overlap);
        json_t *gap = gaps[g] < 0.0 ? json_null() : json_real(gaps[g]);
        json_array_append_new(overlaps, json_pack("{s:o, s:o}", "gap_seconds", gap,
                                                  "overlap", bench_number(overlap)));
    }
    printf("%7d/%d%s\n", s->kept, s->taken, bench_mark(s));
    fflush(stdout);
    return bench_report_add(
        run->report,
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:i, s:i}", "operation", kind,
                  "algorithm", variant->name, "memory", bench_memory_name(variant->memory),
                  "type", zero_type_name(d->c.field->type), "bytes",
                  (json_int_t)d->c.field->bytes, "seconds", bench_number(alone),
                  "compute_seconds", bench_number(compute), "overlaps", overlaps, "kept",
                  s->kept, "taken", s->taken));
}

static zero_status run_variant(duet *d, bench_field *field, const bench_variant *variant,
                               const bench_run *run)
{
    bench_series series;
    ZERO_TRY(zero_agree(field->comm, bench_series_init(&series, &run->clock, N_WORKS)));
    zero_status st = bench_case_init(&d->c, field, variant, 0, run->options->chunk);
    if (st == ZERO_OK) st = bench_case_check(&d->c);
    if (st == ZERO_OK) st = measure(d, &run->clock, &series);
    if (st == ZERO_OK) st = report(d, &series, run);
    bench_case_destroy(&d->c);
    bench_series_destroy(&series);
    return st;
}

/* A gather in place on one node takes no time that could be hidden; in a collective with a root
 * the other ranks do next to nothing. */
static bool can_overlap(const bench_variant *variant)
{
    bool is_pointer =
        variant->algorithm == ZERO_ALGORITHM_SHM && variant->memory == BENCH_IN_PLACE;
    return !variant->blocking && !is_pointer && !zero_collective_has_root(variant->kind);
}

static zero_status run_variants(bench_field *field, const bench_run *run)
{
    duet d = {0};
    ZERO_TRY(bench_computer_init(&d.computer, field->comm));
    print_header(field);
    for (int i = 0; i < run->n_variants; i++)
        if (can_overlap(&run->variants[i]))
            ZERO_TRY(run_variant(&d, field, &run->variants[i], run));
    return ZERO_OK;
}

zero_status bench_overlap_run(const bench_run *run)
{
    return bench_each_field(run, 1, run_variants);
}
