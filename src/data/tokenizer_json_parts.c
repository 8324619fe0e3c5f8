/* The parts of a tokenizer.json around its model. */

#include "base/number.h"
#include "data/tokenizer_json.h"
#include "io/json_input.h"

static zero_status unsupported(const char *path, const char *part, const char *what)
{
    return zero_fail(ZERO_ERR_UNSUPPORTED,
                     "%.500s: \"%s\": %s is not supported: this program reads BPE on bytes "
                     "(ByteLevel, byte_fallback), as GPT-2's, Llama's and Qwen's",
                     path, part, ZERO_SHOWN_SHORT(what));
}

static bool is_absent(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return !value || json_is_null(value);
}

/* An optional flag, which stays as it is if it is absent. */
static zero_status take_flag(const char *path, const json_t *object, const char *key,
                             bool *flag)
{
    return is_absent(object, key) ? ZERO_OK : zero_json_flag(path, object, key, flag);
}

/* The same, which must be as this program does it anyway. */
static zero_status expect_flag(const char *path, const json_t *object, const char *key,
                               bool standard, bool expected)
{
    bool found = standard;
    char what[64];
    ZERO_TRY(take_flag(path, object, key, &found));
    if (found == expected) return ZERO_OK;
    zero_print(what, "%s %s", key, found ? "true" : "false");
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

/* Whether it is the JSON that `text` says. */
static bool is(const json_t *value, const char *text)
{
    json_auto_t *known = json_loads(text, 0, NULL);
    return known && json_equal(known, value);
}

/* ---- normalizer and decoder ---- */

#define MARK    "\u2581"
#define COMPOSE "{\"type\": \"NFC\"}"
#define PREPEND "{\"type\": \"Prepend\", \"prepend\": \"" MARK "\"}"
#define REPLACE(from, to) \
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"" from "\"}, \"content\": \"" to \
    "\"}"
#define DECODERS(more) \
    "{\"type\": \"Sequence\", \"decoders\": [" REPLACE( \
        MARK, " ") ", {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}" more "]}"

/* Their order does not matter: no character is composed with a blank or a mark. */
static zero_status take_normalizer(const char *path, const json_t *whole,
                                   zero_tokenizer *tok)
{
    const char *type = NULL;
    const json_t *list = json_object_get(whole, "normalizers"), *step;
    ZERO_TRY(type_of(path, whole, "normalizer", &type));
    const size_t n = zero_same_text(type, "none") ? 0 : list ? json_array_size(list) : 1;
    for (size_t i = 0; i < n; i++) {
        step = list ? json_array_get(list, i) : whole;
        ZERO_TRY(type_of(path, step, "normalizer", &type));
        const bool prepends = tok->has_marks && is(step, PREPEND);
        const bool marks = tok->has_marks && is(step, REPLACE(" ", MARK));
        const bool composes = is(step, COMPOSE);
        if (!prepends && !marks && !composes) return unsupported(path, "normalizer", type);
        tok->composes = tok->composes || composes;
        tok->marks_early = tok->marks_early || marks;
        if (prepends) tok->blank = ZERO_BLANK_ALWAYS;
    }
    if (tok->blank == ZERO_BLANK_ALWAYS && !tok->marks_early)
        return unsupported(path, "normalizer", "Prepend without Replace");
    return ZERO_OK;
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

#define OWN_BYTES \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": false, " \
    "\"use_regex\": false}"
#define GPT2_BYTES \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, " \
    "\"use_regex\": true}"
#define SPLIT(pattern) \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern "\"}, \"behavior\": " \
    "\"Isolated\", \"invert\": false}"
/* ByteLevel comes first here, so that the pattern counts bytes. */
#define OWN_STEPS \
    "{\"type\": \"Sequence\", \"pretokenizers\": [" OWN_BYTES ", " SPLIT(OWN_PATTERN) "]}"
#define WHOLE(pre_tokenizer, decoder, model) \
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": " \
    "[], " \
    "\"normalizer\": null, \"pre_tokenizer\": " pre_tokenizer \
    ", \"post_processor\": null, " \
    "\"decoder\": " decoder ", \"model\": {" model "}}"
#define BPE \
    "\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, " \
    "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": " \
    "false, \"byte_fallback\": false, \"ignore_merges\": false, \"vocab\": {}, " \
    "\"merges\": []"
/* <unk> is not a token: `tokenizers` fails on other characters, as this program. */
#define WORDS "\"type\": \"WordLevel\", \"vocab\": {}, \"unk_token\": \"<unk>\""

json_t *zero_tokenizer_describe(zero_tokenizer_form form, json_t *vocab, json_t *merges)
{
    static const char *const forms[] = {
        [ZERO_FORM_OWN] = WHOLE(OWN_STEPS, OWN_BYTES, BPE),
        [ZERO_FORM_GPT2] = WHOLE(GPT2_BYTES, GPT2_BYTES, BPE),
        [ZERO_FORM_CHARACTERS] =
            WHOLE(SPLIT("[\\\\s\\\\S]"), "{\"type\": \"Fuse\"}", WORDS)};
    json_t *root = json_loads(forms[form], 0, NULL),
           *model = json_object_get(root, "model");
    bool is_made = json_object_set_new(model, "vocab", vocab) == 0;
    if (merges) is_made = json_object_set_new(model, "merges", merges) == 0 && is_made;
    if (is_made) return root;
    json_decref(root);
    return NULL;
}

/* ByteLevel must be the last step, and the only one of its kind: after it texts are letters
 * of its alphabet. */
static zero_status take_step(const char *path, const json_t *step, bool is_last,
                             zero_tokenizer *tok)
{
    const char *type = NULL;
    ZERO_TRY(type_of(path, step, "pre_tokenizer", &type));
    if (is_last && zero_same_text(type, "ByteLevel")) {
        static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets",
                                           "use_regex"};
        bool uses_regex = true;
        ZERO_TRY(zero_json_only(path, step, 4, keys));
        ZERO_TRY(expect_flag(path, step, "add_prefix_space", true, false));
        ZERO_TRY(take_flag(path, step, "use_regex", &uses_regex));
        return uses_regex ? add_pattern(path, ZERO_PATTERN_GPT2, tok) : ZERO_OK;
    }
    if (is_last || zero_same_text(type, "ByteLevel"))
        return unsupported(path, "pre_tokenizer",
                           "a list that does not end with ByteLevel");
    if (zero_same_text(type, "Digits")) {
        static const char *const keys[] = {"type", "individual_digits"};
        bool individual = false;
        ZERO_TRY(zero_json_only(path, step, 2, keys));
        ZERO_TRY(zero_json_flag(path, step, "individual_digits", &individual));
        return add_pattern(path, individual ? ZERO_PATTERN_DIGIT : ZERO_PATTERN_DIGIT "+",
                           tok);
    }
    if (zero_same_text(type, "Split")) {
        static const char *const keys[] = {"type", "pattern", "behavior", "invert"};
        const json_t *pattern = NULL;
        const char *behavior = NULL, *regex = NULL;
        ZERO_TRY(zero_json_only(path, step, 4, keys));
        ZERO_TRY(zero_json_object(path, step, "pattern", &pattern));
        ZERO_TRY(zero_json_text(path, step, "behavior", &behavior));
        ZERO_TRY(expect_flag(path, step, "invert", false, false));
        if (!zero_same_text(behavior, "Isolated"))
            return unsupported(path, "behavior", behavior);
        if (!json_object_get(pattern, "Regex"))
            return unsupported(path, "pattern", "a Split by anything but a Regex");
        ZERO_TRY(zero_json_text(path, pattern, "Regex", &regex));
        return add_pattern(path, regex, tok);
    }
    return unsupported(path, "pre_tokenizer", type);
}

static zero_status take_pre_tokenizer(const char *path, const json_t *whole,
                                      zero_tokenizer *tok)
{
    const json_t *list = NULL;
    const char *type = NULL;
    ZERO_TRY(type_of(path, whole, "pre_tokenizer", &type));
    if (tok->has_marks) {
        /* Where the blanks become marks. */
        static const char *const keys[] = {"type", "replacement", "prepend_scheme", "split",
                                           "add_prefix_space"};
        const char *mark = NULL, *scheme = "always";
        bool adds = true;
        if (tok->marks_early && zero_same_text(type, "none")) return ZERO_OK;
        if (tok->marks_early || !zero_same_text(type, "Metaspace"))
            return unsupported(path, "byte_fallback",
                               tok->marks_early ? "a pre_tokenizer after Replace"
                                                : "byte_fallback true without Metaspace");
        ZERO_TRY(zero_json_only(path, whole, 5, keys));
        ZERO_TRY(zero_json_text(path, whole, "replacement", &mark));
        if (json_object_get(whole, "prepend_scheme"))
            ZERO_TRY(zero_json_text(path, whole, "prepend_scheme", &scheme));
        ZERO_TRY(take_flag(path, whole, "add_prefix_space", &adds));
        tok->cuts_at_blanks = true;
        ZERO_TRY(take_flag(path, whole, "split", &tok->cuts_at_blanks));
        tok->blank = zero_same_text(scheme, "first")    ? ZERO_BLANK_FIRST
                     : zero_same_text(scheme, "always") ? ZERO_BLANK_EACH
                                                        : ZERO_BLANK_NEVER;
        if (!zero_same_text(mark, MARK)) return unsupported(path, "replacement", mark);
        if (tok->blank == ZERO_BLANK_NEVER && !zero_same_text(scheme, "never"))
            return unsupported(path, "prepend_scheme", scheme);
        if (!adds && json_object_get(whole, "prepend_scheme") &&
            tok->blank != ZERO_BLANK_NEVER)
            return unsupported(path, "add_prefix_space", "false with this prepend_scheme");
        if (!adds) tok->blank = ZERO_BLANK_NEVER;
        return ZERO_OK;
    }
    tok->cuts_as_own = is(whole, OWN_STEPS);
    if (tok->cuts_as_own) return ZERO_OK;
    if (zero_same_text(type, "ByteLevel")) return take_step(path, whole, true, tok);
    if (!zero_same_text(type, "Sequence")) return unsupported(path, "pre_tokenizer", type);
    ZERO_TRY(zero_json_array(path, whole, "pretokenizers", &list));
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++)
        ZERO_TRY(take_step(path, json_array_get(list, i), i == n - 1, tok));
    return n > 0 ? ZERO_OK : unsupported(path, "pre_tokenizer", "an empty Sequence");
}

