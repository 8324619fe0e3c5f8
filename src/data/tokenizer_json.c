#include "data/tokenizer_json.h"

#include "base/grow.h"
#include "base/utf8.h"
#include "data/alphabet.h"
#include "data/ascii.h"
#include "data/normal.h"
#include "io/json_input.h"

/* A tokenizer.json being read. Texts are borrowed from it. */
typedef struct {
    const char *path;
    const json_t *root, *model, *vocab, *added, *merges;
    int64_t n_ids;
    const char **texts; /* [n_ids], by id */
    bool *is_added;     /* [n_ids] */
    bool *has_text;     /* [n_ids] a piece of text, or a character, may be this token */
    zero_bytes merge;   /* the one at hand, as two texts and both joined */
    bool is_own;        /* ids are those of our own */
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
        ZERO_FAIL_IF(flag, ZERO_ERR_UNSUPPORTED,
                     "%.500s: \"added_tokens\": a token with \"%s\" is not supported", path,
                     keys[i]);
    }
    return zero_json_only(path, token, 7, keys);
}

/* A token of the vocabulary keeps its id; others follow the vocabulary in their order, as
 * `tokenizers` numbers them. */
static zero_status take_added(reader *r, const json_t *token)
{
    const char *text = NULL;
    int64_t id = 0;
    ZERO_TRY(zero_json_text(r->path, token, "content", &text));
    ZERO_TRY(zero_tokenizer_check_added(r->path, token));
    const json_t *known = json_object_get(r->vocab, text);
    int64_t expected = known ? json_integer_value(known) : r->n_ids;
    ZERO_TRY(zero_json_whole(r->path, token, "id", 0, INT32_MAX, &id));
    ZERO_FORMAT_IF(id != expected || text[0] == '\0' || r->is_added[id],
                   "%.500s: \"added_tokens\": \"%s\" has the id %" PRId64
                   ": expected a text that occurs once, and the id %" PRId64,
                   r->path, ZERO_SHOWN_SHORT(text), id, expected);
    r->texts[id] = text;
    r->is_added[id] = true;
    r->n_ids += !known;
    return ZERO_OK;
}

static zero_status take_ids(reader *r)
{
    const int64_t n_vocab = (int64_t)json_object_size(r->vocab);
    size_t n = (size_t)n_vocab + json_array_size(r->added) + 1;
    ZERO_TRY(zero_new(&r->texts, n, "tokens"));
    ZERO_TRY(zero_new(&r->is_added, n, "tokens"));
    ZERO_TRY(zero_new(&r->has_text, n, "tokens"));
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)r->vocab, text, value)
    {
        json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        ZERO_FORMAT_IF(id < 0 || id >= n_vocab || r->texts[id],
                       "%.500s: \"vocab\": expected the ids 0 to %" PRId64
                       ", each once: that of \"%s\" is %s",
                       r->path, n_vocab - 1, ZERO_SHOWN_SHORT(text),
                       id < 0 || id >= n_vocab ? "not one" : "taken");
        r->texts[id] = text;
    }
    r->n_ids = n_vocab;
    for (size_t i = 0; i < json_array_size(r->added); i++)
        ZERO_TRY(take_added(r, json_array_get(r->added, i)));
    return ZERO_OK;
}

/* ---- texts ---- */

/* The alphabet of a tokenizer that learnt from a text may have only the bytes that occurred
 * there. */
static void take_bytes(reader *r, zero_tokenizer *tok)
{
    char name[8];
    r->is_own = tok->cuts_as_own;
    for (int byte = 0; byte < ZERO_VOCAB_BYTES; byte++) {
        zero_print(name, "<0x%02X>", byte);
        if (!tok->has_marks) zero_alphabet_letter((unsigned char)byte, name);
        const json_t *id = json_object_get(r->vocab, name);
        tok->byte_ids[byte] = id ? (int32_t)json_integer_value(id) : -1 - byte;
        tok->lacks_bytes = tok->lacks_bytes || !id;
        r->is_own = r->is_own && tok->byte_ids[byte] == byte;
    }
}

/* A token's bytes: those that its letters name, or the one whose token it is; an added
 * token's, and one's with other characters, are the text itself. */
