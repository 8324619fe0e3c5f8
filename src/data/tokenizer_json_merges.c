/* The merges of a tokenizer.json. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

typedef struct {
    const char *path;
    const json_t *vocab;
    zero_bytes text; /* of the merge at hand, as two texts and both joined */
} reader;

static zero_status not_two(const reader *r, size_t i)
{
    return zero_fail(
        ZERO_ERR_FORMAT,
        "%.500s: \"merges\"[%zu]: expected two tokens, as in \"a b\" or [\"a\", \"b\"]",
        r->path, i);
}

/* Lets r->text be "left\0right\0leftright\0"; `n` bytes are left's. */
static zero_status join(reader *r, const char *left, size_t n, const char *right)
{
    size_t m = strlen(right);
    r->text.len = 0;
    ZERO_TRY(zero_bytes_append(&r->text, left, n));
    ZERO_TRY(zero_bytes_append(&r->text, "", 1));
    ZERO_TRY(zero_bytes_append(&r->text, right, m + 1));
    ZERO_TRY(zero_bytes_append(&r->text, left, n));
    return zero_bytes_append(&r->text, right, m + 1);
}

static zero_status take_texts(reader *r, const json_t *merge, size_t i)
{
    const char *left = json_string_value(json_array_get(merge, 0));
    const char *right = json_string_value(json_array_get(merge, 1));
    if (json_is_string(merge)) {
        left = json_string_value(merge);
        right = strchr(left, ' ');
        if (!right || right == left || !right[1] || strchr(right + 1, ' '))
            return not_two(r, i);
        return join(r, left, (size_t)(right - left), right + 1);
    }
    if (json_array_size(merge) != 2 || !left || !right || !*left || !*right)
        return not_two(r, i);
    return join(r, left, strlen(left), right);
}

static zero_status find(const reader *r, const char *text, size_t i, int32_t *id)
{
    const json_t *found = json_object_get(r->vocab, text);
    char shown[ZERO_JSON_SHOWN];
    *id = (int32_t)json_integer_value(found);
    if (found) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"merges\"[%zu]: \"%s\" is not in the vocabulary", r->path, i,
                     zero_json_shown(text, shown));
}

static zero_status take_merge(reader *r, const json_t *merge, size_t i, zero_tokenizer *tok)
{
    zero_merge pair;
    int32_t token;
    ZERO_TRY(take_texts(r, merge, i));
    const char *left = (const char *)r->text.bytes, *right = left + strlen(left) + 1;
    ZERO_TRY(find(r, left, i, &pair.left));
    ZERO_TRY(find(r, right, i, &pair.right));
    ZERO_TRY(find(r, right + strlen(right) + 1, i, &token));
    if (zero_merges_add(&tok->table, pair, (int32_t)i, token)) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_FORMAT,
        "%.500s: \"merges\"[%zu] joins two tokens that an earlier merge already joins",
        r->path, i);
}

zero_status zero_tokenizer_take_merges(const char *path, const json_t *vocab,
                                       const json_t *merges, zero_tokenizer *tok)
{
    reader r = {.path = path, .vocab = vocab};
    size_t n = json_array_size(merges);
    zero_status st =
        n < INT32_MAX / 4
            ? zero_merges_init(&tok->table, (int32_t)n)
            : zero_fail(ZERO_ERR_FORMAT, "%.500s: %zu merges are too many", path, n);
    for (size_t i = 0; st == ZERO_OK && i < n; i++)
        st = take_merge(&r, json_array_get(merges, i), i, tok);
    zero_bytes_destroy(&r.text);
    return st;
}
