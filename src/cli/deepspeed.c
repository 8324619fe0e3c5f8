#include "cli/deepspeed.h"

#include <ctype.h>

#include "base/embedded.h"
#include "facts/form.h"
#include "io/json_input.h"
#include "sharding/plan_input.h"

#define WHOLE_MOST INT64_C(9007199254740992) /* 2^53: up to here a double is exact */

extern const zero_embedded zero_cli_forms[];

typedef struct {
    const char *path; /* the file's, for messages */
    const json_t *file;
    json_t *automatic; /* the paths of values that are "auto" */
    zero_status status;
    zero_deepspeed out;
} input;

/* ---- mistakes and notes ---- */

/* The first mistake is kept; after it nothing is read. */
static void wrong(input *in, const char *words)
{
    if (in->status == ZERO_OK)
        in->status = zero_fail(ZERO_ERR_INVALID, "%s: %s", in->path, words);
}

/* The value at "a.b.c" is not what was expected. */
static void wrong_value(input *in, const char *key, const char *expected)
{
    char words[512], shown[ZERO_JSON_SHOWN] = "";
    zero_print(words, "%s", key);
    for (char *dot = words; (dot = strchr(dot, '.'));) *dot = '/';
    const json_t *value = zero_fact_at(in->file, words);
    const char *found = json_is_object(value)  ? "an object"
                        : json_is_array(value) ? "a list"
                        : json_is_true(value)  ? "true"
                        : json_is_false(value) ? "false"
                        : json_is_null(value)  ? "null"
                                               : shown;
    if (json_is_string(value))
        zero_json_shown(json_string_value(value), shown);
    else if (json_is_integer(value))
        zero_print(shown, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        zero_print(shown, "%.9g", json_real_value(value));
    zero_print(words, "\"%s\": expected %s, found %s", key, expected, found);
    wrong(in, words);
}

static void append(input *in, zero_bytes *text, const char *more)
{
    if (in->status == ZERO_OK) in->status = zero_bytes_append(text, more, strlen(more));
}

/* A line for the user about a key. */
static void note(input *in, const char *key, const char *before, const char *words)
{
    char shown[ZERO_JSON_SHOWN];
    append(in, &in->out.notes, zero_json_shown(key, shown));
    append(in, &in->out.notes, before);
    append(in, &in->out.notes, words);
    append(in, &in->out.notes, "\n");
}

/* The same about one that has no counterpart and changes results. */
static void refuse(input *in, const char *key, const char *reason)
{
    enum { SHOWN = 8 };
    const int n = in->out.n_refused++;
    char shown[ZERO_JSON_SHOWN];
    if (n > 0 && n <= SHOWN) append(in, &in->out.refused, ", ");
    if (n <= SHOWN)
        append(in, &in->out.refused, n < SHOWN ? zero_json_shown(key, shown) : "...");
    note(in, key, ": refused: ", reason);
}

/* ---- every key of the file ---- */

static bool is_fixed_at(const json_t *value, const char *fixed)
{
    if (zero_same_text(fixed, "false")) {
        /* True if the value says "off": false, null, 0, "none", an object that is empty or
         * not enabled. */
        const char *text = json_string_value(value);
        if (json_is_object(value))
            return json_object_size(value) == 0 ||
                   json_is_false(json_object_get(value, "enabled"));
        if (json_is_number(value)) return json_number_value(value) == 0.0;
        return json_is_false(value) || json_is_null(value) ||
               (text && zero_same_text(text, "none"));
    }
    if (json_is_number(value)) return json_number_value(value) == strtod(fixed, NULL);
    return json_is_null(value) || (json_is_true(value) && zero_same_text(fixed, "true"));
}

/* True if the value is of the rule's kind, else says what was expected. Whole numbers may
 * be written as 5e8. */
static bool is_of_kind(input *in, const char *path, const char *rule, const json_t *value)
{
    char expected[64] = "a number";
    const double number = json_is_number(value) ? json_number_value(value) : NAN;
    bool fits = json_is_number(value);
    if (strncmp(rule, "whole ", 6) == 0) {
        zero_print(expected, "a whole number from %s", rule + 6);
        fits = number == floor(number) && number >= strtod(rule + 6, NULL) &&
               number <= (double)WHOLE_MOST;
    } else if (zero_same_text(rule, "flag")) {
        zero_print(expected, "true or false");
        fits = json_is_boolean(value);
    } else if (zero_same_text(rule, "text") || zero_same_text(rule, "name")) {
        zero_print(expected, "a text in quotes");
        fits = json_is_string(value);
    } else if (zero_same_text(rule, "pair")) {
        zero_print(expected, "a list of two numbers");
        fits = json_array_size(value) == 2 && json_is_number(json_array_get(value, 0)) &&
               json_is_number(json_array_get(value, 1));
    }
    if (!fits) wrong_value(in, path, expected);
    return fits;
}

/* Small letters: names of optimizers are compared without case. */
static json_t *lowered(const char *name)
{
    json_t *text = json_string(name);
    for (char *c = (char *)json_string_value(text); c && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return text;
}

/* Puts the values that are taken into the tree, which is like the file but for those that
 * are null or "auto"; a section has its own path as "section". */
static void visit(input *in, const json_t *object, const char *prefix, json_t *tree)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const zero_deepspeed_key *key = zero_deepspeed_keys;
        const char *text = json_string_value(value);
        char path[256];
        zero_print(path, "%s%s%s", prefix, *prefix ? "." : "", name);
        while (key->path && !zero_same_text(key->path, path)) key++;
        /* A name with a dot only looks like a key of a section. */
        if (!key->path || strchr(name, '.'))
            refuse(in, path, "zero does not know this key of DeepSpeed");
        else if (text && zero_same_text(text, "auto")) {
            json_object_set_new(in->automatic, path, json_true());
            note(in, path, ": ",
                 "\"auto\" is for Hugging Face's Trainer; not taken: zero's own default "
                 "stays");
        } else if (key->rule[0] == 's') {
            /* A section, or a switch: without "enabled": true its members mean nothing. */
            bool is_switch = zero_same_text(key->rule, "switch");
            const json_t *enabled = json_object_get(value, "enabled");
            json_t *section = json_pack("{s:s}", "section", path);
            text = json_string_value(enabled);
            if (json_is_null(value))
                ;
            else if (!json_is_object(value))
                wrong_value(in, path, "an object");
            else if (!is_switch || json_is_true(enabled))
                visit(in, value, path, section);
            else if (text && zero_same_text(text, "auto"))
                note(in, path, ": ", "enabled is \"auto\": not taken; give --dtype");
            else if (enabled && !json_is_null(enabled)) {
                strncat(path, ".enabled", sizeof path - strlen(path) - 1);
                (void)is_of_kind(in, path, "flag", enabled);
            }
            if (json_is_object(value)) json_object_set(tree, name, section);
            json_decref(section);
        } else if (zero_same_text(key->rule, "any"))
            note(in, path, ": not taken: ", key->reason);
        else if (strncmp(key->rule, "only ", 5) == 0) {
            if (!is_fixed_at(value, key->rule + 5)) refuse(in, path, key->reason);
        } else if (!json_is_null(value) && is_of_kind(in, path, key->rule, value)) {
            if (zero_same_text(key->rule, "name"))
                json_object_set_new(tree, name, lowered(text));
            else
                json_object_set(tree, name, value);
        }
    }
}

