#include "data/tokenizer_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "data/alphabet.h"
#include "io/json_input.h"

/* A tokenizer.json being read. Texts are borrowed from it. */
typedef struct {
    const char *path;
    const json_t *root, *model, *vocab, *added, *merges;
    int64_t n_vocab, n_ids;
    const char **texts; /* [n_ids], by id */
    bool *is_added;     /* [n_ids] */
    bool *is_mapped;    /* [n_ids] the text is of GPT-2's alphabet: a piece may be it */
} reader;

/* ---- ids ---- */

zero_status zero_tokenizer_check_added(const char *path, const json_t *token)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special"};
    for (int i = 2; i < 5; i++) {
        bool flag = false;
        if (json_object_get(token, keys[i]))
            ZERO_TRY(zero_json_flag(path, token, keys[i], &flag));
        if (flag)
            return zero_fail(
                ZERO_ERR_UNSUPPORTED,
                "%.500s: \"added_tokens\": a token with \"%s\" is not supported", path,
                keys[i]);
    }
    return zero_json_only(path, token, 7, keys);
}

/* A token of the vocabulary keeps its id; others follow the vocabulary in their order, as
 * `tokenizers` numbers them. */
static zero_status take_added(reader *r, const json_t *token, int64_t *next)
{
    const char *text = NULL;
    int64_t id = 0;
    char shown[ZERO_JSON_SHOWN];
    ZERO_TRY(zero_json_text(r->path, token, "content", &text));
    ZERO_TRY(zero_tokenizer_check_added(r->path, token));
    const json_t *known = json_object_get(r->vocab, text);
    int64_t expected = known ? json_integer_value(known) : *next;
    ZERO_TRY(zero_json_whole(r->path, token, "id", 0, INT32_MAX, &id));
    if (id != expected || text[0] == '\0' || r->is_added[id])
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"added_tokens\": \"%s\" has the id %" PRId64
                         ": expected a text that occurs once, and the id %" PRId64,
                         r->path, zero_json_shown(text, shown), id, expected);
    r->texts[id] = text;
    r->is_added[id] = true;
    if (!known) ++*next;
    return ZERO_OK;
}

static zero_status take_ids(reader *r)
{
    r->n_vocab = (int64_t)json_object_size(r->vocab);
    r->n_ids = r->n_vocab + (int64_t)json_array_size(r->added);
    size_t n = (size_t)r->n_ids + 1;
    ZERO_TRY(zero_new(&r->texts, n, "tokens"));
    ZERO_TRY(zero_new(&r->is_added, n, "tokens"));
    ZERO_TRY(zero_new(&r->is_mapped, n, "tokens"));
    const char *text;
    json_t *value;
    char shown[ZERO_JSON_SHOWN];
    json_object_foreach((json_t *)r->vocab, text, value)
    {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || id >= r->n_vocab || r->texts[id])
            return zero_fail(ZERO_ERR_FORMAT,
                             "%.500s: \"vocab\": expected the ids 0 to %" PRId64
                             ", each once: that of \"%s\" is %s",
                             r->path, r->n_vocab - 1, zero_json_shown(text, shown),
                             id < 0 || id >= r->n_vocab ? "not one" : "taken");
        r->texts[id] = text;
    }
    int64_t next = r->n_vocab;
    for (size_t i = 0; i < json_array_size(r->added); i++)
        ZERO_TRY(take_added(r, json_array_get(r->added, i), &next));
    r->n_ids = next;
    return ZERO_OK;
}

/* ---- texts ---- */

/* A token's bytes: those that its letters name; an added token's, and one's with other
 * characters, are the text itself. */
static size_t write_text(reader *r, int64_t id, unsigned char *out)
{
    size_t len;
    r->is_mapped[id] = !r->is_added[id] && zero_alphabet_bytes(r->texts[id], out, &len);
    if (r->is_mapped[id]) return len;
    len = strlen(r->texts[id]);
    memcpy(out, r->texts[id], len);
    return len;
}

/* ---- all of it ---- */