static size_t write_text(reader *r, const zero_tokenizer *tok, int64_t id,
                         unsigned char *out)
{
    const char *text = r->texts[id];
    size_t len = strlen(text);
    if (!tok->has_marks) {
        r->has_text[id] = !r->is_added[id] && zero_alphabet_bytes(text, out, &len);
        if (!r->has_text[id]) memcpy(out, text, len);
        return len;
    }
    const unsigned byte = len == 6 ? strtoul(text + 3, NULL, 16) & 0xff : 0;
    if (len == 6 && tok->byte_ids[byte] == id) {
        *out = (unsigned char)byte;
        return 1;
    }
    /* No text has blanks when its characters are looked for. */
    r->has_text[id] = id < (int64_t)json_object_size(r->vocab) && text[0] != ' ' &&
                      zero_utf8_length((const unsigned char *)text, len + 1) == len;
    return zero_normal_unmark((const unsigned char *)text, len, out);
}

static zero_status take_texts(reader *r, zero_tokenizer *tok)
{
    size_t all = 1;
    for (int64_t i = 0; i < r->n_ids; i++) all += strlen(r->texts[i]);
    tok->vocab = (int32_t)r->n_ids;
    ZERO_TRY(zero_new(&tok->starts, r->n_ids + 1, "tokens"));
    ZERO_TRY(zero_new(&tok->bytes, all, "bytes of tokens"));
    for (int64_t i = 0; i < r->n_ids; i++)
        tok->starts[i + 1] =
            tok->starts[i] + (uint32_t)write_text(r, tok, i, tok->bytes + tok->starts[i]);
    return tok->ignores_merges || tok->has_marks
               ? zero_tokenizer_index_texts(tok, r->has_text)
               : ZERO_OK;
}

/* ---- merges ---- */

static zero_status not_two(const reader *r, size_t i)
{
    return zero_fail(
        ZERO_ERR_FORMAT,
        "%.500s: \"merges\"[%zu]: expected two tokens, as in \"a b\" or [\"a\", \"b\"]",
        r->path, i);
}

/* Lets r->merge be "left\0right\0leftright\0"; `n` bytes are left's. */
static zero_status join(reader *r, const char *left, size_t n, const char *right)
{
    size_t m = strlen(right);
    r->merge.len = 0;
    ZERO_TRY(zero_bytes_append(&r->merge, left, n));
    ZERO_TRY(zero_bytes_append(&r->merge, "", 1));
    ZERO_TRY(zero_bytes_append(&r->merge, right, m + 1));
    ZERO_TRY(zero_bytes_append(&r->merge, left, n));
    return zero_bytes_append(&r->merge, right, m + 1);
}

static zero_status split(reader *r, const json_t *merge, size_t i)
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
    *id = (int32_t)json_integer_value(found);
    ZERO_FORMAT_IF(!found, "%.500s: \"merges\"[%zu]: \"%s\" is not in the vocabulary",
                   r->path, i, ZERO_SHOWN_SHORT(text));
    return ZERO_OK;
}

static zero_status take_merges(reader *r, zero_tokenizer *tok)
{
    const size_t n = json_array_size(r->merges);
    ZERO_FORMAT_IF(n >= INT32_MAX / 4, "%.500s: %zu merges are too many", r->path, n);
    ZERO_TRY(zero_merges_init(&tok->table, (int32_t)n));
    ZERO_TRY(zero_new(&tok->merges, n, "merges"));
    for (size_t i = 0; i < n; i++) {
        zero_merge pair;
        int32_t token;
        ZERO_TRY(split(r, json_array_get(r->merges, i), i));
        const char *left = (const char *)r->merge.bytes, *right = left + strlen(left) + 1;
        ZERO_TRY(find(r, left, i, &pair.left));
        ZERO_TRY(find(r, right, i, &pair.right));
        ZERO_TRY(find(r, right + strlen(right) + 1, i, &token));
        r->is_own = r->is_own && token == ZERO_VOCAB_BYTES + (int64_t)i;
        tok->merges[i] = pair;
        const unsigned char *end = tok->bytes + tok->starts[pair.left + 1];
        const unsigned char *next = tok->bytes + tok->starts[pair.right];
        tok->joins_words = tok->joins_words || (*next == ' ' && end[-1] != ' ');
        tok->joins_lines =
            tok->joins_lines ||
            (*next == '\n' && zero_ascii_class_of(end[-1]) == ZERO_ASCII_LETTER);
        ZERO_FORMAT_IF(
            !zero_merges_add(&tok->table, pair, (int32_t)i, token),
            "%.500s: \"merges\"[%zu] joins two tokens that an earlier merge already joins",
            r->path, i);
    }
    return ZERO_OK;
}

/* ---- added tokens ---- */

/* Longer ones first, so that the first that fits is the longest. */
static int compare(const void *left, const void *right)
{
    const zero_added_token *a = left, *b = right;
    return a->len != b->len ? (a->len < b->len) - (a->len > b->len)
                            : memcmp(a->text, b->text, a->len);
}

