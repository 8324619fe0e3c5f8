/* prompts.h - the texts that `zero generate` continues, as tokens: one from the command
 * line, or one for each line of a file. */
#pragma once

#include "cli/generate_options.h"
#include "data/tokenizer.h"
#include "engine/engine.h"

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
ZERO_NODISCARD zero_status zero_prompts_read(zero_comm *world, const char *file,
                                             char **lines, size_t *bytes);

/* An empty line begins as a text without --prompt does; those at the end of the file are
 * left out. ZERO_ERR_INVALID names the prompt, and what of it the model does not know. */
ZERO_NODISCARD zero_status zero_prompts_take(const zero_prompts_reader *reader,
                                             const char *lines, size_t bytes,
                                             zero_prompts *prompts);
void zero_prompts_destroy(zero_prompts *prompts); /* accepts a zeroed one */