/* ---- the translation ---- */

/* A line of forms/deepspeed.txt: "put OPTION VALUE", "note KEY: words", "refuse KEY:
 * words", "expected KEY: words", "wrong words". */
static void follow(input *in, char *line)
{
    char *key = line + strcspn(line, " "), *words;
    *key++ = '\0';
    if (zero_same_text(line, "wrong")) {
        wrong(in, key);
        return;
    }
    words = key + strcspn(key, ": ");
    if (*words == ':') *words++ = '\0';
    *words++ = '\0';
    if (zero_same_text(line, "note"))
        note(in, key, ": ", words);
    else if (zero_same_text(line, "refuse"))
        refuse(in, key, words);
    else if (zero_same_text(line, "expected"))
        wrong_value(in, key, words);
    else {
        json_t *value = json_loads(words, JSON_DECODE_ANY, NULL);
        if (json_object_set_new(in->out.options, key, value) != 0 && in->status == ZERO_OK)
            in->status = zero_fail(ZERO_ERR_NOMEM, "no memory for the option %s", key);
    }
}

/* Texts of the file are values of options. */
static void put(const char *text, FILE *out)
{
    json_t *string = json_string(text);
    json_dumpf(string, out, JSON_ENCODE_ANY);
    json_decref(string);
}

/* The numbers that many lines ask about. */
static const char numbers[] =
    "tp = or(tensor_parallel/autotp_size, 0); N = or(tensor_parallel/autotp_size, 0) > 1 ? "
    "floor(ranks / or(tensor_parallel/autotp_size, 1)) : ranks; G = or(train_batch_size, "
    "0); M = or(train_micro_batch_size_per_gpu, 0); A = or(gradient_accumulation_steps, 0)";

zero_status zero_deepspeed_translate(const char *path, const json_t *file, int64_t n_ranks,
                                     zero_deepspeed *out)
{
    input in = {.path = path,
                .file = file,
                .automatic = json_object(),
                .out = {.options = json_object()}};
    ZERO_FREED char *text = NULL;
    char *line, *rest;
    json_t *tree = json_pack("{s:I, s:I, s:O}", "ranks", n_ranks, "most_bucket",
                             ZERO_PLAN_MOST_BUCKET, "auto", in.automatic);
    if (!tree) in.status = zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
    visit(&in, file, "", tree);
    json_t *named = zero_facts_pick(&(zero_scope){.node = tree}, numbers);
    json_object_update(tree, named);
    if (in.status == ZERO_OK)
        in.status = zero_form_text(zero_embedded_text(zero_cli_forms, "deepspeed"),
                                   "options", tree, put, &text);
    for (line = text; line && *line && in.status == ZERO_OK; line = rest) {
        rest = line + strcspn(line, "\n");
        *rest++ = '\0';
        if (*line) follow(&in, line);
    }
    json_decref(named);
    json_decref(tree);
    json_decref(in.automatic);
    if (in.status == ZERO_OK)
        *out = in.out;
    else
        zero_deepspeed_destroy(&in.out);
    return in.status;
}

zero_status zero_deepspeed_check(const char *path, const zero_deepspeed *d)
{
    const bool one = d->n_refused == 1;
    ZERO_INVALID_IF(d->n_refused != 0,
                    "%s: %d key%s no counterpart and may change results: %.*s; take %s "
                    "out of the file if the run may differ",
                    path, d->n_refused, one ? " has" : "s have", (int)d->refused.len,
                    (const char *)d->refused.bytes, one ? "it" : "them");
    return ZERO_OK;
}

void zero_deepspeed_destroy(zero_deepspeed *d)
{
    json_decref(d->options);
    zero_bytes_destroy(&d->notes);
    zero_bytes_destroy(&d->refused);
    *d = (zero_deepspeed){0};
}
