/* tokenizer_json.h - tokenizers of other programs: Hugging Face's tokenizer.json, and
 * GPT-2's vocab.json with merges.txt (also named encoder.json and vocab.bpe).
 *
 * Read is byte pair encoding on bytes (BPE with ByteLevel), and on characters with bytes
 * for those that are no tokens (byte_fallback):
 *
 *     normalizer      none, NFC (Qwen's); with byte_fallback also Prepend and Replace of
 *                     blanks by U+2581 (Llama-2's)
 *     pre_tokenizer   ByteLevel, or a Sequence of Split by a pattern or Digits, then
 *                     ByteLevel (GPT-2's, Llama-3's, Qwen's, SmolLM2's); with byte_fallback
 *                     Metaspace, or none after Replace
 *     model           BPE: vocab, merges as "a b" or ["a", "b"], ignore_merges
 *     decoder         ByteLevel; with byte_fallback Replace, ByteFallback, Fuse, and Strip
 *                     of one blank or not. Bytes that are no characters stay what they are
 *     added_tokens    found in texts as they are: no lstrip, rstrip, single_word
 *
 * Anything else that changes tokens is ZERO_ERR_UNSUPPORTED, with its name. A
 * post-processor's tokens around a text, truncation and padding are not for corpora and not
 * applied. Ids are those of `tokenizers` 0.23, encode(text, add_special_tokens=False).
 * Source: huggingface/tokenizers; openai/gpt-2, src/encoder.py. */
#pragma once

#include "data/tokenizer_beside.h"

/* The tokenizer that the JSON of a tokenizer.json describes, whose bytes become tok->file.
 * `path` is for messages. ZERO_ERR_FORMAT if it is not a tokenizer or contradicts
 * itself. */
zero_status zero_tokenizer_from_json(const char *path, const json_t *root,
                                     const void *bytes, size_t len, zero_tokenizer *out);

/* The same from GPT-2's two files, and from what lies beside them. */
zero_status zero_tokenizer_from_gpt2(const char *vocab_path, const zero_bytes *vocab,
                                     const char *merges_path, const zero_bytes *merges,
                                     const zero_beside *beside, zero_tokenizer *out);

/* ---- for the files of this folder ---- */

/* tokenizer_file.c: the tokenizer of a file's JSON, whose reference it takes, with what
 * lies beside it (NULL: nothing). bytes[len]: the file as it is; NULL: it was made here. */
zero_status zero_tokenizer_from_root(const char *path, json_t *root, const void *bytes,
                                     size_t len, const zero_beside *beside,
                                     zero_tokenizer *out);

#define ZERO_END_OF_TEXT "<|endoftext|>"

/* Forms of a whole tokenizer.json: pieces of piece.h, GPT-2's, or characters. */
typedef enum { ZERO_FORM_OWN, ZERO_FORM_GPT2, ZERO_FORM_CHARACTERS } zero_tokenizer_form;

/* Such a file with this vocabulary and these merges (characters: NULL), whose references it
 * takes, even without memory: then it is NULL. */
json_t *zero_tokenizer_describe(zero_tokenizer_form form, json_t *vocab, json_t *merges);

/* tokenizer_json.c: ZERO_ERR_UNSUPPORTED for an added token that is not found in texts as
 * it is. */
zero_status zero_tokenizer_check_added(const char *path, const json_t *token);

/* tokenizer_json_parts.c: all but the vocabulary, the merges and the added tokens. Checks
 * that nothing changes tokens in a way that is not supported. */
zero_status zero_tokenizer_take_parts(const char *path, const json_t *root,
                                      zero_tokenizer *tok);
/* The first token that a post-processor adds around a text, or its kind; a text that is
 * empty stays so if it adds none. */
void zero_tokenizer_find_around(const json_t *processor,
                                char around[ZERO_TOKENIZER_AROUND]);

/* tokenizer_char.c: the file of a tokenizer of characters, read: it must be as it was
 * written. */
bool zero_tokenizer_has_characters(const json_t *root);
zero_status zero_tokenizer_take_characters(const char *path, const json_t *root,
                                           zero_tokenizer *out);
