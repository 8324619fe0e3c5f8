/* generate_options.h - the options of `zero generate`. */
#pragma once

#include "cli/options.h"
#include "train/config.h"

typedef struct {
    const char *checkpoint;    /* the path; borrowed from argv, like all texts */
    const char *prompt;        /* NULL: none */
    const char *prompts;       /* a file; NULL: none */
    const char *prompt_tokens; /* ids, 1,2,3; NULL: none */
    int64_t tokens, top_k, seed, stage, batch;
    double temperature, top_p;
    bool raw, ignore_end;
    const char *dtype;  /* NULL: the checkpoint's */
    zero_config config; /* where it computes: its device, tp, threads and the like alone */
} zero_generate_options;

extern const zero_option_table zero_generate_table;

/* The command's check(). */
zero_status zero_generate_options_check(void *options, const zero_options *given);
