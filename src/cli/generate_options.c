#include "cli/generate_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"
#include "cli/machine.h"
#include "math/device.h"
#include "nn/share.h"
#include "sharding/plan_input.h"
#include "sharding/stages.h"

#define TEXT          .kind = ZERO_OPTION_TEXT
#define FLAG          .kind = ZERO_OPTION_FLAG, .standard = "off"
#define WHOLE(lo, hi) .kind = ZERO_OPTION_WHOLE, .argument = "N", .min = (lo), .max = (hi)
#define FIELD(name)   .offset = offsetof(zero_generate_options, name)

#define MOST_TOKENS INT64_C(1000000000)

/* ---- where options have no effect ---- */

static bool is_alone(const void *run)
{
    return ((const zero_generate_facts *)run)->ranks == 1;
}

static bool prints_ids(const void *run)
{
    return ((const zero_generate_facts *)run)->options->prompt_ids;
}

/* clang-format off */
#define IDLE(...)           .idle = {__VA_ARGS__}
#define IF(condition, text) {.holds = (condition), .words = (text)}
#define DRAWN               IDLE({.option = "temperature", .value = "0"})

static const zero_option rows[] = {
    {.group = "Text", .name = "prompt", TEXT, FIELD(prompt), .argument = "TEXT",
     .absent = "an empty line",
     .help = "what the text begins with"},
    {.name = "prompt-tokens", TEXT, FIELD(prompt_ids), .argument = "IDS", .absent = "none",
     .help = "the same as ids, 1,2,3; then ids are printed"},
    {.name = "prompts", TEXT, FIELD(prompts), .argument = "FILE", .absent = "none",
     .help = "a text begins with each line of it; each is the same as alone. An empty "
         "line is a text without --prompt; those at the end are left out"},
    {.name = "batch", WHOLE(1, ZERO_TEXTS), FIELD(batch), IDLE({.option = "prompts"}),
     .standard = "16", .help = "texts that are generated at one time"},
    {.name = "tokens", WHOLE(1, MOST_TOKENS), FIELD(tokens), .standard = "200",
     .help = "tokens that follow the prompt; fewer, if one of them ends the text"},
    {.name = "temperature", .kind = ZERO_OPTION_REAL, FIELD(temperature), .argument = "X",
     .low = 0, .high = 1000, .standard = "0.8",
     .help = "1: as the model says; below 1: likelier words; 0: the likeliest"},
    {.name = "top-k", WHOLE(0, MOST_TOKENS), FIELD(top_k), DRAWN, .standard = "0",
     .help = "draw among the N likeliest tokens; 0: among all"},
    {.name = "top-p", .kind = ZERO_OPTION_REAL, FIELD(top_p), DRAWN, .argument = "P",
     .low = 1e-6, .high = 1, .standard = "1",
     .help = "draw among the fewest, likeliest first, whose probabilities reach P of "
         "those of --top-k together; 1: among all"},
    {.name = "ignore-end", FLAG, FIELD(ignore_end),
     .help = "write on after a token that ends a text"},
    {.name = "seed", WHOLE(0, INT64_MAX), FIELD(seed), DRAWN, .standard = "1337",
     .help = "of the draws: the same seed gives the same text"},
    {.name = "raw", FLAG, FIELD(raw), IDLE(IF(prints_ids,
     "has no effect with --prompt-tokens: ids are printed")),
     .help = "print all bytes, not only those harmless to a terminal"},
    {.group = "Placement", .name = "stage", WHOLE(0, ZERO_STAGE_COUNT - 1), FIELD(stage),
     IDLE(IF(is_alone, "has no effect on one rank")), .standard = "0",
     .help = "where the model lies: 0 on every rank; 1, 2 once per node; 3 in shards on "
         "all ranks"},
    {.name = "dtype", .kind = ZERO_OPTION_CHOICE, FIELD(dtype),
     .name_at = zero_type_name_at, .absent = "the run's; of an imported model fp32",
     .help = "of parameters and products"},
    {.name = "activations", .kind = ZERO_OPTION_CHOICE, FIELD(activations),
     .name_at = zero_type_name_at, .absent = "fp32; with --device what it likes",
     .help = "what units hand on: of fp32, or of --dtype's 16 bits"},
    {.name = "device", TEXT, FIELD(device), .argument = "cpu|cuda[:LIST]",
     .standard = "cpu",
     .help = "where it computes; cuda:0,2: on these GPUs of each machine, else on all"},
    {.name = "tp", WHOLE(1, ZERO_TP_MOST), FIELD(tp.ranks), .standard = "1",
     .help = "neighbouring ranks that share each product, and so the model"},
    {.name = "tp-slices", WHOLE(1, ZERO_TP_MOST), FIELD(tp.slices), .absent = "--tp",
     .help = "slices of a sum over what --tp cuts: the same text for every --tp that "
         "divides N"},
    {.name = "tp-across-nodes", FLAG, FIELD(tp.across_nodes), IDLE({.option = "tp"}),
     .help = "let ranks of several nodes share a product"},
    {.name = "threads", WHOLE(1, ZERO_MOST_THREADS), FIELD(threads),
     .absent = "OMP_NUM_THREADS, or 1",
     .help = "threads that compute in each rank; the same text with any number"},
    {.name = "memory-limit", WHOLE(0, INT64_MAX), FIELD(memory_limit),
     .absent = "what is free",
     .help = "bytes per rank that it may need; 0: do not check"},
    {.group = "Diagnosis", .name = "watchdog", .kind = ZERO_OPTION_REAL, FIELD(watchdog),
     .argument = "X", .low = 0, .high = 1e6, .standard = "120",
     .help = "end a job in which nothing moves for X seconds, or a disk does not answer; "
         "0: never. The default is five times as long while MPI starts"},
    {.name = NULL},
};
/* clang-format on */

