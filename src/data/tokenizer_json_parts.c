/* The parts of a tokenizer.json around its model. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

static zero_status unsupported(const char *path, const char *part, const char *what)
{
    char shown[ZERO_JSON_SHOWN];
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%.500s: \"%s\": %s is not supported: this program reads BPE on bytes "
                     "(ByteLevel), as GPT-2's and Llama-3's",
                     path, part, zero_json_shown(what, shown));
}

static bool is_absent(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return !value || json_is_null(value);
}

/* An optional flag, which must be as this program does it anyway. */
static zero_status expect_flag(const char *path, const json_t *object, const char *key,
                               bool standard, bool expected)
{
    bool found = standard;
    char what[64];
    if (!is_absent(object, key)) ZERO_TRY(zero_json_flag(path, object, key, &found));
    if (found == expected) return ZERO_OK;
    snprintf(what, sizeof what, "%s %s", key, found ? "true" : "false");
    return unsupported(path, key, what);
}

static zero_status type_of(const char *path, const json_t *object, const char *part,
                           const char **type)
{
    *type = "none";
    if (!object || json_is_null(object)) return ZERO_OK;
    if (!json_is_object(object)) return unsupported(path, part, "anything but an object");
    return zero_json_text(path, object, "type", type);
}

/* ---- the pre-tokenizer ---- */

static zero_status add_pattern(const char *path, const char *regex, zero_tokenizer *tok)
{
    if (tok->n_patterns == ZERO_TOKENIZER_PATTERNS)
        return unsupported(path, "pre_tokenizer", "a Sequence of more than 8 patterns");
    ZERO_TRY(zero_pattern_compile(path, regex, &tok->patterns[tok->n_patterns]));
    tok->n_patterns++;
    return ZERO_OK;
}

/* piece.h in GPT-2's alphabet. Blanks are U+0120, other white space U+0109 to U+010D. */
#define LETTERS       "A-Za-z\u00a1-\u00ac\u00ae-\u00ff\u0122-\u0143"
#define SPACES        "\u0120\u0109-\u010d"
#define BLANK         "\u0120"
#define UP_TO_64(set) BLANK "[" set "]{1,63}|[" set "]{1,64}|"
#define OWN_PATTERN \
    UP_TO_64(LETTERS) \
    UP_TO_64("0-9") \
    UP_TO_64("^0-9" LETTERS SPACES) \
    "[" SPACES "]{1,63}(?=" BLANK "[^" SPACES "])|[" SPACES "]{1,64}"

json_t *zero_tokenizer_byte_level(bool as_gpt2)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", as_gpt2, "use_regex", as_gpt2);
}

json_t *zero_tokenizer_own_steps(void)
{
    return json_pack("{s:s, s:[o, {s:s, s:{s:s}, s:s, s:b}]}", "type", "Sequence",
                     "pretokenizers", zero_tokenizer_byte_level(false), "type", "Split",
                     "pattern", "Regex", OWN_PATTERN, "behavior", "Isolated", "invert", 0);
}

json_t *zero_tokenizer_describe(json_t *steps, bool as_gpt2, json_t *vocab, json_t *merges)
{
    return json_pack(
        "{s:s, s:n, s:n, s:[], s:n, s:o, s:n, s:o, s:{s:s, s:n, s:n, s:n, s:n, "
        "s:b, s:b, s:b, s:o, s:o}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer",
        "pre_tokenizer", steps, "post_processor", "decoder",
        zero_tokenizer_byte_level(as_gpt2), "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback",
        0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
}

static bool is_own(const json_t *steps)
{
    json_t *own = zero_tokenizer_own_steps();
    bool equal = own && json_equal(own, steps);
    json_decref(own);
    return equal;
}

/* ByteLevel must be the last step, and the only one of its kind: after it texts are letters
 * of its alphabet. */
static zero_status take_step(const char *path, const json_t *step, bool is_last,
                             zero_tokenizer *tok)
{
    const char *type = NULL;
    ZERO_TRY(type_of(path, step, "pre_tokenizer", &type));
    if (is_last && strcmp(type, "ByteLevel") == 0) {
        static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets",
                                           "use_regex"};
        bool uses_regex = true;
        ZERO_TRY(zero_json_only(path, step, 4, keys));
        ZERO_TRY(expect_flag(path, step, "add_prefix_space", true, false));
        if (!is_absent(step, "use_regex"))
            ZERO_TRY(zero_json_flag(path, step, "use_regex", &uses_regex));
        return uses_regex ? add_pattern(path, ZERO_PATTERN_GPT2, tok) : ZERO_OK;
    }
    if (is_last || strcmp(type, "ByteLevel") == 0)
        return unsupported(path, "pre_tokenizer",
                           "a list that does not end with ByteLevel");
    if (strcmp(type, "Split") == 0) {
        static const char *const keys[] = {"type", "pattern", "behavior", "invert"};
        const json_t *pattern = NULL;
        const char *behavior = NULL, *regex = NULL;
        ZERO_TRY(zero_json_only(path, step, 4, keys));
        ZERO_TRY(zero_json_object(path, step, "pattern", &pattern));
        ZERO_TRY(zero_json_text(path, step, "behavior", &behavior));
        ZERO_TRY(expect_flag(path, step, "invert", false, false));
        if (strcmp(behavior, "Isolated") != 0)
            return unsupported(path, "behavior", behavior);
        if (!json_object_get(pattern, "Regex"))
            return unsupported(path, "pattern", "a Split by anything but a Regex");
        ZERO_TRY(zero_json_text(path, pattern, "Regex", &regex));
        return add_pattern(path, regex, tok);
    }
    return unsupported(path, "pre_tokenizer", type);
}

