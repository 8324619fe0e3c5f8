#include "data/tokenizer_beside.h"

#include "base/number.h"
#include "base/text.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

typedef struct {
    const zero_beside *beside;
    json_t *files[ZERO_BESIDE_FILES]; /* objects; NULL: not there; owned */
    const json_t *vocab;
    json_t *list;     /* "added_tokens" */
    json_t *by_text;  /* its members; owned */
    int64_t next;     /* the id of the next token that is not in the vocabulary */
    bool has_decoder; /* added_tokens_decoder */
    bool changed;
} adder;

static zero_status no_memory(const adder *a)
{
    return zero_fail(ZERO_ERR_NOMEM, "%.500s: no memory for %zu added tokens",
                     a->beside->files[0].path, json_array_size(a->list));
}

/* ---- one token ---- */

/* A token as one file describes it. */
typedef struct {
    const char *path, *text;
    int64_t id;          /* -1: none is said */
    const json_t *flags; /* NULL: none are said */
    bool is_special;
} saying;

/* A token that is known already keeps its id; with `replaces` it gets the flags. */
static zero_status add(adder *a, const saying *s, bool replaces)
{
    json_t *known = json_object_get(a->by_text, s->text);
    json_auto_t *token = NULL;
    const json_t *word = json_object_get(a->vocab, s->text);
    const int64_t id = known  ? zero_get_whole(known, "id")
                       : word ? json_integer_value(word)
                              : a->next;
    if (s->text[0] == '\0') return ZERO_OK;
    ZERO_FORMAT_IF(s->id >= 0 && s->id != id,
                   "%.500s: \"%s\" has the id %" PRId64 ": expected %" PRId64
                   ", which it has in the tokenizer, or as the next token after it",
                   s->path, ZERO_SHOWN_SHORT(s->text), s->id, id);
    if (known && !replaces) return ZERO_OK;
    /* A special token is looked for before texts are normalized, unless its flags say
     * something else. */
    static const char *const names[] = {"single_word", "lstrip", "rstrip", "normalized",
                                        "special"};
    const bool standard[] = {false, false, false, !s->is_special, s->is_special};
    token = json_pack("{s:I, s:s}", "id", id, "content", s->text);
    ZERO_FAIL_IF(!token, ZERO_ERR_NOMEM, "%.500s: no memory for an added token", s->path);
    for (int i = 0; i < 5; i++) {
        bool flag = standard[i];
        if (json_object_get(s->flags, names[i]))
            ZERO_TRY(zero_json_flag(s->path, s->flags, names[i], &flag));
        zero_put_flag(token, names[i], flag);
    }
    ZERO_TRY(zero_tokenizer_check_added(s->path, token));
    if (!known) {
        if (json_object_set(a->by_text, s->text, token) != 0 ||
            json_array_append(a->list, token) != 0)
            return no_memory(a);
        a->next += !word;
        a->changed = true;
        return ZERO_OK;
    }
    if (json_equal(token, known)) return ZERO_OK;
    a->changed = true;
    return json_object_update(known, token) == 0 ? ZERO_OK : no_memory(a);
}

/* ---- special tokens ---- */

static const char *const special_names[] = {"bos_token", "eos_token", "unk_token",
                                            "sep_token", "pad_token", "cls_token",
                                            "mask_token"};

enum { N_SPECIAL = ZERO_COUNT(special_names) };

/* The text of "</s>" or {"content": "</s>", ...}; NULL of anything else. */
static const char *text_of(const json_t *value)
{
    return json_string_value(json_is_object(value) ? json_object_get(value, "content")
                                                   : value);
}

static bool is_text(const json_t *value, const char *text)
{
    const char *own = text_of(value);
    return own && zero_same_text(own, text);
}

/* The value of a key in the file that counts; *path is that file's. */
static json_t *find(const adder *a, const char *key, const char **path)
{
    const bool is_mapped =
        !a->has_decoder && json_object_get(a->files[ZERO_BESIDE_SPECIAL], key);
    const zero_beside_file f = is_mapped ? ZERO_BESIDE_SPECIAL : ZERO_BESIDE_CONFIG;
    *path = a->beside->files[f].path;
    return json_object_get(a->files[f], key);
}

/* The list of special tokens without names. */
static json_t *find_extra(const adder *a, const char **path)
{
    json_t *extra = find(a, "extra_special_tokens", path);
    if (json_array_size(extra) > 0) return extra;
    return find(a, "additional_special_tokens", path); /* its older name */
}

static bool is_special(const adder *a, const char *text)
{
    const char *path;
    size_t i;
    json_t *value, *list = find_extra(a, &path);
    for (int k = 0; k < N_SPECIAL; k++)
        if (is_text(find(a, special_names[k], &path), text)) return true;
    json_array_foreach(list, i, value) if (is_text(value, text)) return true;
    return false;
}

