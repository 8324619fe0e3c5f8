#include "cli/generate_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/option_value.h"
#include "cli/suggest.h"
#include "cli/usage.h"

enum {
    PROMPT,
    PROMPT_TOKENS,
    TOKENS,
    TEMPERATURE,
    TOP_K,
    SEED,
    RAW,
    STAGE,
    DTYPE,
    MEMORY_LIMIT,
    HELP,
    N_OPTIONS
};

#define TEXT      .kind = ZERO_OPTION_TEXT
#define FLAG      .kind = ZERO_OPTION_FLAG, .standard = "off"
#define WHOLE(lo) .kind = ZERO_OPTION_WHOLE, .argument = "N", .min = (lo)

#define MOST_TOKENS INT64_C(1000000000)

/* clang-format off */
static const zero_option table[N_OPTIONS] = {
    [PROMPT] = {.group = "What is written", .name = "prompt", TEXT, .argument = "TEXT", .absent = "an empty line",
                .help = "what the text begins with"},
    [PROMPT_TOKENS] = {.name = "prompt-tokens", TEXT, .argument = "IDS", .absent = "none", .help = "the same as ids, 1,2,3; then ids are printed"},
    [TOKENS] = {.name = "tokens", WHOLE(1), .max = MOST_TOKENS, .standard = "200", .help = "tokens that follow the prompt"},
    [TEMPERATURE] = {.name = "temperature", .kind = ZERO_OPTION_REAL, .argument = "X", .low = 0, .high = 1000, .standard = "0.8",
                     .help = "1: as the model says; below, likelier words; 0: the likeliest"},
    [TOP_K] = {.name = "top-k", WHOLE(0), .max = MOST_TOKENS, .standard = "0", .help = "draw among the N likeliest tokens; 0: among all"},
    [SEED] = {.name = "seed", WHOLE(0), .max = INT64_MAX, .standard = "1337", .help = "of the draws: the same seed gives the same text"},
    [RAW] = {.name = "raw", FLAG, .help = "print all bytes, not only those harmless to a terminal"},
    [STAGE] = {.group = "Who holds the model", .name = "stage", WHOLE(0), .max = 3, .standard = "0",
               .help = "0: every rank; 1, 2: each node once; 3: in parts on all ranks"},
    [DTYPE] = {.name = "dtype", .kind = ZERO_OPTION_CHOICE, .words = "fp32|bf16|fp16", .absent = "the run's", .help = "of parameters and products"},
    [MEMORY_LIMIT] = {.name = "memory-limit", WHOLE(0), .max = INT64_MAX, .absent = "the machine's", .help = "bytes per rank that it may need; 0: do not check"},
    [HELP] = {.group = "General", .name = "help", FLAG, .help = "show this text"},
};
/* clang-format on */

/* What the command line says, not yet checked. */
struct given {
    const char *text[N_OPTIONS]; /* NULL where one is not given */
    const char *path;
};

/* ---- sorting the arguments ---- */

static int find(const char *name, size_t length)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return i;
    return -1;
}

static zero_status unknown(const char *argument, size_t length)
{
    char word[64] = "";
    const char *names[N_OPTIONS];
    for (int i = 0; i < N_OPTIONS; i++) names[i] = table[i].name;
    if (length < sizeof word) memcpy(word, argument + strspn(argument, "-"), length);
    const char *nearest = zero_suggest(word, N_OPTIONS, names);
    if (!nearest)
        return zero_fail(ZERO_ERR_INVALID,
                         "%.80s: no such option; zero generate --help lists all", argument);
    return zero_fail(ZERO_ERR_INVALID, "%.80s: no such option; did you mean --%s?",
                     argument, nearest);
}

static zero_status take_path(struct given *g, const char *path)
{
    if (g->path)
        return zero_fail(ZERO_ERR_INVALID,
                         "one checkpoint expected, found %.200s and %.200s; a prompt of "
                         "several words stands in quotes",
                         g->path, path);
    g->path = path;
    return ZERO_OK;
}

/* Takes argv[*i], and the next where the value stands apart. */
static zero_status take(int argc, char **argv, int *i, struct given *g)
{
    const char *argument = argv[*i];
    if (argument[0] != '-') return take_path(g, argument);
    const char *name = argument + strspn(argument, "-"), *value = strchr(name, '=');
    size_t length = value ? (size_t)(value - name) : strlen(name);
    int index = strncmp(argument, "--", 2) == 0 ? find(name, length) : -1;
    if (index < 0) return unknown(argument, length);
    bool is_flag = table[index].kind == ZERO_OPTION_FLAG;
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    if (value)
        value++;
    else if (is_flag)
        value = "on";
    else if (next && strncmp(next, "--", 2) != 0)
        value = argv[++*i];
    else
        return zero_fail(ZERO_ERR_INVALID, "--%s: expected a value behind it, found %s",
                         table[index].name, next ? next : "the end of the line");
    if (g->text[index])
        return zero_fail(ZERO_ERR_INVALID,
                         "--%s is given twice, as %.80s and as %.80s; keep one",
                         table[index].name, g->text[index], value);
    g->text[index] = value;
    return ZERO_OK;
}