zero_status zero_tokenizer_take_patterns(const char *path, const json_t *root,
                                         zero_tokenizer *tok)
{
    const json_t *whole = json_object_get(root, "pre_tokenizer"), *list = NULL;
    const char *type = NULL;
    tok->cuts_as_own = is_own(whole);
    if (tok->cuts_as_own) return ZERO_OK;
    ZERO_TRY(type_of(path, whole, "pre_tokenizer", &type));
    if (strcmp(type, "ByteLevel") == 0) return take_step(path, whole, true, tok);
    if (strcmp(type, "Sequence") != 0) return unsupported(path, "pre_tokenizer", type);
    ZERO_TRY(zero_json_array(path, whole, "pretokenizers", &list));
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++)
        ZERO_TRY(take_step(path, json_array_get(list, i), i == n - 1, tok));
    return n > 0 ? ZERO_OK : unsupported(path, "pre_tokenizer", "an empty Sequence");
}

/* ---- the post-processor ---- */

/* Says in `around` what it adds: a template names its tokens; all other kinds but ByteLevel
 * add some. */
static void find_around(const json_t *processor, char *around, size_t size)
{
    const char *type = json_string_value(json_object_get(processor, "type"));
    const json_t *steps = json_object_get(processor, "processors"), *step;
    const json_t *single = json_object_get(processor, "single");
    size_t i;
    if (!type || strcmp(type, "ByteLevel") == 0) return;
    json_array_foreach(steps, i, step) find_around(step, around, size);
    json_array_foreach(single, i, step)
    {
        const json_t *token = json_object_get(step, "SpecialToken");
        const char *id = json_string_value(json_object_get(token, "id"));
        if (id && !around[0]) snprintf(around, size, "%s", id);
    }
    if (!steps && !single && !around[0]) snprintf(around, size, "%s", type);
}

void zero_tokenizer_take_around(const json_t *root, zero_tokenizer *tok)
{
    find_around(json_object_get(root, "post_processor"), tok->around, sizeof tok->around);
}

/* ---- everything else ---- */

static zero_status check_model(const char *path, const json_t *model)
{
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = "BPE", *text = NULL;
    /* The oldest files do not name the type. */
    if (json_object_get(model, "type"))
        ZERO_TRY(zero_json_text(path, model, "type", &type));
    if (strcmp(type, "BPE") != 0) return unsupported(path, "model", type);
    if (!is_absent(model, "dropout")) return unsupported(path, "model", "dropout");
    ZERO_TRY(expect_flag(path, model, "byte_fallback", false, false));
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        if (is_absent(model, empty[i])) continue;
        ZERO_TRY(zero_json_text(path, model, empty[i], &text));
        if (text[0] != '\0') return unsupported(path, "model", empty[i]);
    }
    return ZERO_OK;
}

zero_status zero_tokenizer_check_parts(const char *path, const json_t *root)
{
    static const char *const keys[] = {"version",        "truncation", "padding",
                                       "added_tokens",   "normalizer", "pre_tokenizer",
                                       "post_processor", "decoder",    "model"};
    static const char *const model_keys[] = {
        "type",     "dropout",       "unk_token",     "continuing_subword_prefix",
        "fuse_unk", "byte_fallback", "ignore_merges", "end_of_word_suffix",
        "vocab",    "merges"};
    const json_t *model = NULL;
    const char *type = NULL;
    ZERO_TRY(zero_json_object(path, root, "model", &model));
    ZERO_TRY(zero_json_only(path, root, sizeof keys / sizeof keys[0], keys));
    ZERO_TRY(check_model(path, model));
    ZERO_TRY(
        zero_json_only(path, model, sizeof model_keys / sizeof model_keys[0], model_keys));
    ZERO_TRY(type_of(path, json_object_get(root, "normalizer"), "normalizer", &type));
    if (strcmp(type, "none") != 0) return unsupported(path, "normalizer", type);
    ZERO_TRY(type_of(path, json_object_get(root, "decoder"), "decoder", &type));
    if (strcmp(type, "none") == 0 || strcmp(type, "ByteLevel") == 0) return ZERO_OK;
    return unsupported(path, "decoder", type);
}