static zero_status take_all(reader *r, zero_tokenizer *tok)
{
    ZERO_TRY(take_ids(r));
    size_t all = 1;
    for (int64_t i = 0; i < r->n_ids; i++) all += strlen(r->texts[i]);
    tok->vocab = (int32_t)r->n_ids;
    ZERO_TRY(zero_new(&tok->starts, r->n_ids + 1, "tokens"));
    ZERO_TRY(zero_new(&tok->bytes, all, "bytes of tokens"));
    for (int64_t i = 0; i < r->n_ids; i++)
        tok->starts[i + 1] =
            tok->starts[i] + (uint32_t)write_text(r, i, tok->bytes + tok->starts[i]);
    /* The alphabet of a tokenizer that learnt from a text may have only the bytes that
     * occurred there. */
    char letter[ZERO_LETTER];
    for (int byte = 0; byte < ZERO_VOCAB_BYTES; byte++) {
        zero_alphabet_letter((unsigned char)byte, letter);
        const json_t *id = json_object_get(r->vocab, letter);
        tok->byte_ids[byte] = id ? (int32_t)json_integer_value(id) : -1;
        tok->lacks_bytes = tok->lacks_bytes || !id;
    }
    zero_tokenizer_take_around(r->root, tok);
    ZERO_TRY(zero_tokenizer_take_merges(r->path, r->vocab, r->merges, tok));
    ZERO_TRY(zero_tokenizer_take_patterns(r->path, r->root, tok));
    for (size_t i = 0; i < json_array_size(r->added); i++) {
        const json_t *token = json_array_get(r->added, i);
        size_t len;
        int32_t id = (int32_t)json_integer_value(json_object_get(token, "id"));
        const unsigned char *text = zero_tokenizer_decode(tok, id, &len);
        bool normalized = json_is_true(json_object_get(token, "normalized"));
        ZERO_TRY(zero_added_add(&tok->added[normalized],
                                (zero_added_token){text, (uint32_t)len, id}));
        if (strcmp(r->texts[id], ZERO_END_OF_TEXT) == 0) tok->end_of_text = id;
    }
    zero_added_sort(&tok->added[0]);
    zero_added_sort(&tok->added[1]);
    if (json_object_get(r->model, "ignore_merges"))
        ZERO_TRY(zero_json_flag(r->path, r->model, "ignore_merges", &tok->ignores_merges));
    return tok->ignores_merges ? zero_tokenizer_index_texts(tok, r->is_mapped) : ZERO_OK;
}

static zero_status find_parts(reader *r)
{
    ZERO_TRY(zero_tokenizer_check_parts(r->path, r->root));
    ZERO_TRY(zero_json_object(r->path, r->root, "model", &r->model));
    ZERO_TRY(zero_json_object(r->path, r->model, "vocab", &r->vocab));
    ZERO_TRY(zero_json_array(r->path, r->model, "merges", &r->merges));
    const json_t *added = json_object_get(r->root, "added_tokens");
    if (!added || json_is_null(added)) return ZERO_OK;
    return zero_json_array(r->path, r->root, "added_tokens", &r->added);
}

/* ---- our own ---- */

static bool has_own_ids(const zero_tokenizer *tok, int32_t n, const int32_t *tokens)
{
    for (int byte = 0; byte < ZERO_VOCAB_BYTES; byte++)
        if (tok->byte_ids[byte] != byte) return false;
    for (int32_t i = 0; i < n; i++)
        if (tokens[i] != ZERO_VOCAB_BYTES + i) return false;
    return true;
}

/* A tokenizer of ours, as it was written, becomes one of ours again. Others that cut text
 * as ours stay what they are, such as one of ours to which tokens were added. */
static zero_status take_back(const reader *r, zero_tokenizer *tok)
{
    zero_tokenizer own = {0};
    int32_t n = tok->vocab - ZERO_VOCAB_BYTES;
    if (!tok->cuts_as_own || tok->ignores_merges || json_array_size(r->added) > 0 ||
        n < 0 || n > ZERO_VOCAB_MAX - ZERO_VOCAB_BYTES ||
        json_array_size(r->merges) != (size_t)n)
        return ZERO_OK;
    zero_merge *pairs;
    int32_t *tokens = NULL;
    zero_status st = zero_new(&pairs, n, "merges");
    if (st == ZERO_OK) st = zero_new(&tokens, n, "merges");
    if (st == ZERO_OK) zero_merges_list(&tok->table, n, pairs, tokens);
    if (st == ZERO_OK && has_own_ids(tok, n, tokens))
        st = zero_tokenizer_from_merges(&own, pairs, n);
    free(pairs);
    free(tokens);
    if (st != ZERO_OK && st != ZERO_ERR_FORMAT) return st;
    if (own.vocab == 0) return ZERO_OK;
    zero_tokenizer_destroy(tok);
    *tok = own;
    return ZERO_OK;
}

zero_status zero_tokenizer_from_json(const char *path, const json_t *root,
                                     const void *bytes, size_t len, zero_tokenizer *out)
{
    reader r = {.path = path, .root = root};
    zero_tokenizer made = {.is_foreign = true, .end_of_text = -1};
    const char *slash = strrchr(path, '/');
    snprintf(made.name, sizeof made.name, "%s", slash ? slash + 1 : path);
    zero_status st = find_parts(&r);
    if (st == ZERO_OK) st = take_all(&r, &made);
    if (st == ZERO_OK) st = zero_bytes_append(&made.file, bytes, len);
    if (st == ZERO_OK) st = take_back(&r, &made);
    free(r.texts);
    free(r.is_added);
    free(r.is_mapped);
    if (st == ZERO_OK)
        *out = made;
    else
        zero_tokenizer_destroy(&made);
    return st;
}
