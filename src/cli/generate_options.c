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

#define FIELDS zero_generate_options
static const zero_option rows[] = {
#include "cli/options/generate.rows"
};

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
