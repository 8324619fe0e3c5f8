#include "bench_options.h"

#include "base/fail.h"
#include "base/type.h"

/* The values as given. */
typedef struct {
    bool overlap, backward;
    const char *sizes, *types, *algorithms, *kinds, *json;
    int64_t rounds, fake_nodes, chunk;
    double wire, compute; /* MB/s, ms */
} wish;

#define FIELD(name) .offset = offsetof(wish, name)
#define FLAG        .kind = ZERO_OPTION_FLAG, .standard = "off"
#define LIST        .kind = ZERO_OPTION_TEXT, .argument = "LIST"

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Mode", .name = "overlap", FLAG, FIELD(overlap), .help = "overlap with a compute loop that polls"},
    {.name = "backward", FLAG, FIELD(backward), .help = "a backward pass of 8 buckets, of --sizes together"},
    {.group = "Measurement", .name = "sizes", LIST, FIELD(sizes), .absent = "64KiB,1MiB,16MiB,64MiB; overlap 16MiB; backward 32MiB",
     .help = "bytes of the whole array"},
    {.name = "types", LIST, FIELD(types), .absent = "fp32,bf16; overlap, backward: fp32", .help = "some of fp32,bf16,fp16"},
    {.name = "algorithms", LIST, FIELD(algorithms), .absent = "all that can run here", .help = "some of the algorithms of --collectives"},
    {.name = "kinds", LIST, FIELD(kinds), .absent = "all", .help = "some of reduce-scatter,all-gather,reduce,broadcast"},
    {.name = "rounds", .kind = ZERO_OPTION_WHOLE, FIELD(rounds), .argument = "N", .min = 1, .max = 10000, .standard = "15",
     .help = "rounds to keep; up to 3 N are taken"},
    {.name = "wire", .kind = ZERO_OPTION_REAL, FIELD(wire), .argument = "MB/S", .low = 1e-6, .high = 1e9, .absent = "not known",
     .help = "what a node's link carries in each direction"},
    {.name = "compute", .kind = ZERO_OPTION_REAL, FIELD(compute), .argument = "MS", .low = 1e-6, .high = 1e9, .standard = "195",
     .help = "compute of the backward pass"},
    {.name = "chunk", .kind = ZERO_OPTION_WHOLE, FIELD(chunk), .argument = "BYTES", .min = 1, .max = INT32_MAX, .absent = "the algorithm's choice",
     .help = "bytes per message at most"},
    {.name = "fake-nodes", .kind = ZERO_OPTION_WHOLE, FIELD(fake_nodes), .argument = "N", .min = 1, .max = 1 << 20, .absent = "the real ones",
     .help = "let this machine stand for N nodes"},
    {.name = "json", .kind = ZERO_OPTION_TEXT, FIELD(json), .argument = "FILE", .absent = "no file", .help = "also write the rows there"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

const zero_command bench_collectives_command = {
    .name = "bench_collectives",
    .usage = "mpirun -n RANKS bench_collectives [options]",
    .about = "Measures the collectives of src/comm against MPI's own and against memcpy.",
    .example = "mpirun -n 2 build/bench_collectives --sizes 1MiB,16MiB --rounds 5",
    .exits = ZERO_EXIT_OTHER | ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_WATCHDOG,
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(wish),
};

static const char *kind_at(int i)
{
    return i < ZERO_COLLECTIVE_KINDS ? zero_collective_kind_name((zero_collective_kind)i)
                                     : NULL;
}

static zero_status read_sizes(const wish *w, bench_options *o)
{
    static const char *const standard[] = {[BENCH_TABLE] = "64KiB,1MiB,16MiB,64MiB",
                                           [BENCH_OVERLAP] = "16MiB",
                                           [BENCH_BACKWARD] = "32MiB"};
    return bench_list_read_sizes("sizes", w->sizes ? w->sizes : standard[o->mode], o->sizes,
                                 &o->n_sizes);
}

static zero_status read_types(const wish *w, bench_options *o)
{
    int which[BENCH_LIST];
    const char *standard = o->mode == BENCH_TABLE ? "fp32,bf16" : "fp32";
    ZERO_TRY(bench_list_read("types", w->types ? w->types : standard, zero_type_name_at,
                             which, &o->n_types));
    for (int i = 0; i < o->n_types; i++) o->types[i] = (zero_type)which[i];
    return ZERO_OK;
}

/* Marks the listed ones of what name_at() names; none without a list. */
static zero_status mark(const char *option, const char *list, const char *(*name_at)(int i),
                        bool marked[])
{
    int which[BENCH_LIST], n;
    if (!list) return ZERO_OK;
    ZERO_TRY(bench_list_read(option, list, name_at, which, &n));
    for (int i = 0; i < n; i++) marked[which[i]] = true;
    return ZERO_OK;
}

zero_status bench_options_take(bench_options *o, const void *read)
{
    const wish *w = read;
    *o = (bench_options){.mode = w->overlap    ? BENCH_OVERLAP
                                 : w->backward ? BENCH_BACKWARD
                                               : BENCH_TABLE,
                         .rounds = (int)w->rounds,
                         .wire = w->wire > 0.0 ? 1e6 * w->wire : 0.0,
                         .compute = 1e-3 * w->compute,
                         .fake_nodes = (int)w->fake_nodes,
                         .chunk = (size_t)w->chunk,
                         .json = w->json};
    if (w->overlap && w->backward)
        return zero_fail(ZERO_ERR_INVALID, "give --overlap or --backward, not both");
    ZERO_TRY(read_sizes(w, o));
    ZERO_TRY(read_types(w, o));
    ZERO_TRY(mark("algorithms", w->algorithms, zero_algorithm_name_at, o->algorithms));
    for (int k = 0; k < ZERO_COLLECTIVE_KINDS; k++) o->kinds[k] = !w->kinds;
    return mark("kinds", w->kinds, kind_at, o->kinds);
}
