#include "data/tokenizer_file.h"

#include "base/grow.h"
#include "data/alphabet.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

/* Files of earlier versions: {"format": "zero tokenizer", "version": 1, "name": "bpe:512",
 * "merges": [[101, 32], [116, 104], ...]}. */
#define FORMAT "zero tokenizer"

enum { VERSION = 1 };

/* ---- writing ---- */

/* Appends a token's text, in GPT-2's alphabet or as the character that it is. */
static zero_status append_text(const zero_tokenizer *tok, int32_t token, zero_bytes *out)
{
    char letter[ZERO_LETTER];
    size_t len;
    const unsigned char *bytes = zero_tokenizer_decode(tok, token, &len);
    if (tok->characters) return zero_bytes_append(out, bytes, len);
    for (size_t i = 0; i < len; i++) {
        zero_alphabet_letter(bytes[i], letter);
        ZERO_TRY(zero_bytes_append(out, letter, strlen(letter)));
    }
    return ZERO_OK;
}

static zero_status no_memory(const zero_tokenizer *tok)
{
    return zero_fail(ZERO_ERR_NOMEM, "no memory to write a tokenizer of %d tokens",
                     tok->vocab);
}

static zero_status write_own(const zero_tokenizer *tok, zero_bytes *out)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    json_auto_t *vocab = json_object(), *merges = tok->characters ? NULL : json_array();
    if (!vocab || (!merges && !tok->characters)) return no_memory(tok);
    for (int32_t i = 0; i < tok->vocab; i++) {
        text.len = 0;
        ZERO_TRY(append_text(tok, i, &text));
        ZERO_TRY(zero_bytes_append(&text, "", 1));
        if (json_object_set_new(vocab, (char *)text.bytes, json_integer(i)) != 0)
            return no_memory(tok);
        if (tok->characters || i < ZERO_VOCAB_BYTES) continue;
        const zero_merge pair = tok->merges[i - ZERO_VOCAB_BYTES];
        text.len = 0;
        ZERO_TRY(append_text(tok, pair.left, &text));
        ZERO_TRY(zero_bytes_append(&text, " ", 1));
        ZERO_TRY(append_text(tok, pair.right, &text));
        json_t *merge = json_stringn((char *)text.bytes, text.len);
        if (json_array_append_new(merges, merge) != 0) return no_memory(tok);
    }
    json_auto_t *root =
        zero_tokenizer_describe(tok->characters ? ZERO_FORM_CHARACTERS : ZERO_FORM_OWN,
                                json_incref(vocab), json_incref(merges));
    ZERO_FREED char *whole = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    if (!whole) return no_memory(tok);
    ZERO_TRY(zero_bytes_append(out, whole, strlen(whole)));
    return zero_bytes_append(out, "\n", 1);
}

zero_status zero_tokenizer_write(const zero_tokenizer *tok, zero_bytes *out)
{
    const size_t begin = out->len;
    zero_status st = tok->is_foreign
                         ? zero_bytes_append(out, tok->file.bytes, tok->file.len)
                         : write_own(tok, out);
    if (st != ZERO_OK) out->len = begin;
    return st;
}

/* ---- reading ---- */

static zero_status take_list(const char *path, const json_t *root, size_t n,
                             zero_merge *merges)
{
    const json_t *list = NULL;
    if (n == 0 && !json_object_get(root, "merges")) return ZERO_OK;
    ZERO_TRY(zero_json_array(path, root, "merges", &list));
    ZERO_FORMAT_IF(json_array_size(list) != n,
                   "%s: \"merges\": a tokenizer of this name has %zu, found %zu", path, n,
                   json_array_size(list));
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(list, i);
        zero_merge *merge = &merges[i];
        const json_t *left = json_array_get(pair, 0), *right = json_array_get(pair, 1);
        ZERO_FORMAT_IF(
            json_array_size(pair) != 2 || !json_is_integer(left) || !json_is_integer(right),
            "%s: \"merges\": expected lists of two whole numbers, but [%zu] is not one",
            path, i);
        int64_t l = json_integer_value(left), r = json_integer_value(right);
        int64_t most = ZERO_VOCAB_BYTES + (int64_t)i - 1;
        ZERO_FORMAT_IF(l < 0 || l > most || r < 0 || r > most,
                       "%s: \"merges\": expected tokens from 0 to %" PRId64
                       ", which exist before it, in [%zu], found %" PRId64 " and %" PRId64,
                       path, most, i, l, r);
        *merge = (zero_merge){(int32_t)l, (int32_t)r};
    }
    return ZERO_OK;
}

