/* bench_offload - AdamW on states that lie in a scratch file, beside what the disk can do.
 *
 * States of 12 bytes per parameter stream through a few slots in blocks of 2^18 elements: they
 * are read, verified, updated and written. Beside it in every round runs the disk's trial: as many
 * threads move the same blocks, each reads one and writes it, and do nothing else. Each rank has a
 * file of its own in the directory, as in a run, so ranks of a node share the disk.
 *
 *     build/bench_offload /nvme/scratch */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/fail.h"
#include "base/number.h"
#include "bench_main.h"
#include "bench_report.h"
#include "cli/options.h"
#include "comm/launch.h"
#include "comm/verdict.h"
#include "io/disk_trial.h"
#include "io/scratch.h"
#include "math/backends.h"

#define BLOCK ((int64_t)(ZERO_DISK_BLOCK / (3 * sizeof(float)))) /* elements */

static const int depths[] = {2, 3, 4, 8};

enum { DEPTHS = sizeof depths / sizeof *depths, TRIAL = DEPTHS, WORKS, MOST_SLOTS = 8 };

typedef struct {
    int64_t elements, rounds, threads;
    const char *json;
} wish;

typedef struct {
    wish wish;
    const char *directory;
    zero_comm world;
    int n_blocks, depth; /* of the stream that runs */
    zero_scratch *scratch;
    zero_math math;
    zero_arena memory;      /* as a run has it */
    uint16_t *grad, *param; /* bf16, [n_blocks * BLOCK] */
    char *slots;            /* [MOST_SLOTS][ZERO_DISK_BLOCK] */
    int transfer[MOST_SLOTS];
    int64_t step;
} bench;

typedef struct {
    bench *bench;
    int depth;
} streaming; /* a work of the series */

/* ---- the disk alone ---- */

static zero_status trial(void *arg)
{
    bench *b = arg;
    zero_disk_moved moved;
    zero_disk_load load = {.work = ZERO_DISK_MIXED,
                           .n_blocks = b->n_blocks,
                           .threads = (int)b->wish.threads,
                           .seconds = INFINITY};
    return zero_disk_move(zero_scratch_get_file(b->scratch), &load, &moved);
}

/* ---- the stream ---- */

static char *slot_of(const bench *b, int block)
{
    return b->slots + (size_t)(block % b->depth) * ZERO_DISK_BLOCK;
}

static void update(bench *b, int block)
{
    const zero_adamw hyper = {.lr = 1e-3f,
                              .beta1 = 0.9f,
                              .beta2 = 0.95f,
                              .eps = 1e-8f,
                              .grad_scale = 1.0f,
                              .step = b->step};
    float *states = (float *)(void *)slot_of(b, block);
    int64_t first = (int64_t)block * BLOCK;
    zero_backend_cpu.adamw(&b->math, &hyper,
                           &(zero_adamw_arrays){.n = BLOCK,
                                                .type = ZERO_BF16,
                                                .grad = b->grad + first,
                                                .param = b->param + first,
                                                .master = states,
                                                .m = states + BLOCK,
                                                .v = states + 2 * BLOCK});
}

static zero_status end_of(bench *b, int block)
{
    bool exists = block >= 0 && block < b->n_blocks;
    return exists ? zero_scratch_end(b->scratch, b->transfer[block % b->depth]) : ZERO_OK;
}

/* Reads a block into its slot when the slot's last block has been written. */
static zero_status fetch(bench *b, int block)
{
    if (block >= b->n_blocks) return ZERO_OK;
    ZERO_TRY(end_of(b, block - b->depth));
    return zero_scratch_begin_read(b->scratch, block, slot_of(b, block),
                                   &b->transfer[block % b->depth]);
}

