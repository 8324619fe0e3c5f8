/* tokenizer_find.h - tokenizers by their paths.
 *
 *     DIR                          the first of the following that is there:
 *     tokenizer.json               any name that is not one of the following
 *     vocab.json, merges.txt       either; the other lies beside it
 *     encoder.json, vocab.bpe      the same, as OpenAI released GPT-2 */
#pragma once

#include "data/tokenizer.h"

#define ZERO_TOKENIZER_NAMED 400
#define ZERO_TOKENIZER_FILES \
    "tokenizer.json, vocab.json with merges.txt, or encoder.json with vocab.bpe"

/* ZERO_ERR_INVALID if there is no such file; errors of a file are tokenizer_file.h's. */
zero_status zero_tokenizer_open(const char *path, zero_tokenizer *out);

/* The part of it that takes no time: ZERO_ERR_INVALID if there is no such path. */
zero_status zero_tokenizer_check_path(const char *path);

/* Names a file that lies in the place of a tokenizer: "; DIR/tokenizer.model: this is a
 * SentencePiece model, ...", or "" if there is none that is known. */
void zero_tokenizer_name_stranger(const char *path, char named[ZERO_TOKENIZER_NAMED]);

/* True if a tokenizer lies in the directory `path`, or beside the file `path`: then *found
 * is the path for zero_tokenizer_open(). */
bool zero_tokenizer_beside(const char *path, char found[ZERO_STORAGE_PATH]);