/* ---- the post-processor ---- */

/* A template names its tokens; all other kinds but ByteLevel add some. */
void zero_tokenizer_find_around(const json_t *processor, char around[ZERO_TOKENIZER_AROUND])
{
    const char *type = zero_get_string(processor, "type");
    const json_t *steps = json_object_get(processor, "processors"), *step;
    const json_t *single = json_object_get(processor, "single");
    size_t i;
    if (!type || zero_same_text(type, "ByteLevel")) return;
    json_array_foreach(steps, i, step) zero_tokenizer_find_around(step, around);
    json_array_foreach(single, i, step)
    {
        const json_t *token = json_object_get(step, "SpecialToken");
        const char *id = zero_get_string(token, "id");
        if (id && !around[0]) snprintf(around, ZERO_TOKENIZER_AROUND, "%s", id);
    }
    if (!steps && !single && !around[0])
        snprintf(around, ZERO_TOKENIZER_AROUND, "%s", type);
}

/* ---- everything else ---- */

static zero_status take_model(const char *path, const json_t *model, zero_tokenizer *tok)
{
    static const char *const keys[] = {
        "type",     "dropout",       "unk_token",     "continuing_subword_prefix",
        "fuse_unk", "byte_fallback", "ignore_merges", "end_of_word_suffix",
        "vocab",    "merges"};
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const char *type = "BPE", *text = NULL;
    /* The oldest files do not name the type. */
    if (json_object_get(model, "type"))
        ZERO_TRY(zero_json_text(path, model, "type", &type));
    if (!zero_same_text(type, "BPE")) return unsupported(path, "model", type);
    if (!is_absent(model, "dropout")) return unsupported(path, "model", "dropout");
    ZERO_TRY(take_flag(path, model, "byte_fallback", &tok->has_marks));
    ZERO_TRY(take_flag(path, model, "ignore_merges", &tok->ignores_merges));
    if (tok->has_marks && tok->ignores_merges)
        return unsupported(path, "model", "ignore_merges true with byte_fallback true");
    for (int i = 0; i < ZERO_COUNT(empty); i++) {
        if (is_absent(model, empty[i])) continue;
        ZERO_TRY(zero_json_text(path, model, empty[i], &text));
        if (text[0] != '\0') return unsupported(path, "model", empty[i]);
    }
    return zero_json_only(path, model, ZERO_COUNT(keys), keys);
}

