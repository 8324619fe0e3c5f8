#include "data/tokenizer_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"

#define FORMAT "zero tokenizer"

enum { VERSION = 1 };

/* ---- writing ---- */

static zero_status append_merges(const zero_tokenizer *tok, zero_bytes *out)
{
    char text[64];
    for (int32_t i = 0; i < tok->vocab - ZERO_VOCAB_BYTES; i++) {
        const char *before = i == 0 ? ",\n \"merges\": [" : i % 8 == 0 ? ",\n  " : ", ";
        int len = snprintf(text, sizeof text, "%s[%" PRId32 ", %" PRId32 "]", before,
                           tok->merges[i].left, tok->merges[i].right);
        ZERO_TRY(zero_bytes_append(out, text, (size_t)len));
    }
    return tok->vocab > ZERO_VOCAB_BYTES ? zero_bytes_append(out, "]", 1) : ZERO_OK;
}

static zero_status append_characters(const zero_tokenizer *tok, zero_bytes *out)
{
    char text[64];
    for (int32_t i = 0; i < tok->vocab; i++) {
        const char *before = i == 0        ? ",\n \"characters\": ["
                             : i % 16 == 0 ? ",\n  "
                                           : ", ";
        int len = snprintf(text, sizeof text, "%s%" PRIu32, before, tok->characters[i]);
        ZERO_TRY(zero_bytes_append(out, text, (size_t)len));
    }
    return zero_bytes_append(out, "]", 1);
}

static zero_status append_file(const zero_tokenizer *tok, zero_bytes *out)
{
    char head[128];
    int len = snprintf(head, sizeof head,
                       "{\"format\": \"" FORMAT "\", \"version\": %d, \"name\": \"%s\"",
                       VERSION, tok->name);
    ZERO_TRY(zero_bytes_append(out, head, (size_t)len));
    ZERO_TRY(tok->characters ? append_characters(tok, out) : append_merges(tok, out));
    return zero_bytes_append(out, "}\n", 2);
}

zero_status zero_tokenizer_write(const zero_tokenizer *tok, zero_bytes *out)
{
    size_t begin = out->len;
    zero_status st = append_file(tok, out);
    if (st != ZERO_OK) out->len = begin;
    return st;
}

/* ---- reading ---- */

/* Comes before the check of keys: a newer version may have other keys. */
static zero_status check_version(const char *path, const json_t *root)
{
    const char *format = NULL;
    int64_t version = 0;
    char shown[ZERO_JSON_SHOWN];
    ZERO_TRY(zero_json_text(path, root, "format", &format));
    if (strcmp(format, FORMAT) != 0)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected \"format\": \"" FORMAT "\", found \"%s\"", path,
                         zero_json_shown(format, shown));
    ZERO_TRY(zero_json_whole(path, root, "version", 1, INT64_MAX, &version));
    if (version > VERSION)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: this tokenizer file has version %" PRId64
                         ", but this program knows versions up to %d; read it with a newer "
                         "one",
                         path, version, VERSION);
    return ZERO_OK;
}

/* The vocabulary of a tokenizer of this name; 0: its characters. */
static zero_status read_name(const char *path, const json_t *root, int32_t *vocab)
{
    const char *name = NULL;
    char shown[ZERO_JSON_SHOWN];
    ZERO_TRY(zero_json_text(path, root, "name", &name));
    if (zero_tokenizer_parse(name, vocab) == ZERO_OK) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_FORMAT,
        "%s: \"name\": expected byte, char, or bpe:N with %d to %d tokens, found "
        "\"%s\"",
        path, ZERO_VOCAB_BYTES + 1, ZERO_VOCAB_MAX, zero_json_shown(name, shown));
}

static zero_status take_merge(const char *path, const json_t *pair, size_t i,
                              zero_merge *merge)
{
    const json_t *left = json_array_get(pair, 0), *right = json_array_get(pair, 1);
    if (json_array_size(pair) != 2 || !json_is_integer(left) || !json_is_integer(right))
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%s: \"merges\": expected lists of two whole numbers, but [%zu] is "
            "not one",
            path, i);
    int64_t l = json_integer_value(left), r = json_integer_value(right);
    int64_t most = ZERO_VOCAB_BYTES + (int64_t)i - 1;
    if (l < 0 || l > most || r < 0 || r > most)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"merges\": expected tokens from 0 to %" PRId64
                         ", which exist before it, in [%zu], found %" PRId64
                         " and %" PRId64,
                         path, most, i, l, r);
    *merge = (zero_merge){(int32_t)l, (int32_t)r};
    return ZERO_OK;
}