zero_status zero_tokenizer_from_root(const char *path, json_t *taken, const void *bytes,
                                     size_t len, const zero_beside *beside,
                                     zero_tokenizer *out)
{
    bool changed = false;
    json_auto_t *root = taken;
    ZERO_FREED char *text = NULL;
    if (beside && root) ZERO_TRY(zero_tokenizer_add_beside(beside, root, &changed));
    if (changed || !bytes) {
        text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
        ZERO_TRY(zero_allocated(text, "%.500s: no memory for a tokenizer", path));
    }
    if (json_object_get(root, "format")) {
        static const char *const keys[] = {"format", "version", "name", "merges"};
        const char *name = NULL;
        int32_t vocab = 0;
        ZERO_FREED zero_merge *merges = NULL;
        /* Comes before the check of keys: a newer version may have other keys. */
        const char *format = NULL;
        int64_t version = 0;
        ZERO_TRY(zero_json_text(path, root, "format", &format));
        ZERO_FORMAT_IF(!zero_same_text(format, FORMAT),
                       "%s: expected \"format\": \"" FORMAT "\", found \"%s\"", path,
                       ZERO_SHOWN_SHORT(format));
        ZERO_TRY(zero_json_whole(path, root, "version", 1, INT64_MAX, &version));
        ZERO_FORMAT_IF(
            version > VERSION,
            "%s: this tokenizer file has version %" PRId64
            ", but this program knows versions up to %d; read it with a newer one",
            path, version, VERSION);
        ZERO_TRY(zero_json_only(path, root, 4, keys));
        ZERO_TRY(zero_json_text(path, root, "name", &name));
        ZERO_FORMAT_IF(
            zero_tokenizer_parse(name, &vocab) != ZERO_OK || vocab < ZERO_VOCAB_BYTES,
            "%s: \"name\": expected byte, or bpe:N with %d to %d tokens, found \"%s\"",
            path, ZERO_VOCAB_BYTES + 1, ZERO_VOCAB_MAX, ZERO_SHOWN_SHORT(name));
        const int32_t n = vocab - ZERO_VOCAB_BYTES;
        ZERO_TRY(zero_new(&merges, n, "merges"));
        ZERO_TRY(take_list(path, root, (size_t)n, merges));
        zero_status st = zero_tokenizer_from_merges(out, merges, n);
        return st == ZERO_ERR_FORMAT ? zero_fail(st, "%s: %s", path, zero_last_error())
                                     : st;
    }
    if (zero_tokenizer_has_characters(root))
        return zero_tokenizer_take_characters(path, root, out);
    return zero_tokenizer_from_json(path, root, text ? text : bytes,
                                    text ? strlen(text) : len, out);
}

zero_status zero_tokenizer_parse_beside(const char *path, const void *bytes, size_t len,
                                        const zero_beside *beside, zero_tokenizer *out)
{
    json_t *root = NULL;
    ZERO_FORMAT_IF(len > ZERO_TOKENIZER_FILE_MAX,
                   "%s: expected a tokenizer file of at most %zu bytes, found %zu", path,
                   ZERO_TOKENIZER_FILE_MAX, len);
    ZERO_TRY(zero_json_parse(path, bytes, len, &root));
    return zero_tokenizer_from_root(path, root, bytes, len, beside, out);
}

zero_status zero_tokenizer_parse_file(const char *path, const void *bytes, size_t len,
                                      zero_tokenizer *out)
{
    return zero_tokenizer_parse_beside(path, bytes, len, NULL, out);
}
