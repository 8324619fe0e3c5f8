/* generate_options.h - the options of `zero generate`. */
#pragma once

#include "cli/options.h"
#include "train/tensor_parallel.h"

typedef struct {
    const char *checkpoint; /* the path; borrowed from argv, like all texts */
    const char *prompt;     /* NULL: none */
    const char *prompts;    /* a file; NULL: none */
    int32_t *prompt_tokens; /* [n_prompt_tokens] owned; NULL: none */
    int64_t n_prompt_tokens;
    int64_t tokens, top_k, seed, stage, batch;
    const char *activations; /* NULL: as the device likes */
    int64_t threads;         /* per rank; 0: 1, or what the environment says */
    double temperature, top_p;
    bool raw, ignore_end;
    const char *dtype;    /* NULL: the checkpoint's */
    const char *device;   /* cpu: none */
    int64_t memory_limit; /* bytes per rank; 0: no check; -1: what the machine gives */
    zero_tp tp;

    double watchdog; /* seconds; 0: none */

    const char *prompt_ids; /* --prompt-tokens as given */
    zero_options given;     /* owned */
} zero_generate_options;

extern const zero_option_table zero_generate_table;

/* Reads what follows the subcommand. ZERO_ERR_INVALID, with *options untouched, on the
 * first mistake; the message names the option, the value and what is allowed. */
ZERO_NODISCARD zero_status zero_generate_options_parse(zero_generate_options *options,
                                                       int argc, char **argv);
void zero_generate_options_destroy(zero_generate_options *options);
