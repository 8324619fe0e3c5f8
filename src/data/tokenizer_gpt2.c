/* GPT-2's two files, which become a tokenizer.json. */

#include "data/tokenizer_json.h"
#include "io/json_input.h"

static zero_status no_memory(const char *path)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for a tokenizer", path);
}

zero_status zero_tokenizer_from_gpt2(const char *vocab_path, const zero_bytes *vocab,
                                     const char *merges_path, const zero_bytes *merges,
                                     const zero_beside *beside, zero_tokenizer *out)
{
    char both[600];
    const char *slash = strrchr(merges_path, '/');
    zero_print(both, "%.500s and %.60s", vocab_path, slash ? slash + 1 : merges_path);
    json_auto_t *words = NULL, *list = json_array();
    ZERO_TRY(zero_json_parse(vocab_path, vocab->bytes, vocab->len, &words));
    ZERO_FORMAT_IF(!json_is_object(words), "%.500s: expected an object of tokens and ids",
                   vocab_path);
    if (!list) return no_memory(merges_path);
    const char *at = (const char *)merges->bytes, *end = at + merges->len;
    for (const char *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        size_t len = (size_t)(stop - at);
        if (len > 0 && at[len - 1] == '\r') len--;
        if (len >= 8 && memcmp(at, "#version", 8) == 0) continue; /* it is not a merge */
        json_t *text = memchr(at, '\0', len) ? NULL : json_stringn(at, len);
        ZERO_FORMAT_IF(!text, "%.500s: merge %zu: expected two tokens in UTF-8",
                       merges_path, json_array_size(list));
        if (json_array_append_new(list, text) != 0) return no_memory(merges_path);
    }
    json_t *root =
        zero_tokenizer_describe(ZERO_FORM_GPT2, json_incref(words), json_incref(list));
    return zero_tokenizer_from_root(both, root, NULL, 0, beside, out);
}