/* ---- values ---- */

/* What an option is, with its default. */
static const char *text_of(const struct given *g, int index)
{
    return g->text[index] ? g->text[index] : table[index].standard;
}

static zero_status read_whole(const struct given *g, int index, int64_t *number)
{
    const char *text = text_of(g, index);
    char where[128];
    if (!text) return ZERO_OK;
    snprintf(where, sizeof where, "--%s %.80s", table[index].name, text);
    return zero_option_read_whole(text, where, table[index].min, table[index].max, number);
}

static zero_status read_real(const struct given *g, int index, double *number)
{
    const zero_option *option = &table[index];
    const char *text = text_of(g, index);
    double x;
    if (zero_option_parse_rate(text, &x) && x >= option->low && x <= option->high) {
        *number = x;
        return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "--%s %.80s: expected a decimal number from %g to %g, such as 0.5",
                     option->name, text, option->low, option->high);
}

static zero_status read_flag(const struct given *g, int index, bool *on)
{
    const char *text = text_of(g, index);
    *on = strcmp(text, "on") == 0;
    if (*on || strcmp(text, "off") == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s %.80s: expected on or off", table[index].name,
                     text);
}

static zero_status read_dtype(const struct given *g, zero_generate_options *o)
{
    const char *text = g->text[DTYPE];
    o->dtype = text;
    if (!text || strcmp(text, "fp32") == 0 || strcmp(text, "bf16") == 0 ||
        strcmp(text, "fp16") == 0)
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--dtype %.80s: expected one of %s", text,
                     table[DTYPE].words);
}

/* "1,2,3"; whether the vocabulary has them is seen later. */
static zero_status read_ids(const char *text, zero_generate_options *o)
{
    o->prompt_tokens = malloc((strlen(text) / 2 + 1) * sizeof *o->prompt_tokens);
    if (!o->prompt_tokens) return zero_fail(ZERO_ERR_NOMEM, "no memory for the prompt");
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        long id = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        if (id < 0 || id > INT32_MAX || errno || (*end != ',' && *end != '\0'))
            return zero_fail(
                ZERO_ERR_INVALID,
                "--prompt-tokens %.80s: expected ids with commas between them, "
                "as in 1,2,3; found '%.20s'",
                text, at);
        o->prompt_tokens[o->n_prompt_tokens++] = (int32_t)id;
        at = end;
        if (*at == '\0') return ZERO_OK;
    }
}

static zero_status read_prompt(const struct given *g, zero_generate_options *o)
{
    o->prompt = g->text[PROMPT];
    if (o->prompt && *o->prompt == '\0')
        return zero_fail(ZERO_ERR_INVALID,
                         "--prompt: expected a text, found an empty one; leave it out to "
                         "begin with an empty line");
    if (o->prompt && g->text[PROMPT_TOKENS])
        return zero_fail(ZERO_ERR_INVALID,
                         "--prompt and --prompt-tokens are two beginnings; keep one");
    return g->text[PROMPT_TOKENS] ? read_ids(g->text[PROMPT_TOKENS], o) : ZERO_OK;
}

static zero_status read_values(const struct given *g, zero_generate_options *o)
{
    o->memory_limit = -1;
    ZERO_TRY(read_whole(g, TOKENS, &o->tokens));
    ZERO_TRY(read_real(g, TEMPERATURE, &o->temperature));
    ZERO_TRY(read_whole(g, TOP_K, &o->top_k));
    ZERO_TRY(read_whole(g, SEED, &o->seed));
    ZERO_TRY(read_flag(g, RAW, &o->raw));
    ZERO_TRY(read_whole(g, STAGE, &o->stage));
    ZERO_TRY(read_dtype(g, o));
    ZERO_TRY(read_whole(g, MEMORY_LIMIT, &o->memory_limit));
    ZERO_TRY(read_prompt(g, o));
    o->checkpoint = g->path;
    if (o->checkpoint) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "zero generate: expected a checkpoint, as in zero generate DIR "
                     "--prompt 'Once'");
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

zero_status zero_generate_options_parse(zero_generate_options *options, int argc,
                                        char **argv)
{
    struct given given = {0};
    zero_generate_options read = {.help = asks_for_help(argc, argv)};
    zero_status st = ZERO_OK;
    for (int i = 0; !read.help && st == ZERO_OK && i < argc; i++)
        st = take(argc, argv, &i, &given);
    if (!read.help && st == ZERO_OK) st = read_values(&given, &read);
    if (st == ZERO_OK)
        *options = read;
    else
        zero_generate_options_destroy(&read);
    return st;
}

void zero_generate_options_destroy(zero_generate_options *options)
{
    free(options->prompt_tokens);
    *options = (zero_generate_options){0};
}

void zero_generate_help(FILE *out)
{
    fputs("zero generate CHECKPOINT [options] lets a trained model write, alone or under "
          "mpirun.\n"
          "CHECKPOINT is a directory step-00000100, or one of such directories: then the "
          "newest.\n"
          "The text depends on model, prompt and options alone, not on the number of "
          "ranks.\n",
          out);
    zero_usage_rows(N_OPTIONS, table, out);
}
