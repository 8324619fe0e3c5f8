/* prompts.h - the options of `zero generate`, and the texts that it continues, as tokens:
 * one from the command line, or one for each line of a file. */
#pragma once

#include "cli/options.h"
#include "data/tokenizer.h"
#include "engine/engine.h"
#include "train/config.h"

/* ---- options ---- */

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

/* ---- texts ---- */

/* The surroundings of a prompt. */
typedef struct {
    const zero_generate_options *options;
    const char *path;                /* of the checkpoint, for messages */
    const zero_tokenizer *tokenizer; /* NULL: prompts are ids */
    int64_t vocab;                   /* of the model */
} zero_prompts_reader;

typedef struct {
    zero_text *texts; /* [n], each with room for options.tokens more */
    int64_t n;
    int32_t *tokens;     /* of all texts; owned, like texts */
    int64_t first_empty; /* the first line that is empty, from 1; 0: none is */
} zero_prompts;

/* The file of --prompts as rank 0 sees it, on all ranks: *lines, to be freed; NULL without
 * the option. Collective. */
zero_status zero_prompts_read(zero_comm *world, const char *file, char **lines,
                              size_t *bytes);

/* An empty line begins as a text without --prompt does; those at the end of the file are
 * left out. ZERO_ERR_INVALID names the prompt, and what of it the model does not know. */
zero_status zero_prompts_take(const zero_prompts_reader *reader, const char *lines,
                              size_t bytes, zero_prompts *prompts);
void zero_prompts_destroy(zero_prompts *prompts); /* accepts a zeroed one */