static zero_status add_special(adder *a, const char *path, const char *key,
                               const json_t *value)
{
    const saying s = {.path = path,
                      .text = text_of(value),
                      .id = -1,
                      .flags = json_is_object(value) ? value : NULL,
                      .is_special = true};
    if (!value || json_is_null(value)) return ZERO_OK;
    if (s.text) return add(a, &s, false);
    return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected a token", path, key);
}

/* Names that only this model has: "image_token": "<image>". */
static zero_status add_own_names(adder *a, zero_beside_file f)
{
    const char *key, *path = a->beside->files[f].path;
    json_t *value;
    json_object_foreach(a->files[f], key, value)
    {
        bool is_own = strlen(key) > 6 && zero_ends_in(key, "_token") && text_of(value);
        for (int i = 0; i < N_SPECIAL; i++)
            is_own = is_own && !zero_same_text(key, special_names[i]);
        if (is_own) ZERO_TRY(add_special(a, path, key, value));
    }
    return ZERO_OK;
}

static zero_status add_special_tokens(adder *a)
{
    const char *path, *key;
    json_t *value;
    size_t i;
    for (int k = 0; k < N_SPECIAL; k++) {
        const saying end = {.text = ZERO_END_OF_TEXT, .id = -1, .is_special = true};
        value = find(a, special_names[k], &path);
        /* Beside GPT-2's two files its first three special tokens are <|endoftext|> if
         * nothing else is said. */
        ZERO_TRY(a->beside->is_pair && k < 3 && !value &&
                         json_object_get(a->vocab, ZERO_END_OF_TEXT)
                     ? add(a, &end, false)
                     : add_special(a, path, special_names[k], value));
    }
    ZERO_TRY(add_own_names(a, ZERO_BESIDE_CONFIG));
    if (!a->has_decoder) ZERO_TRY(add_own_names(a, ZERO_BESIDE_SPECIAL));
    json_t *named = find(a, "extra_special_tokens", &path); /* or a list */
    if (json_is_object(named))
        json_object_foreach(named, key, value) ZERO_TRY(add_special(a, path, key, value));
    json_t *extra = find_extra(a, &path);
    json_array_foreach(extra, i, value)
        ZERO_TRY(add_special(a, path, "extra_special_tokens", value));
    return ZERO_OK;
}

/* ---- tokens with ids ---- */

/* A member of added_tokens_decoder, "259": {"content": "<|user|>", ...}, or of
 * added_tokens.json, "<|user|>": 259. */
static zero_status read_saying(const adder *a, const char *key, const json_t *value,
                               saying *s)
{
    char *end = NULL;
    const char *config = a->beside->files[ZERO_BESIDE_CONFIG].path;
    const char *added = a->beside->files[ZERO_BESIDE_ADDED].path;
    *s = (saying){.path = added, .text = key, .id = -1};
    if (a->has_decoder) {
        *s = (saying){.path = config, .flags = value, .id = strtol(key, &end, 10)};
        s->text = json_is_object(value) ? text_of(value) : NULL;
        if (key[0] < '0' || key[0] > '9' || *end || !s->text) s->id = -1;
    } else {
        s->is_special = is_special(a, key);
        if (json_is_integer(value)) s->id = json_integer_value(value);
    }
    if (s->id >= 0 && s->id <= INT32_MAX) return ZERO_OK;
    return a->has_decoder
               ? zero_fail(
                     ZERO_ERR_FORMAT,
                     "%.500s: \"added_tokens_decoder\": expected ids with tokens, as in "
                     "\"259\": {\"content\": \"<|user|>\"}: \"%s\" is something else",
                     config, ZERO_SHOWN_SHORT(key))
               : zero_fail(ZERO_ERR_FORMAT,
                           "%.500s: expected tokens with ids, as in {\"<|user|>\": 259}: "
                           "that of \"%s\" is not one",
                           added, ZERO_SHOWN_SHORT(key));
}

static int by_id(const void *left, const void *right)
{
    const saying *a = left, *b = right;
    return zero_order(a->id, b->id);
}

/* ---- the configuration ---- */

/* Whether the tokenizer.json does itself what these flags ask for: a blank before a text,
 * or tokens around it. */
static bool does(const json_t *root, const char *flag)
{
    const json_t *normalizer = json_object_get(root, "normalizer"), *step;
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    const char *scheme = zero_get_string(pre, "prepend_scheme");
    char around[ZERO_TOKENIZER_AROUND] = "";
    size_t i;
    zero_tokenizer_find_around(json_object_get(root, "post_processor"), around);
    if (!zero_same_text(flag, "add_prefix_space")) return around[0] != '\0';
    json_array_foreach(json_object_get(normalizer, "normalizers"), i,
                       step) if (json_object_get(step, "prepend")) return true;
    return json_object_get(pre, "replacement") &&
           (!scheme || !zero_same_text(scheme, "never"));
}