/* Half of the slots are read ahead of the update; the others are written after it. */
static zero_status stream(void *arg)
{
    const streaming *s = arg;
    bench *b = s->bench;
    const int ahead = s->depth / 2;
    b->depth = s->depth;
    b->step++;
    for (int k = 0; k < ahead; k++) ZERO_TRY(fetch(b, k));
    for (int k = 0; k < b->n_blocks; k++) {
        ZERO_TRY(fetch(b, k + ahead));
        ZERO_TRY(end_of(b, k)); /* its read */
        update(b, k);
        ZERO_TRY(zero_scratch_begin_write(b->scratch, k, slot_of(b, k),
                                          &b->transfer[k % b->depth]));
    }
    for (int k = b->n_blocks - b->depth; k < b->n_blocks; k++) ZERO_TRY(end_of(b, k));
    return ZERO_OK;
}

/* ---- opening ---- */

static zero_status open_file(bench *b)
{
    size_t *bytes = malloc((size_t)b->n_blocks * sizeof *bytes);
    if (!bytes) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d blocks", b->n_blocks);
    for (int k = 0; k < b->n_blocks; k++) bytes[k] = ZERO_DISK_BLOCK;
    zero_scratch_input in = {.directory = b->directory,
                             .n_blocks = b->n_blocks,
                             .bytes = bytes,
                             .depth = MOST_SLOTS,
                             .threads = (int)b->wish.threads};
    zero_status st = zero_scratch_open(&in, &b->scratch);
    free(bytes);
    return st;
}

/* Pages are touched before they are timed. */
static zero_status allocate(bench *b)
{
    const size_t n = (size_t)b->n_blocks * (size_t)BLOCK;
    ZERO_TRY(zero_arena_init(&b->memory,
                             MOST_SLOTS * ZERO_DISK_BLOCK + 2 * n * sizeof(uint16_t)));
    b->slots = b->memory.base;
    b->grad = (uint16_t *)(void *)(b->slots + MOST_SLOTS * ZERO_DISK_BLOCK);
    b->param = b->grad + n;
    for (size_t i = 0; i < n; i++) b->grad[i] = 0x3c23; /* 0.01 */
    return zero_backend_cpu.open(&b->math);
}

/* Reserved space is slower when it is written for the first time: that is not measured. */
static zero_status write_once(bench *b)
{
    for (int k = 0; k < b->n_blocks; k++) {
        int t;
        ZERO_TRY(zero_scratch_begin_write(b->scratch, k, b->slots, &t));
        ZERO_TRY(zero_scratch_end(b->scratch, t));
    }
    return ZERO_OK;
}

static zero_status open_all(bench *b)
{
    b->n_blocks = (int)zero_divide_up(b->wish.elements, BLOCK);
    ZERO_TRY(open_file(b));
    ZERO_TRY(allocate(b));
    return write_once(b);
}

static void close_all(bench *b)
{
    zero_scratch_close(b->scratch);
    zero_arena_destroy(&b->memory);
}

/* ---- measuring ---- */

static void print_file(const bench *b)
{
    const zero_scratch_file *file = zero_scratch_get_file(b->scratch);
    printf("%s: %.1f MiB per rank, %s, %d threads; blocks of 2^18 elements, 3 MiB\n",
           file->directory, (double)file->bytes / 0x1p20,
           file->is_direct ? "O_DIRECT" : "through the page cache", (int)b->wish.threads);
    printf(
        "MB/s: read and written by all ranks; of disk: of its rate in the same round\n\n");
    printf("%-28s %8s %9s\n", "", "MB/s", "of disk");
}

/* work: the place of a depth, or TRIAL */
static zero_status report_one(const bench *b, bench_report *report,
                              const bench_series *series, int work)
{
    const bool is_stream = work != TRIAL;
    double bytes = 2.0 * b->n_blocks * (double)ZERO_DISK_BLOCK * b->world.size;
    double rate = bytes / bench_seconds(series, work);
    double of_disk = bench_ratio(series, TRIAL, work);
    char name[64] = "disk, half reads and writes";
    if (is_stream) snprintf(name, sizeof name, "AdamW, %d slots", depths[work]);
    printf("%-28s %7.0f%-1s", name, 1e-6 * rate, bench_mark(series));
    if (is_stream) bench_print_number("%*.2f", 10, of_disk);
    putchar('\n');
    return bench_report_add(
        report, json_pack("{s:s, s:o, s:i, s:i, s:i, s:o, s:o}", "work",
                          is_stream ? "adamw" : "disk", "slots",
                          is_stream ? json_integer(depths[work]) : json_null(), "threads",
                          (int)b->wish.threads, "blocks", b->n_blocks, "kept", series->kept,
                          "bytes_per_second", bench_number(rate), "of_disk",
                          bench_number(is_stream ? of_disk : 1.0)));
}

