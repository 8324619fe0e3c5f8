/* A backward pass without the training: while the gradients of one bucket are computed, those of
 * the buckets before it are reduced.
 *
 *     compute 0 | compute 1        | compute 2        | ...        | wait for all
 *               | reduce-scatter 0 | reduce-scatter 1 ...
 *
 * The result is the time of the whole pass over that of the compute alone. */
#include <stdio.h>

#include "base/fail.h"
#include "bench_compute.h"
#include "bench_modes.h"

#define BUCKETS 8
#define GAP     1e-3 /* seconds between polls */

typedef struct {
    const bench_variant *variant; /* NULL: compute alone */
    double gap;
    double compute; /* seconds, of all buckets */
    const bench_computer *computer;
    bench_case cases[BUCKETS];
} pass;

typedef struct {
    int n;
    pass passes[BENCH_WORKS];
} passes;

static zero_status prepare(void *arg)
{
    pass *p = arg;
    for (int b = 0; p->variant && b < BUCKETS; b++)
        ZERO_TRY(bench_case_prepare(&p->cases[b]));
    return ZERO_OK;
}

static zero_status reduce(pass *p, int b)
{
    bench_case *c = &p->cases[b];
    if (!p->variant) return ZERO_OK;
    if (p->variant->blocking) return bench_case_run(c);
    return zero_collective_begin(&c->op, c->in, c->out, c->staging.base);
}

static zero_status run_pass(void *arg)
{
    pass *p = arg;
    for (int b = 0; b < BUCKETS; b++) {
        ZERO_TRY(bench_compute(p->computer, p->compute / BUCKETS, p->gap));
        ZERO_TRY(reduce(p, b));
    }
    for (int b = 0; p->variant && b < BUCKETS; b++)
        ZERO_TRY(zero_collective_wait(&p->cases[b].op));
    return ZERO_OK;
}

static void add_pass(passes *all, const bench_variant *variant, double gap)
{
    all->passes[all->n++] = (pass){.variant = variant, .gap = gap};
}

static void choose(passes *all, const bench_run *run)
{
    add_pass(all, NULL, BENCH_NO_POLL);
    for (int i = 0; i < run->n_variants; i++) {
        if (run->variants[i].kind != ZERO_REDUCE_SCATTER) continue;
        add_pass(all, &run->variants[i], BENCH_NO_POLL);
        if (!run->variants[i].blocking) add_pass(all, &run->variants[i], GAP);
    }
}

static zero_status init(passes *all, bench_field *field, const bench_computer *computer,
                        const bench_run *run)
{
    for (int i = 0; i < all->n; i++) {
        pass *p = &all->passes[i];
        p->compute = run->options->compute;
        p->computer = computer;
        for (int b = 0; p->variant && b < BUCKETS; b++) {
            ZERO_TRY(
                bench_case_init(&p->cases[b], field, p->variant, b, run->options->chunk));
            ZERO_TRY(bench_case_check(&p->cases[b]));
        }
    }
    return ZERO_OK;
}

static void destroy(passes *all)
{
    for (int i = 0; i < all->n; i++)
        for (int b = 0; b < BUCKETS; b++) bench_case_destroy(&all->passes[i].cases[b]);
}

static const char *describe(const pass *p)
{
    if (!p->variant) return "";
    if (p->variant->blocking) return "blocking";
    return p->gap < 0.0 ? "not polled" : "polled every 1 ms";
}

static zero_status report(const passes *all, const bench_field *field,
                          const bench_series *s, const bench_run *run)
{
    printf("\nbackward: %d buckets, %s, %.6g KiB together; kept %d/%d%s\n", BUCKETS,
           zero_type_name(field->type), (double)field->bytes / 1024.0, s->kept, s->taken,
           bench_mark(s));
    printf("%-27s%-17s%10s%18s\n", "", "", "ms", "total / compute");
    for (int i = 0; i < all->n; i++) {
        const pass *p = &all->passes[i];
        const char *name = p->variant ? p->variant->name : "compute alone";
        double seconds = bench_seconds(s, i), ratio = bench_ratio(s, i, 0);
        printf("%-27s%-17s", name, describe(p));
        bench_print_number("%*.1f", 10, 1e3 * seconds);
        bench_print_number("%*.2f", 18, ratio);
        printf("\n");
        ZERO_TRY(bench_report_add(
            run->report,
            json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:i, s:i}", "operation",
                      "backward", "algorithm", name, "progress", describe(p), "type",
                      zero_type_name(field->type), "bytes", (json_int_t)field->bytes,
                      "seconds", bench_number(seconds), "total_over_compute",
                      bench_number(ratio), "kept", s->kept, "taken", s->taken)));
    }
    fflush(stdout);
    return ZERO_OK;
}

static zero_status measure(passes *all, bench_series *series, const bench_clock *clock)
{
    bench_work works[BENCH_WORKS];
    for (int i = 0; i < all->n; i++)
        works[i] = (bench_work){prepare, run_pass, &all->passes[i]};
    while (bench_series_wants_more(series))
        ZERO_TRY(bench_series_add(series, clock, works, 1));
    return ZERO_OK;
}

static zero_status run_field(bench_field *field, const bench_run *run)
{
    passes all = {0};
    bench_computer computer;
    bench_series series;
    ZERO_TRY(bench_computer_init(&computer, field->comm));
    choose(&all, run);
    ZERO_TRY(zero_agree(field->comm, bench_series_init(&series, &run->clock, all.n)));
    zero_status st = init(&all, field, &computer, run);
    if (st == ZERO_OK) st = measure(&all, &series, &run->clock);
    if (st == ZERO_OK) st = report(&all, field, &series, run);
    destroy(&all);
    bench_series_destroy(&series);
    return st;
}

zero_status bench_backward_run(const bench_run *run)
{
    return bench_each_field(run, BUCKETS, run_field);
}
