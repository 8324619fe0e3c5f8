#include "bench_options.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "comm/sentence.h"

#define WORD       32 /* bytes of one word of a list */
#define MAX_ROUNDS 10000
#define MAX_SIZE   ((size_t)1 << 31) /* MPI counts elements of a piece in an int */

typedef struct {
    const char *name, *value; /* as given */
    bench_options *options;
} argument;

static zero_status expected(const argument *a, const char *what)
{
    return zero_fail(ZERO_ERR_INVALID, "%s %s: expected %s (--help shows all options)",
                     a->name, a->value, what);
}

/* ---- lists ---- */

/* The next word of "a,b,c", or false at the end. A word that does not fit is cut: no name is
 * so long. */
static bool next_word(const char **list, char word[WORD])
{
    if (**list == '\0') return false;
    size_t len = strcspn(*list, ",");
    snprintf(word, WORD, "%.*s", (int)(len < WORD ? len : WORD - 1), *list);
    *list += len;
    if (**list == ',') (*list)++;
    return true;
}

static bool read_size(const char *word, size_t *size)
{
    char *end;
    double number = strtod(word, &end), unit = 1.0;
    if (end == word || !(number > 0.0)) return false;
    if (*end == 'K' || *end == 'k') unit = 0x1p10;
    if (*end == 'M' || *end == 'm') unit = 0x1p20;
    if (*end == 'G' || *end == 'g') unit = 0x1p30;
    if (unit > 1.0) end++;
    if (*end != '\0' || number * unit > (double)MAX_SIZE || number * unit < 1.0)
        return false;
    *size = (size_t)(number * unit);
    return true;
}

static zero_status read_sizes(const argument *a)
{
    bench_options *o = a->options;
    const char *list = a->value;
    char word[WORD];
    for (o->n_sizes = 0; next_word(&list, word); o->n_sizes++)
        if (o->n_sizes == BENCH_SIZES || !read_size(word, &o->sizes[o->n_sizes]))
            return expected(a, "sizes (at most 16) of 1 to 2G bytes with commas between "
                               "them, as in 64K,16M,1G");
    return o->n_sizes > 0 ? ZERO_OK : expected(a, "a size, as in 64M");
}

static bool find_type(const char *word, zero_type *type)
{
    static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};
    for (int i = 0; i < BENCH_TYPES; i++) {
        *type = types[i];
        if (strcmp(word, zero_type_name(*type)) == 0) return true;
    }
    return false;
}

static zero_status read_types(const argument *a)
{
    bench_options *o = a->options;
    const char *list = a->value;
    char word[WORD];
    for (o->n_types = 0; next_word(&list, word); o->n_types++)
        if (o->n_types == BENCH_TYPES || !find_type(word, &o->types[o->n_types]))
            return expected(a, "some of fp32,bf16,fp16");
    return o->n_types > 0 ? ZERO_OK : expected(a, "some of fp32,bf16,fp16");
}

static zero_status expected_algorithms(const argument *a)
{
    zero_sentence known = {.used = 0};
    for (int i = 0; zero_algorithm_name_at(i); i++)
        zero_sentence_add(&known, i > 0 ? ",%s" : "some of %s", zero_algorithm_name_at(i));
    return expected(a, known.chars);
}

static zero_status read_algorithms(const argument *a)
{
    const char *list = a->value;
    char word[WORD];
    zero_algorithm algorithm;
    int n = 0;
    for (; next_word(&list, word); n++) {
        if (!zero_algorithm_find(word, &algorithm)) return expected_algorithms(a);
        a->options->algorithms[algorithm] = true;
    }
    return n > 0 ? ZERO_OK : expected_algorithms(a);
}

static zero_status read_kinds(const argument *a)
{
    const char *list = a->value;
    char word[WORD];
    int n = 0;
    memset(a->options->kinds, 0, sizeof a->options->kinds);
    for (; next_word(&list, word); n++) {
        int kind = 0;
        while (kind < ZERO_COLLECTIVE_KINDS &&
               strcmp(word, zero_collective_kind_name((zero_collective_kind)kind)) != 0)
            kind++;
        if (kind == ZERO_COLLECTIVE_KINDS)
            return expected(a, "some of reduce-scatter,all-gather,reduce,broadcast");
        a->options->kinds[kind] = true;
    }
    return n > 0 ? ZERO_OK
                 : expected(a, "some of reduce-scatter,all-gather,reduce,broadcast");
}

/* ---- numbers ---- */

static zero_status read_integer(const argument *a, int most, int *x)
{
    char *end, what[WORD];
    long number = strtol(a->value, &end, 10);
    snprintf(what, sizeof what, "1 to %d", most);
    if (end == a->value || *end != '\0' || number < 1 || number > most)
        return expected(a, what);
    *x = (int)number;
    return ZERO_OK;
}