static zero_status report_all(const bench *b, bench_report *report,
                              const bench_series *series)
{
    print_file(b);
    ZERO_TRY(report_one(b, report, series, TRIAL));
    for (int d = 0; d < DEPTHS; d++) ZERO_TRY(report_one(b, report, series, d));
    return ZERO_OK;
}

static zero_status measure(bench *b, const bench_clock *clock, bench_report *report)
{
    streaming streams[DEPTHS];
    bench_work works[WORKS];
    bench_series series = {0};
    for (int d = 0; d < DEPTHS; d++) {
        streams[d] = (streaming){.bench = b, .depth = depths[d]};
        works[d] = (bench_work){.run = stream, .arg = &streams[d]};
    }
    works[TRIAL] = (bench_work){.run = trial, .arg = b};
    zero_status st = bench_series_init(&series, clock, WORKS);
    while (st == ZERO_OK && bench_series_wants_more(&series))
        st = bench_series_add(&series, clock, works, 1);
    if (st == ZERO_OK) st = report_all(b, report, &series);
    bench_series_destroy(&series);
    return st;
}

static zero_status run_all(bench *b)
{
    bench_report report;
    bench_clock clock = {.comm = &b->world, .rounds = (int)b->wish.rounds};
    const bench_options where = {.json = b->wish.json};
    ZERO_TRY(zero_agree(&b->world, open_all(b)));
    ZERO_TRY(bench_report_open(&report, &clock, &where, "AdamW beside the disk alone"));
    ZERO_TRY(measure(b, &clock, &report));
    return zero_agree(&b->world, bench_report_close(&report));
}

#define FIELD(name) .offset = offsetof(wish, name)

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Measurement", .name = "elements", .kind = ZERO_OPTION_WHOLE, FIELD(elements), .argument = "N", .min = 8 << 18,
     .max = INT64_C(1) << 40, .standard = "16M", .help = "parameters per rank, of 12 bytes each in the file"},
    {.name = "threads", .kind = ZERO_OPTION_WHOLE, FIELD(threads), .argument = "N", .min = 1, .max = MOST_SLOTS, .standard = "4",
     .help = "threads per rank that read and write"},
    {.name = "rounds", .kind = ZERO_OPTION_WHOLE, FIELD(rounds), .argument = "N", .min = 1, .max = 10000, .standard = "15",
     .help = "medians of that many"},
    {.group = "Output", .name = "json", .kind = ZERO_OPTION_TEXT, FIELD(json), .argument = "FILE", .absent = "none",
     .help = "the same rows as JSON"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

static zero_status run(void *options, const zero_options *given);

static const zero_command command = {
    .name = "bench_offload",
    .usage = "[mpirun -n RANKS] bench_offload DIR [options]",
    .about = "Measures AdamW on states in a scratch file in DIR, beside the disk alone.",
    .example = "build/bench_offload /nvme/scratch",
    .exits = ZERO_EXIT_OTHER | ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_WATCHDOG,
    .tables = &table,
    .n_tables = 1,
    .operand = "DIR",
    .size = sizeof(wish),
    .run = run,
};

static zero_status run(void *options, const zero_options *given)
{
    bench b = {.wish = *(const wish *)options};
    if (given->n_operands != 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "expected one DIR, a directory on a disk; found %d",
                         given->n_operands);
    b.directory = given->operands[0];
    ZERO_TRY(zero_launch_start(NULL, NULL));
    ZERO_TRY(zero_comm_world(&b.world));
    ZERO_TRY(run_all(&b));
    close_all(&b);
    zero_comm_destroy(&b.world);
    return zero_launch_stop();
}

int main(int argc, char **argv)
{
    return bench_main(&command, argc, argv);
}