/* False if two are the same. */
static bool sort_tokens(zero_added *added)
{
    bool differ = true;
    if (added->n > 0) zero_sort(added->tokens, added->n, compare);
    for (int64_t i = 1; i < added->n; i++)
        differ = differ && compare(&added->tokens[i - 1], &added->tokens[i]) != 0;
    return differ;
}

/* ---- all of it ---- */

/* Tokens that are found in normalized text are normalized themselves, and that is what they
 * decode to; but a character that is a token of the vocabulary stays one. */
static zero_status add_tokens(reader *r, zero_tokenizer *tok)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes made = {0};
    for (size_t i = 0; i < json_array_size(r->added); i++) {
        const json_t *token = json_array_get(r->added, i);
        const int32_t id = (int32_t)zero_get_whole(token, "id");
        zero_added *a = &tok->added[json_is_true(json_object_get(token, "normalized"))];
        zero_bytes text = {.bytes = (unsigned char *)r->texts[id],
                           .len = strlen(r->texts[id])};
        const bool is_one = zero_utf8_length(text.bytes, text.len) == text.len;
        if (zero_same_text(r->texts[id], ZERO_END_OF_TEXT)) tok->end_of_text = id;
        if (a == &tok->added[1]) ZERO_TRY(zero_normal_form(tok, true, true, &text, &made));
        /* A token of at least one byte, which is copied. */
        char *copy = calloc(text.len + 1, 1);
        if (!copy || !zero_grow(a->tokens, a->n, &a->capacity)) {
            free(copy);
            return zero_fail(ZERO_ERR_NOMEM, "no memory for %" PRId64 " added tokens",
                             a->n);
        }
        memcpy(copy, text.bytes, text.len);
        a->tokens[a->n++] = (zero_added_token){copy, text.len, id};
        a->begins[text.bytes[0]] = true;
        if (!(is_one && tok->has_marks)) r->texts[id] = a->tokens[a->n - 1].text;
    }
    if (sort_tokens(&tok->added[0]) && sort_tokens(&tok->added[1])) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%.500s: \"added_tokens\": two that are the same once they are "
                     "normalized are not supported",
                     r->path);
}

/* ---- our own ---- */

/* A tokenizer of ours, as it was written, becomes one of ours again. Others that cut text
 * as ours stay what they are, such as one of ours to which tokens were added. */
static zero_status take_back(const reader *r, zero_tokenizer *tok)
{
    zero_tokenizer own;
    const size_t n = json_array_size(r->merges);
    if (!r->is_own || tok->composes || tok->ignores_merges ||
        json_array_size(r->added) > 0 || (size_t)tok->vocab != n + ZERO_VOCAB_BYTES ||
        tok->vocab > ZERO_VOCAB_MAX)
        return ZERO_OK;
    zero_status st = zero_tokenizer_from_merges(&own, tok->merges, (int32_t)n);
    if (st != ZERO_OK) return st == ZERO_ERR_FORMAT ? ZERO_OK : st;
    zero_tokenizer_destroy(tok);
    *tok = own;
    return ZERO_OK;
}

static void destroy_reader(reader *r)
{
    zero_free(r->texts, r->is_added, r->has_text);
    zero_bytes_destroy(&r->merge);
}

zero_status zero_tokenizer_from_json(const char *path, const json_t *root,
                                     const void *bytes, size_t len, zero_tokenizer *out)
{
    ZERO_AT_END(destroy_reader) reader r = {.path = path, .root = root};
    ZERO_AT_END(zero_tokenizer_destroy)
    zero_tokenizer made = {.is_foreign = true, .end_of_text = -1};
    const char *slash = strrchr(path, '/');
    zero_print(made.name, "%s", slash ? slash + 1 : path);
    ZERO_TRY(zero_tokenizer_take_parts(r.path, r.root, &made));
    ZERO_TRY(zero_json_object(r.path, r.root, "model", &r.model));
    ZERO_TRY(zero_json_object(r.path, r.model, "vocab", &r.vocab));
    ZERO_TRY(zero_json_array(r.path, r.model, "merges", &r.merges));
    const json_t *added = json_object_get(r.root, "added_tokens");
    if (added && !json_is_null(added))
        ZERO_TRY(zero_json_array(r.path, r.root, "added_tokens", &r.added));
    ZERO_TRY(take_ids(&r));
    take_bytes(&r, &made);
    ZERO_TRY(add_tokens(&r, &made));
    ZERO_TRY(take_texts(&r, &made));
    ZERO_TRY(take_merges(&r, &made));
    ZERO_TRY(zero_bytes_append(&made.file, bytes, len));
    ZERO_TRY(take_back(&r, &made));
    ZERO_GIVE(out, made);
    return ZERO_OK;
}