zero_status zero_tokenizer_take_parts(const char *path, const json_t *root,
                                      zero_tokenizer *tok)
{
    static const char *const keys[] = {"version",        "truncation", "padding",
                                       "added_tokens",   "normalizer", "pre_tokenizer",
                                       "post_processor", "decoder",    "model"};
    const json_t *model = NULL;
    ZERO_TRY(zero_json_object(path, root, "model", &model));
    ZERO_TRY(zero_json_only(path, root, ZERO_COUNT(keys), keys));
    ZERO_TRY(take_model(path, model, tok));
    ZERO_TRY(take_normalizer(path, json_object_get(root, "normalizer"), tok));
    const json_t *decoder = json_object_get(root, "decoder");
    static const char strip[] =
        DECODERS(", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}");
    const char *type = NULL;
    ZERO_TRY(type_of(path, decoder, "decoder", &type));
    tok->strips_blank = is(decoder, strip);
    const bool is_known =
        tok->has_marks ? tok->strips_blank || is(decoder, DECODERS(""))
                       : zero_same_text(type, "none") || zero_same_text(type, "ByteLevel");
    if (!is_known) ZERO_TRY(unsupported(path, "decoder", type));
    ZERO_TRY(take_pre_tokenizer(path, json_object_get(root, "pre_tokenizer"), tok));
    zero_tokenizer_find_around(json_object_get(root, "post_processor"), tok->around);
    return ZERO_OK;
}