static zero_status take_merges(const char *path, const json_t *root, size_t n,
                               zero_merge *merges)
{
    const json_t *list = NULL;
    if (n == 0 && !json_object_get(root, "merges")) return ZERO_OK;
    ZERO_TRY(zero_json_array(path, root, "merges", &list));
    if (json_array_size(list) != n)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"merges\": a tokenizer of this name has %zu, found %zu",
                         path, n, json_array_size(list));
    for (size_t i = 0; i < n; i++)
        ZERO_TRY(take_merge(path, json_array_get(list, i), i, &merges[i]));
    return ZERO_OK;
}

/* Says in which file the list is that no tokenizer has. */
static zero_status with_path(const char *path, zero_status st)
{
    if (st != ZERO_ERR_FORMAT) return st;
    return zero_fail(ZERO_ERR_FORMAT, "%s: %s", path, zero_last_error());
}

static zero_status build(const char *path, const json_t *root, size_t n, zero_merge *merges,
                         zero_tokenizer *out)
{
    if (!merges) return zero_fail(ZERO_ERR_NOMEM, "%s: no memory for %zu merges", path, n);
    ZERO_TRY(take_merges(path, root, n, merges));
    return with_path(path, zero_tokenizer_from_merges(out, merges, (int32_t)n));
}

static zero_status take_with_merges(const char *path, const json_t *root, size_t n,
                                    zero_tokenizer *out)
{
    static const char *const keys[] = {"format", "version", "name", "merges"};
    ZERO_TRY(zero_json_only(path, root, 4, keys));
    zero_merge *merges = malloc((n + 1) * sizeof *merges);
    zero_status st = build(path, root, n, merges, out);
    free(merges);
    return st;
}

static zero_status read_characters(const char *path, const json_t *list,
                                   uint32_t *characters)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t c = json_integer_value(json_array_get(list, i)); /* 0 for another type */
        if (!json_is_integer(json_array_get(list, i)) || c < 0 || c > UINT32_MAX)
            return zero_fail(ZERO_ERR_FORMAT,
                             "%s: \"characters\": expected code points, but [%zu] is not "
                             "one",
                             path, i);
        characters[i] = (uint32_t)c;
    }
    return ZERO_OK;
}

static zero_status take_with_characters(const char *path, const json_t *root,
                                        zero_tokenizer *out)
{
    static const char *const keys[] = {"format", "version", "name", "characters"};
    const json_t *list = NULL;
    ZERO_TRY(zero_json_only(path, root, 4, keys));
    ZERO_TRY(zero_json_array(path, root, "characters", &list));
    size_t n = json_array_size(list);
    if (n > ZERO_VOCAB_MAX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: \"characters\": expected at most %d, found %zu", path,
                         ZERO_VOCAB_MAX, n);
    uint32_t *characters = malloc((n + 1) * sizeof *characters);
    if (!characters)
        return zero_fail(ZERO_ERR_NOMEM, "%s: no memory for %zu characters", path, n);
    zero_status st = read_characters(path, list, characters);
    if (st == ZERO_OK)
        st = with_path(path, zero_tokenizer_from_characters(out, characters, (int32_t)n));
    free(characters);
    return st;
}

static zero_status take_tokenizer(const char *path, const json_t *root, zero_tokenizer *out)
{
    int32_t vocab = 0;
    ZERO_TRY(check_version(path, root));
    ZERO_TRY(read_name(path, root, &vocab));
    if (vocab == 0) return take_with_characters(path, root, out);
    return take_with_merges(path, root, (size_t)(vocab - ZERO_VOCAB_BYTES), out);
}

zero_status zero_tokenizer_parse_file(const char *path, const void *bytes, size_t len,
                                      zero_tokenizer *out)
{
    json_t *root = NULL;
    if (len > ZERO_TOKENIZER_FILE_MAX)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%s: expected a tokenizer file of at most %zu bytes, found %zu",
                         path, ZERO_TOKENIZER_FILE_MAX, len);
    ZERO_TRY(zero_json_parse(path, bytes, len, &root));
    zero_status st = take_tokenizer(path, root, out);
    json_decref(root);
    return st;
}
