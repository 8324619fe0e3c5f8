/* The tokenizer of characters as a tokenizer.json: WordLevel, whose words are the
 * characters. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/characters.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

#define UNKNOWN \
    "<unk>" /* not a token: `tokenizers` fails on other characters, as this program */

json_t *zero_tokenizer_describe_characters(json_t *vocab)
{
    return json_pack("{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:{s:s}, s:s, s:b}, s:n, s:{s:s}, "
                     "s:{s:s, s:o, s:s}}",
                     "version", "1.0", "truncation", "padding", "added_tokens",
                     "normalizer", "pre_tokenizer", "type", "Split", "pattern", "Regex",
                     "[\\s\\S]", "behavior", "Isolated", "invert", 0, "post_processor",
                     "decoder", "type", "Fuse", "model", "type", "WordLevel", "vocab",
                     vocab, "unk_token", UNKNOWN);
}

json_t *zero_tokenizer_list_characters(const zero_tokenizer *tok)
{
    json_t *vocab = json_object();
    bool added = vocab != NULL;
    for (int32_t i = 0; added && i < tok->vocab; i++) {
        char text[5] = "";
        zero_character_write(tok->characters[i], (unsigned char *)text);
        added = json_object_set_new(vocab, text, json_integer(i)) == 0;
    }
    if (added) return vocab;
    json_decref(vocab);
    return NULL;
}

/* ---- reading ---- */

bool zero_tokenizer_has_characters(const json_t *root)
{
    const char *type =
        json_string_value(json_object_get(json_object_get(root, "model"), "type"));
    return type && strcmp(type, "WordLevel") == 0;
}

/* Only files as this program writes them. */
static zero_status check_form(const char *path, const json_t *root, json_t *vocab)
{
    json_t *expected = zero_tokenizer_describe_characters(json_incref(vocab));
    bool same = expected && json_equal(expected, root);
    bool has_memory = expected != NULL;
    json_decref(expected);
    if (same) return ZERO_OK;
    if (!has_memory)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory to check it", path);
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%.500s: \"model\": WordLevel is not supported, but for the "
                     "tokenizers of characters that this program writes",
                     path);
}

static zero_status take_all(const char *path, json_t *vocab, uint32_t *characters,
                            zero_tokenizer *out)
{
    const char *text;
    json_t *value;
    size_t n = json_object_size(vocab);
    json_object_foreach(vocab, text, value)
    {
        size_t len = strlen(text);
        uint32_t c = 0;
        char shown[ZERO_JSON_SHOWN];
        bool is_one =
            len > 0 && zero_character_read((const unsigned char *)text, len, &c) == len;
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (!is_one || id < 0 || (uint64_t)id >= n || characters[id] != 0)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"vocab\": expected characters with the ids 0 to "
                             "%zu, each once: \"%s\" does not fit",
                             path, n - 1, zero_json_shown(text, shown));
        characters[id] = c;
    }
    zero_status st = zero_tokenizer_from_characters(out, characters, (int32_t)n);
    if (st != ZERO_ERR_FORMAT) return st;
    return zero_fail(ZERO_ERR_FORMAT, "%.500s: %s", path, zero_last_error());
}

zero_status zero_tokenizer_take_characters(const char *path, const json_t *root,
                                           zero_tokenizer *out)
{
    const json_t *model = NULL, *vocab = NULL;
    ZERO_TRY(zero_json_object(path, root, "model", &model));
    ZERO_TRY(zero_json_object(path, model, "vocab", &vocab));
    ZERO_TRY(check_form(path, root, (json_t *)vocab));
    size_t n = json_object_size(vocab);
    if (n > ZERO_VOCAB_MAX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"vocab\": expected at most %d characters, found %zu",
                         path, ZERO_VOCAB_MAX, n);
    uint32_t *characters = calloc(n + 1, sizeof *characters);
    if (!characters)
        return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %zu characters", path, n);
    zero_status st = take_all(path, (json_t *)vocab, characters, out);
    free(characters);
    return st;
}
