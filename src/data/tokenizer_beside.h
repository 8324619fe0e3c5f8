/* tokenizer_beside.h - files beside a tokenizer that change its ids, read as transformers
 * reads them:
 *
 *     tokenizer_config.json     added_tokens_decoder {"259": {"content": "<|user|>", ...}};
 *                               special tokens such as "eos_token"; flags
 *     added_tokens.json         {"<|user|>": 259}
 *     special_tokens_map.json   special tokens, which win over those of the configuration
 *
 * With an added_tokens_decoder the other two files do not count. A special token becomes an
 * added one: it keeps its id, or gets the next. Flags that change ids, and added tokens
 * that cannot be found as they are, are ZERO_ERR_UNSUPPORTED, by their names; other keys
 * change no ids. So are flags that ask for a blank before a text, or for tokens around it,
 * unless the tokenizer.json has these. Source: huggingface/transformers 5.24,
 * tokenization_utils_base.py, tokenization_utils_tokenizers.py. */
#pragma once

#include <jansson.h>

#include "data/tokenizer.h"

typedef enum {
    ZERO_BESIDE_CONFIG,
    ZERO_BESIDE_ADDED,
    ZERO_BESIDE_SPECIAL,
    ZERO_BESIDE_FILES,
} zero_beside_file;

typedef struct {
    struct {
        char path[ZERO_STORAGE_PATH];
        zero_bytes text; /* owned */
        bool exists;
    } files[ZERO_BESIDE_FILES];
    /* They lie beside vocab.json and merges.txt, which leave more to the configuration. */
    bool is_pair;
} zero_beside;

/* Adds their tokens to "added_tokens" of a tokenizer.json, and sets *changed if that
 * changed it. ZERO_ERR_FORMAT if they are not such files, or give a token another id than
 * it has. */
zero_status zero_tokenizer_add_beside(const zero_beside *beside, json_t *root,
                                      bool *changed);

void zero_beside_destroy(zero_beside *beside); /* accepts a zeroed one */