static zero_status read_positive(const argument *a, double unit, double *x)
{
    char *end;
    double number = strtod(a->value, &end);
    if (end == a->value || *end != '\0' || !(number > 0.0) || !isfinite(number))
        return expected(a, "a number above 0");
    *x = number * unit;
    return ZERO_OK;
}

static zero_status read_rounds(const argument *a)
{
    return read_integer(a, MAX_ROUNDS, &a->options->rounds);
}

static zero_status read_fake_nodes(const argument *a)
{
    return read_integer(a, 1 << 20, &a->options->fake_nodes);
}

static zero_status read_wire(const argument *a)
{
    return read_positive(a, 1e6, &a->options->wire);
}

static zero_status read_compute(const argument *a)
{
    return read_positive(a, 1e-3, &a->options->compute);
}

static zero_status read_chunk(const argument *a)
{
    if (read_size(a->value, &a->options->chunk)) return ZERO_OK;
    return expected(a, "a size in bytes, as in 256K");
}

static zero_status read_json(const argument *a)
{
    a->options->json = a->value;
    return ZERO_OK;
}

/* ---- the table ---- */

static const struct {
    const char *name, *value, *help;
    zero_status (*read)(const argument *a); /* NULL: a mode, without a value */
    bench_mode mode;
} table[] = {
    {"--overlap", "", "instead: how much goes on beside a compute loop that polls", NULL,
     BENCH_OVERLAP},
    {"--backward", "", "instead: a backward pass of 8 buckets, of --sizes together", NULL,
     BENCH_BACKWARD},
    {"--sizes", "LIST",
     "bytes of the whole array (64K,1M,16M,64M; overlap 16M; "
     "backward 32M)",
     read_sizes, BENCH_TABLE},
    {"--types", "LIST", "of fp32,bf16,fp16 (fp32,bf16; overlap and backward fp32)",
     read_types, BENCH_TABLE},
    {"--algorithms", "LIST", "such as p2p,mpi (all that can run here)", read_algorithms,
     BENCH_TABLE},
    {"--kinds", "LIST", "of reduce-scatter,all-gather,reduce,broadcast (all)", read_kinds,
     BENCH_TABLE},
    {"--rounds", "N", "to keep; up to 3 N are taken (15)", read_rounds, BENCH_TABLE},
    {"--wire", "MB/S", "what a node's link carries in each direction", read_wire,
     BENCH_TABLE},
    {"--compute", "MS", "of the backward pass without communication (195)", read_compute,
     BENCH_TABLE},
    {"--chunk", "BYTES", "per message at most (the algorithm's choice)", read_chunk,
     BENCH_TABLE},
    {"--fake-nodes", "K", "this machine stands for K nodes", read_fake_nodes, BENCH_TABLE},
    {"--json", "FILE", "write the rows there as well", read_json, BENCH_TABLE},
    {"--help", "", "this", NULL, BENCH_HELP},
};
#define N_OPTIONS ((int)(sizeof table / sizeof table[0]))

static zero_status read_option(bench_options *o, const char *name, const char *value,
                               int *words)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        if (strcmp(name, table[i].name) != 0) continue;
        *words = table[i].read ? 2 : 1;
        if (!table[i].read) {
            o->mode = table[i].mode;
            return ZERO_OK;
        }
        if (!value) return zero_fail(ZERO_ERR_INVALID, "%s needs a value", name);
        return table[i].read(&(argument){name, value, o});
    }
    return zero_fail(ZERO_ERR_INVALID, "no option '%s' (--help shows all options)", name);
}

/* What the mode does where the command line says nothing. */
static void complete(bench_options *o)
{
    static const size_t sizes[] = {(size_t)64 << 10, (size_t)1 << 20, (size_t)16 << 20,
                                   (size_t)64 << 20};
    if (o->n_sizes == 0 && o->mode == BENCH_TABLE) {
        memcpy(o->sizes, sizes, sizeof sizes);
        o->n_sizes = 4;
    } else if (o->n_sizes == 0) {
        o->sizes[0] = (size_t)(o->mode == BENCH_OVERLAP ? 16 : 32) << 20;
        o->n_sizes = 1;
    }
    if (o->n_types > 0) return;
    o->types[o->n_types++] = ZERO_FP32;
    if (o->mode == BENCH_TABLE) o->types[o->n_types++] = ZERO_BF16;
}

zero_status bench_options_parse(bench_options *options, int argc, char **argv)
{
    bench_options new = {.rounds = 15, .compute = 0.195, .kinds = {true, true, true}};
    for (int i = 1, words = 1; i < argc; i += words)
        ZERO_TRY(read_option(&new, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &words));
    complete(&new);
    *options = new;
    return ZERO_OK;
}

void bench_options_help(void)
{
    printf("Collectives of src/comm against MPI's own and against memcpy:\n\n"
           "    mpirun -n 2 bench_collectives [options]\n\n");
    for (int i = 0; i < N_OPTIONS; i++)
        printf("    %-12s %-6s %s\n", table[i].name, table[i].value, table[i].help);
}