const zero_option_table zero_generate_table = {.rows = rows};

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
            return zero_fail(ZERO_ERR_INVALID,
                             "--prompt-tokens %.80s: expected ids with commas between "
                             "them, as in 1,2,3; found '%.20s'",
                             text, at);
        o->prompt_tokens[o->n_prompt_tokens++] = (int32_t)id;
        at = end;
        if (*at == '\0') return ZERO_OK;
    }
}

static zero_status check(zero_generate_options *o)
{
    if (o->given.n_operands == 0)
        return zero_fail(ZERO_ERR_INVALID, "generate needs a checkpoint or a model, as in "
                                           "zero generate DIR --prompt 'Once'");
    if (o->given.n_operands != 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "expected one checkpoint, found %.200s and %.200s; quote a prompt "
                         "of several words",
                         o->given.operands[0], o->given.operands[1]);
    o->checkpoint = o->given.operands[0];
    bool has_device = strcmp(o->device, zero_device_name_at(0)) != 0;
    zero_tp_take_defaults(&o->tp, false, 0);
    if (has_device && o->tp.slices != 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "--tp %" PRId64 " --tp-slices %" PRId64
                         " with --device %s: a device does not yet add up what several "
                         "ranks or slices compute; leave one of them out",
                         o->tp.ranks, o->tp.slices, o->device);
    if (o->prompt && o->prompt_ids)
        return zero_fail(ZERO_ERR_INVALID, "give --prompt or --prompt-tokens, not both");
    if (o->prompts && (o->prompt || o->prompt_ids))
        return zero_fail(ZERO_ERR_INVALID,
                         "give --prompts or %s, not both: a file's lines are all texts",
                         o->prompt ? "--prompt" : "--prompt-tokens");
    return o->prompt_ids ? read_ids(o->prompt_ids, o) : ZERO_OK;
}

zero_status zero_generate_options_parse(zero_generate_options *options, int argc,
                                        char **argv)
{
    zero_generate_options read = {.raw = false};
    ZERO_TRY(zero_options_read(&zero_command_generate, argc, argv, &read, &read.given));
    zero_status st = check(&read);
    if (st == ZERO_OK)
        *options = read;
    else
        zero_generate_options_destroy(&read);
    return st;
}

void zero_generate_options_destroy(zero_generate_options *options)
{
    free(options->prompt_tokens);
    zero_options_destroy(&options->given);
    *options = (zero_generate_options){0};
}
