#include "bench_step_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"

#define SEQUENCES 4 /* over all ranks: 1024 tokens at T 256, 256 at T 64 */

typedef struct {
    const char *name, *value; /* as given */
    bench_step_options *options;
} argument;

static zero_status expected(const argument *a, const char *what)
{
    return zero_fail(ZERO_ERR_INVALID, "%s %s: expected %s (--help shows all options)",
                     a->name, a->value, what);
}

/* ---- lists: words with commas between them, each once ---- */

static zero_status read_stages(const argument *a)
{
    bench_step_options *o = a->options;
    bool is_there[BENCH_STAGES] = {false};
    const char *at = a->value;
    for (o->n_stages = 0; *at; o->n_stages++) {
        int stage = *at - '0';
        if (stage < 0 || stage >= BENCH_STAGES || is_there[stage]) break;
        is_there[stage] = true;
        o->stages[o->n_stages] = stage;
        at++;
        if (at[0] == ',' && at[1]) at++;
    }
    bool is_list =
        *at == '\0' && o->n_stages > 0 && strlen(a->value) == 2 * (size_t)o->n_stages - 1;
    return is_list ? ZERO_OK : expected(a, "some of 0,1,2,3, each once");
}

static const char *find_dtype(const char *word, size_t length)
{
    for (int i = 0; i < ZERO_TYPES; i++) {
        const char *name = zero_type_name((zero_type)i);
        if (strlen(name) == length && memcmp(name, word, length) == 0) return name;
    }
    return NULL;
}

static zero_status read_dtypes(const argument *a)
{
    bench_step_options *o = a->options;
    const char *what = "some of fp32,bf16,fp16, each once", *at = a->value;
    for (o->n_dtypes = 0;; o->n_dtypes++) {
        size_t length = strcspn(at, ",");
        const char *name = find_dtype(at, length);
        if (!name || o->n_dtypes == BENCH_DTYPES) return expected(a, what);
        for (int i = 0; i < o->n_dtypes; i++)
            if (o->dtypes[i] == name) return expected(a, what);
        o->dtypes[o->n_dtypes] = name;
        at += length;
        if (*at++ == '\0') break;
    }
    o->n_dtypes++;
    return ZERO_OK;
}

/* ---- numbers ---- */

static zero_status read_count(const argument *a, int *count)
{
    char *end;
    long number = strtol(a->value, &end, 10);
    if (end == a->value || *end != '\0' || number < 1 || number > 1000)
        return expected(a, "1 to 1000");
    *count = (int)number;
    return ZERO_OK;
}

static zero_status read_rounds(const argument *a)
{
    return read_count(a, &a->options->rounds);
}

static zero_status read_steps(const argument *a)
{
    return read_count(a, &a->options->steps);
}

static zero_status read_json(const argument *a)
{
    a->options->json = a->value;
    return ZERO_OK;
}

/* ---- the table ---- */

static const struct {
    const char *name, *value, *help;
    zero_status (*read)(const argument *a);
} table[] = {
    {"--stages", "LIST", "of 0,1,2,3: compared step by step, in turns (--stage)",
     read_stages},
    {"--dtypes", "LIST", "of fp32,bf16,fp16: the same (--dtype)", read_dtypes},
    {"--rounds", "N", "medians are over so many (4)", read_rounds},
    {"--steps", "N", "of each engine in a round (2)", read_steps},
    {"--json", "FILE", "write the rows there as well", read_json},
};
#define N_OPTIONS ((int)(sizeof table / sizeof table[0]))

static zero_status read_own(bench_step_options *o, int argc, char **argv, int at, bool *own)
{
    *own = false;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (strcmp(argv[at], table[i].name) != 0) continue;
        *own = true;
        if (at + 1 == argc)
            return zero_fail(ZERO_ERR_INVALID, "%s needs a value", argv[at]);
        return table[i].read(&(argument){argv[at], argv[at + 1], o});
    }
    return ZERO_OK;
}

zero_status bench_step_options_parse(bench_step_options *options, int argc, char **argv)
{
    bench_step_options new = {.rounds = 4, .steps = 2};
    int others = 0;
    for (int i = 1; i < argc; i++) {
        bool own;
        ZERO_TRY(read_own(&new, argc, argv, i, &own));
        if (own)
            i++;
        else
            argv[1 + others++] = argv[i];
    }
    ZERO_TRY(zero_options_parse(&new.train, others, argv + 1));
    new.config = new.train.config;
    new.help = new.train.help;
    *options = new;
    return ZERO_OK;
}

void bench_step_options_destroy(bench_step_options *options)
{
    zero_options_destroy(&options->train);
}

zero_status bench_step_options_complete(bench_step_options *options, int n_ranks)
{
    zero_config *c = &options->config;
    bool chosen = zero_options_is_set(&options->train, "micro-batch") ||
                  zero_options_is_set(&options->train, "global-batch");
    if (!zero_options_is_set(&options->train, "model")) c->model = "gpt2";
    if (!zero_options_is_set(&options->train, "seq")) c->seq = 256;
    if (!chosen) c->micro_batch = n_ranks < SEQUENCES ? SEQUENCES / n_ranks : 1;
    if (options->n_stages == 0) options->stages[options->n_stages++] = c->stage;
    if (options->n_dtypes == 0) options->dtypes[options->n_dtypes++] = c->dtype;
    ZERO_TRY(zero_config_check(c));
    return zero_config_complete(c, n_ranks);
}

void bench_step_options_help(const char *usage)
{
    printf("%s", usage);
    for (int i = 0; i < N_OPTIONS; i++)
        printf("    %-12s %-6s %s\n", table[i].name, table[i].value, table[i].help);
    printf(
        "\nand what zero train --help lists. Left open, it is --model gpt2 --seq 256, and "
        "4 sequences\nper step over all ranks.\n");
}
