/* bench_collectives - our collectives against MPI's own, and against memcpy.
 *
 * In each round every variant runs once, and right before or after it all ranks copy as many bytes
 * as the whole array has: `x memcpy` is the median of the ratios of the two. Every result is
 * compared with the expected one before anything is timed.
 *
 *     mpirun -n 2 build/bench_collectives --help */
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/topology.h"
#include "bench_main.h"
#include "bench_modes.h"
#include "comm/launch.h"

#define SAMPLE_BYTES ((size_t)2 << 20) /* smaller arrays run several times in a round */

enum { VARIANT, COPY, PAIR };

typedef struct {
    int n;
    bench_case cases[BENCH_MAX_VARIANTS];
    bench_series series[BENCH_MAX_VARIANTS];
} block;

/* ---- measure ---- */

static zero_status init_rows(block *b, bench_field *field, const bench_run *run)
{
    for (int i = 0; i < run->n_variants; i++) {
        b->n = i + 1;
        ZERO_TRY(bench_case_init(&b->cases[i], field, &run->variants[i], 0,
                                 run->options->chunk));
        ZERO_TRY(
            zero_agree(field->comm, bench_series_init(&b->series[i], &run->clock, PAIR)));
        ZERO_TRY(bench_case_check(&b->cases[i]));
    }
    return ZERO_OK;
}

static void destroy_rows(block *b)
{
    for (int i = 0; i < b->n; i++) {
        bench_series_destroy(&b->series[i]);
        bench_case_destroy(&b->cases[i]);
    }
}

static zero_status measure(block *b, bench_field *field, const bench_run *run)
{
    int repeats = field->bytes < SAMPLE_BYTES ? (int)(SAMPLE_BYTES / field->bytes) : 1;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < b->n; i++) {
            bench_work works[PAIR] = {bench_case_work(&b->cases[i]), bench_copy(field)};
            if (!bench_series_wants_more(&b->series[i])) continue;
            ZERO_TRY(bench_series_add(&b->series[i], &run->clock, works, repeats));
            more = true;
        }
    }
    return ZERO_OK;
}

/* ---- report ---- */

/* The least bytes that cross the busiest link between nodes in one direction: a node's pieces
 * once per other node, or the others' pieces once. A sum needs one value per element from each
 * node, however many ranks it has. */
static double wire_bytes(const bench_case *c)
{
    const zero_layout *layout = &c->field->comm->layout;
    double most = 0.0, piece = (double)c->field->bytes / layout->size;
    if (layout->n_nodes == 1) return 0.0;
    if (zero_collective_has_root(c->variant->kind)) return (double)c->field->bytes;
    for (int r = 0; r < layout->size; r++) {
        int local = zero_layout_local_size(layout, r);
        double pieces = fmax(local * (layout->n_nodes - 1), layout->size - local);
        most = fmax(most, piece * pieces);
    }
    if (c->variant->kind == ZERO_ALL_REDUCE) most *= 2.0;
    return most;
}

/* Bytes per second that each rank must send or receive. */
static double bus_bandwidth(const bench_case *c, double seconds)
{
    double p = c->field->comm->size, bytes = (double)c->field->bytes;
    if (!zero_collective_has_root(c->variant->kind)) bytes *= (p - 1.0) / p;
    if (c->variant->kind == ZERO_ALL_REDUCE) bytes *= 2.0;
    return bytes / seconds;
}

/* The speed relative to MPI's first variant of the same kind; 1 on that row. */
static double against_mpi(const block *b, int row)
{
    for (int i = 0; i < b->n; i++) {
        const bench_variant *variant = b->cases[i].variant;
        if (variant->kind == b->cases[row].variant->kind &&
            zero_algorithm_get(variant->algorithm)->posts_mpi_collectives)
            return bench_seconds(&b->series[i], VARIANT) /
                   bench_seconds(&b->series[row], VARIANT);
    }
    return NAN;
}

static void print_header(const bench_field *field)
{
    printf("\n%s, %.6g KiB\n", zero_type_name(field->type), (double)field->bytes / 1024.0);
    printf("%-15s%-27s%-19s%9s%11s%11s%10s%9s%10s%10s\n", "", "", "memory", "x memcpy",
           "ms", "memcpy ms", "bus GB/s", "of wire", "MPI/this", "kept");
}