static zero_status check_config(const adder *a, const json_t *root)
{
    static const char *const flags[] = {"add_prefix_space", "add_bos_token",
                                        "add_eos_token",    "do_lower_case",
                                        "strip_accents",    "split_special_tokens"};
    /* GPT-2's, and those that say nothing of how texts are cut. */
    static const char *const classes[] = {"GPT2Tokenizer", "GPT2TokenizerFast",
                                          "PreTrainedTokenizerFast", "TokenizersBackend"};
    const char *path = a->beside->files[ZERO_BESIDE_CONFIG].path;
    const json_t *config = a->files[ZERO_BESIDE_CONFIG];
    const char *class = zero_get_string(config, "tokenizer_class");
    for (int i = 0; i < ZERO_COUNT(flags); i++)
        ZERO_FAIL_IF(json_is_true(json_object_get(config, flags[i])) &&
                         !(i < 3 && does(root, flags[i])),
                     ZERO_ERR_UNSUPPORTED,
                     "%.500s: \"%s\": true is not supported, and without it texts have "
                     "other ids; if that is what the model wants, set it to false",
                     path, flags[i]);
    if (!a->beside->is_pair || !class) return ZERO_OK;
    for (int i = 0; i < ZERO_COUNT(classes); i++)
        if (zero_same_text(class, classes[i])) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "%.500s: \"tokenizer_class\": %s is not supported with two files, which do not say "
        "how it cuts texts; transformers writes a tokenizer.json, which does: "
        "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(OUT)",
        path, ZERO_SHOWN_SHORT(class));
}

/* ---- all of it ---- */

static void destroy_adder(adder *a)
{
    for (int i = 0; i < ZERO_BESIDE_FILES; i++) json_decref(a->files[i]);
    json_decref(a->by_text);
}

zero_status zero_tokenizer_add_beside(const zero_beside *beside, json_t *root,
                                      bool *changed)
{
    ZERO_AT_END(destroy_adder)
    adder a = {.beside = beside,
               .vocab = json_object_get(json_object_get(root, "model"), "vocab"),
               .list = json_object_get(root, "added_tokens")};
    *changed = false;
    if (!json_is_object(a.vocab)) return ZERO_OK; /* its own reader refuses it */
    if (!a.list || json_is_null(a.list)) {
        a.list = json_array();
        if (json_object_set_new(root, "added_tokens", a.list) != 0) return no_memory(&a);
    }
    if (json_is_array(a.list)) {
        for (int i = 0; i < ZERO_BESIDE_FILES; i++) {
            const char *path = a.beside->files[i].path;
            const zero_bytes *text = &a.beside->files[i].text;
            if (!a.beside->files[i].exists) continue;
            ZERO_TRY(zero_json_parse_wide(path, text->bytes, text->len, &a.files[i]));
            ZERO_FORMAT_IF(!json_is_object(a.files[i]), "%.500s: expected an object", path);
        }
        ZERO_TRY(check_config(&a, root));
        /* The tokens that the tokenizer.json has added itself. */
        size_t k;
        json_t *token;
        a.by_text = json_object();
        a.next = (int64_t)json_object_size(a.vocab);
        if (!a.by_text) return no_memory(&a);
        json_array_foreach(a.list, k, token)
        {
            const char *text = text_of(token);
            if (!json_is_object(token) || !text) continue; /* its own reader refuses it */
            if (json_object_set(a.by_text, text, token) != 0) return no_memory(&a);
            a.next += !json_object_get(a.vocab, text);
        }
        json_t *decoder =
            json_object_get(a.files[ZERO_BESIDE_CONFIG], "added_tokens_decoder");
        a.has_decoder = json_is_object(decoder);
        ZERO_FORMAT_IF(decoder && !a.has_decoder,
                       "%.500s: \"added_tokens_decoder\": expected an object",
                       a.beside->files[ZERO_BESIDE_CONFIG].path);
        /* In the order of ids, as transformers adds them. */
        json_t *object = a.has_decoder ? decoder : a.files[ZERO_BESIDE_ADDED];
        const char *key;
        json_t *value;
        size_t n = 0;
        ZERO_FREED saying *list = calloc(json_object_size(object) + 1, sizeof *list);
        if (!list) return no_memory(&a);
        json_object_foreach(object, key, value)
        {
            ZERO_TRY(read_saying(&a, key, value, &list[n++]));
        }
        zero_sort(list, n, by_id);
        for (size_t i = 0; i < n; i++) ZERO_TRY(add(&a, &list[i], a.has_decoder));
        ZERO_TRY(add_special_tokens(&a));
    }
    *changed = a.changed;
    return ZERO_OK;
}

void zero_beside_destroy(zero_beside *beside)
{
    for (int i = 0; i < ZERO_BESIDE_FILES; i++) zero_bytes_destroy(&beside->files[i].text);
    *beside = (zero_beside){.is_pair = false};
}
