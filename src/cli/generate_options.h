/* generate_options.h - the options of `zero generate`. */
#pragma once

#include "cli/options.h"
#include "train/tensor_parallel.h"

typedef struct {
    const char *checkpoint;    /* the path; borrowed from argv, like all texts */
    const char *prompt;        /* NULL: none */
    const char *prompts;       /* a file; NULL: none */
    const char *prompt_tokens; /* ids, 1,2,3; NULL: none */
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
} zero_generate_options;

extern const zero_option_table zero_generate_table;

/* The command's check(). */
zero_status zero_generate_options_check(void *options, const zero_options *given);

/* The ids of --prompt-tokens: *n of them; `ids` may be NULL. Whether the vocabulary has
 * them is seen later. ZERO_ERR_INVALID. */
ZERO_NODISCARD zero_status zero_generate_options_ids(const char *text, int32_t *ids,
                                                     int64_t *n);
