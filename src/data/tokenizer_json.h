/* tokenizer_json.h - tokenizers of other programs: Hugging Face's tokenizer.json, and
 * GPT-2's vocab.json with merges.txt (also named encoder.json and vocab.bpe).
 *
 * Read is byte pair encoding on bytes (BPE with ByteLevel):
 *
 *     normalizer      none
 *     pre_tokenizer   ByteLevel, or a Sequence of Split by a pattern, then ByteLevel
 *                     (GPT-2's and Llama-3's)
 *     model           BPE: vocab, merges as "a b" or ["a", "b"], ignore_merges
 *     added_tokens    found in texts as they are: no lstrip, rstrip, single_word
 *
 * Anything else that changes tokens is ZERO_ERR_UNSUPPORTED, with its name. A
 * post-processor's tokens around a text, truncation and padding are not for corpora and not
 * applied. Ids are those of `tokenizers` 0.23, encode(text, add_special_tokens=False).
 * Source: huggingface/tokenizers; openai/gpt-2, src/encoder.py. */
#pragma once

#include <jansson.h>

#include "data/tokenizer_beside.h"

/* The tokenizer that the JSON of a tokenizer.json describes, whose bytes become tok->file.
 * `path` is for messages. ZERO_ERR_FORMAT if it is not a tokenizer or contradicts
 * itself. */
ZERO_NODISCARD zero_status zero_tokenizer_from_json(const char *path, const json_t *root,
                                                    const void *bytes, size_t len,
                                                    zero_tokenizer *out);

/* The same from GPT-2's two files, and from what lies beside them. */
ZERO_NODISCARD zero_status zero_tokenizer_from_gpt2(
    const char *vocab_path, const zero_bytes *vocab, const char *merges_path,
    const zero_bytes *merges, const zero_beside *beside, zero_tokenizer *out);

/* ---- for the files of this folder ---- */

#define ZERO_END_OF_TEXT "<|endoftext|>"

/* The pre-tokenizer that cuts text as piece.h does, as an object that the caller releases;
 * NULL without memory. ByteLevel comes first here, so that the pattern counts bytes. */
json_t *zero_tokenizer_own_steps(void);

/* ByteLevel as GPT-2's, which cuts text and trims offsets, or as ours, which does
 * neither. */
json_t *zero_tokenizer_byte_level(bool as_gpt2);

/* A whole tokenizer.json of BPE. Takes the references, even without memory. */
json_t *zero_tokenizer_describe(json_t *steps, bool as_gpt2, json_t *vocab, json_t *merges);

/* tokenizer_json.c: ZERO_ERR_UNSUPPORTED for an added token that is not found in texts as
 * it is. */
ZERO_NODISCARD zero_status zero_tokenizer_check_added(const char *path,
                                                      const json_t *token);

/* tokenizer_json_parts.c: what surrounds the model. Checks that nothing changes tokens in a
 * way that is not supported; compiles the patterns of the pre-tokenizer. */
ZERO_NODISCARD zero_status zero_tokenizer_check_parts(const char *path, const json_t *root);
ZERO_NODISCARD zero_status zero_tokenizer_take_patterns(const char *path,
                                                        const json_t *root,
                                                        zero_tokenizer *tok);
/* Writes tok->around. */
void zero_tokenizer_take_around(const json_t *root, zero_tokenizer *tok);

/* tokenizer_char_file.c: the vocabulary of a tokenizer of characters as an object, and the
 * whole file, which takes that reference. The caller releases both; NULL without memory. */
json_t *zero_tokenizer_list_characters(const zero_tokenizer *tok);
json_t *zero_tokenizer_describe_characters(json_t *vocab);
/* Such a file, read: it must be as it was written. */
bool zero_tokenizer_has_characters(const json_t *root);
ZERO_NODISCARD zero_status zero_tokenizer_take_characters(const char *path,
                                                          const json_t *root,
                                                          zero_tokenizer *out);

/* tokenizer_json_merges.c: fills tok->table with the merges, whose ids are in `vocab`. */
ZERO_NODISCARD zero_status zero_tokenizer_take_merges(const char *path, const json_t *vocab,
                                                      const json_t *merges,
                                                      zero_tokenizer *tok);