static zero_status report_row(const block *b, int row, const bench_run *run)
{
    const bench_case *c = &b->cases[row];
    const bench_series *s = &b->series[row];
    double seconds = bench_seconds(s, VARIANT), copy = bench_seconds(s, COPY);
    double x = bench_ratio(s, VARIANT, COPY), bus = bus_bandwidth(c, seconds);
    double wire =
        run->options->wire > 0.0 ? wire_bytes(c) / run->options->wire / seconds : NAN;
    double speedup = against_mpi(b, row);
    const char *kind = zero_collective_kind_name(c->variant->kind);
    printf("%-15s%-27s%-19s", kind, c->variant->name,
           bench_memory_name(c->variant->memory));
    bench_print_number("%*.4f", 9, x);
    bench_print_number("%*.4f", 11, 1e3 * seconds);
    bench_print_number("%*.4f", 11, 1e3 * copy);
    bench_print_number("%*.3f", 10, 1e-9 * bus);
    bench_print_number("%*.2f", 9, wire);
    bench_print_number("%*.2f", 10, speedup);
    printf("%7d/%d%s\n", s->kept, s->taken, bench_mark(s));
    return bench_report_add(
        run->report,
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i}",
                  "operation", kind, "algorithm", c->variant->name, "memory",
                  bench_memory_name(c->variant->memory), "type",
                  zero_type_name(c->field->type), "bytes", (json_int_t)c->field->bytes,
                  "x_memcpy", bench_number(x), "seconds", bench_number(seconds),
                  "memcpy_seconds", bench_number(copy), "bus_bytes_per_second",
                  bench_number(bus), "of_wire", bench_number(wire), "times_faster_than_mpi",
                  bench_number(speedup), "kept", s->kept, "taken", s->taken));
}

static zero_status run_block(bench_field *field, const bench_run *run)
{
    block b = {0};
    zero_status st = init_rows(&b, field, run);
    if (st == ZERO_OK) st = measure(&b, field, run);
    if (st == ZERO_OK) print_header(field);
    for (int i = 0; st == ZERO_OK && i < b.n; i++) st = report_row(&b, i, run);
    fflush(stdout);
    destroy_rows(&b);
    return st;
}

/* ---- start and end ---- */

/* A rank that waits for a network sleeps now and then, and oversubscribed ranks share cores:
 * there a small share of the core means nothing. */
static zero_status choose_clock(bench_run *run, zero_comm *comm, const char **why)
{
    zero_topology machine;
    ZERO_TRY(zero_topology_read(&machine));
    bool one_node = comm->layout.n_nodes == 1;
    bool fits = comm->size <= machine.allowed_threads;
    run->clock = (bench_clock){comm, one_node && fits, run->options->rounds};
    *why = "rounds in which a rank had its core for < 95 % of the time are dropped";
    if (!fits) *why = "no round is dropped: ranks are oversubscribed";
    if (!one_node)
        *why = "no round is dropped: ranks may sleep while they wait for a network";
    return ZERO_OK;
}

static bool is_wanted(const bench_options *o, const zero_layout *layout,
                      zero_algorithm algorithm)
{
    for (int a = 0; a < ZERO_ALGORITHMS; a++)
        if (o->algorithms[a]) return o->algorithms[algorithm];
    if (algorithm == ZERO_ALGORITHM_SHM) return layout->n_nodes == 1;
    if (algorithm == ZERO_ALGORITHM_HIER) return layout->n_nodes > 1 && layout->in_blocks;
    return true;
}

static void choose_variants(bench_run *run, const zero_layout *layout)
{
    bench_variant all[BENCH_MAX_VARIANTS];
    int n = bench_variants(layout, all);
    for (int i = 0; i < n; i++) {
        if (!is_wanted(run->options, layout, all[i].algorithm) ||
            !run->options->kinds[all[i].kind])
            continue;
        run->variants[run->n_variants++] = all[i];
        run->needs_window = run->needs_window || all[i].memory != BENCH_PRIVATE;
    }
}

static zero_status run_all(bench_run *run, zero_comm *comm)
{
    bench_report report = {0};
    const char *why;
    ZERO_TRY(choose_clock(run, comm, &why));
    if (run->options->fake_nodes > 0)
        ZERO_TRY(zero_comm_pretend_blocks(comm, run->options->fake_nodes));
    choose_variants(run, &comm->layout);
    run->report = &report;
    ZERO_TRY(bench_report_open(&report, &run->clock, run->options, why));
    switch (run->options->mode) {
    case BENCH_OVERLAP: ZERO_TRY(bench_overlap_run(run)); break;
    case BENCH_BACKWARD: ZERO_TRY(bench_backward_run(run)); break;
    case BENCH_TABLE: ZERO_TRY(bench_each_field(run, 1, run_block)); break;
    }
    return zero_agree(comm, bench_report_close(&report));
}

static zero_status bench(void *read, const zero_options *given)
{
    bench_options options;
    zero_comm world;
    (void)given;
    ZERO_TRY(bench_options_take(&options, read));
    bench_run run = {.options = &options};
    ZERO_TRY(zero_launch_start(NULL, NULL));
    ZERO_TRY(zero_comm_world(&world));
    ZERO_TRY(run_all(&run, &world));
    zero_comm_destroy(&world);
    return zero_launch_stop();
}

int main(int argc, char **argv)
{
    zero_command command = bench_collectives_command;
    command.run = bench;
    return bench_main(&command, argc, argv);
}
