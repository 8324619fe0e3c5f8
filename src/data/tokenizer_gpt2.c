/* GPT-2's two files, which become a tokenizer.json. */

#include "base/fail.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

static zero_status no_memory(const char *path)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for a tokenizer", path);
}

/* A line of merges.txt without its end. "#version: 0.2" is not a merge. */
static zero_status add_line(const char *path, const char *line, size_t len, json_t *merges)
{
    if (len > 0 && line[len - 1] == '\r') len--;
    if (len >= 8 && memcmp(line, "#version", 8) == 0) return ZERO_OK;
    json_t *text = memchr(line, '\0', len) ? NULL : json_stringn(line, len);
    ZERO_FAIL_IF(!text, ZERO_ERR_FORMAT, "%.500s: merge %zu: expected two tokens in UTF-8",
                 path, json_array_size(merges));
    return json_array_append_new(merges, text) == 0 ? ZERO_OK : no_memory(path);
}

static zero_status read_merges(const char *path, const zero_bytes *text, json_t *merges)
{
    const char *at = (const char *)text->bytes, *end = at + text->len;
    if (!merges) return no_memory(path);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        ZERO_TRY(add_line(path, at, (size_t)(stop - at), merges));
        at = stop + 1;
    }
    return ZERO_OK;
}

zero_status zero_tokenizer_from_gpt2(const char *vocab_path, const zero_bytes *vocab,
                                     const char *merges_path, const zero_bytes *merges,
                                     const zero_beside *beside, zero_tokenizer *out)
{
    char both[600];
    const char *slash = strrchr(merges_path, '/');
    snprintf(both, sizeof both, "%.500s and %.60s", vocab_path,
             slash ? slash + 1 : merges_path);
    json_auto_t *words = NULL, *list = json_array();
    ZERO_TRY(zero_json_parse(vocab_path, vocab->bytes, vocab->len, &words));
    ZERO_FAIL_IF(!json_is_object(words), ZERO_ERR_FORMAT,
                 "%.500s: expected an object of tokens and ids", vocab_path);
    ZERO_TRY(read_merges(merges_path, merges, list));
    json_t *root =
        zero_tokenizer_describe(ZERO_FORM_GPT2, json_incref(words), json_incref(list));
    return zero_tokenizer_from_root(both, root, NULL, 0, beside, out);
}
