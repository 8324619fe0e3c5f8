#include "cli/deepspeed_input.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"

#define WHOLE_MOST INT64_C(9007199254740992) /* 2^53: up to here a double is exact */

static const json_t *look_up(const zero_deepspeed_input *in, const char *key)
{
    const json_t *at = in->file;
    for (const char *part = key; at; part++) {
        const size_t length = strcspn(part, ".");
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, part);
        at = json_object_get(at, name);
        part += length;
        if (*part == '\0') break;
    }
    return at;
}

bool zero_deepspeed_is_auto(const zero_deepspeed_input *in, const char *key)
{
    const char *text = json_string_value(look_up(in, key));
    return text && strcmp(text, "auto") == 0;
}

const json_t *zero_deepspeed_value(const zero_deepspeed_input *in, const char *key)
{
    const json_t *value = look_up(in, key);
    return json_is_null(value) || zero_deepspeed_is_auto(in, key) ? NULL : value;
}

/* ---- mistakes ---- */

void zero_deepspeed_wrong(zero_deepspeed_input *in, const char *fmt, ...)
{
    char words[512];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(words, sizeof words, fmt, arguments);
    va_end(arguments);
    if (in->status == ZERO_OK)
        in->status = zero_fail(ZERO_ERR_INVALID, "%s: %s", in->path, words);
}

void zero_deepspeed_expected(zero_deepspeed_input *in, const char *key,
                             const char *expected)
{
    const json_t *value = look_up(in, key);
    char shown[ZERO_JSON_SHOWN] = "";
    const char *found = json_is_object(value)  ? "an object"
                        : json_is_array(value) ? "a list"
                        : json_is_true(value)  ? "true"
                        : json_is_false(value) ? "false"
                        : json_is_null(value)  ? "null"
                                               : shown;
    if (json_is_string(value))
        zero_json_shown(json_string_value(value), shown);
    else if (json_is_integer(value))
        snprintf(shown, sizeof shown, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        snprintf(shown, sizeof shown, "%.9g", json_real_value(value));
    zero_deepspeed_wrong(in, "\"%s\": expected %s, found %s", key, expected, found);
}

/* ---- typed values ---- */

int64_t zero_deepspeed_whole(zero_deepspeed_input *in, const char *key, int64_t least,
                             int64_t absent)
{
    const json_t *given = zero_deepspeed_value(in, key);
    char expected[64];
    if (!given) return absent;
    const double number = json_is_number(given) ? json_number_value(given) : -1.0;
    if (number == floor(number) && number >= (double)least && number <= (double)WHOLE_MOST)
        return (int64_t)number;
    snprintf(expected, sizeof expected, "a whole number from %" PRId64, least);
    zero_deepspeed_expected(in, key, expected);
    return absent;
}

double zero_deepspeed_real(zero_deepspeed_input *in, const char *key, double absent)
{
    const json_t *given = zero_deepspeed_value(in, key);
    if (json_is_number(given)) return json_number_value(given);
    if (given) zero_deepspeed_expected(in, key, "a number");
    return absent;
}

bool zero_deepspeed_flag(zero_deepspeed_input *in, const char *key, bool absent)
{
    const json_t *given = zero_deepspeed_value(in, key);
    if (json_is_boolean(given)) return json_is_true(given);
    if (given) zero_deepspeed_expected(in, key, "true or false");
    return absent;
}

const char *zero_deepspeed_text(zero_deepspeed_input *in, const char *key,
                                const char *absent)
{
    const json_t *given = zero_deepspeed_value(in, key);
    if (json_is_string(given)) return json_string_value(given);
    if (given) zero_deepspeed_expected(in, key, "a text in quotes");
    return absent;
}

/* ---- the translation ---- */

void zero_deepspeed_put(zero_deepspeed_input *in, const char *option, json_t *value)
{
    if (json_object_set_new(in->out.options, option, value) != 0 && in->status == ZERO_OK)
        in->status = zero_fail(ZERO_ERR_NOMEM, "no memory for the option %s", option);
}

static void append(zero_deepspeed_input *in, zero_bytes *text, const char *more)
{
    if (in->status == ZERO_OK) in->status = zero_bytes_append(text, more, strlen(more));
}

void zero_deepspeed_note(zero_deepspeed_input *in, const char *key, const char *fmt, ...)
{
    char line[512], shown[ZERO_JSON_SHOWN];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(line, sizeof line, fmt, arguments);
    va_end(arguments);
    append(in, &in->out.notes, zero_json_shown(key, shown));
    append(in, &in->out.notes, ": ");
    append(in, &in->out.notes, line);
    append(in, &in->out.notes, "\n");
}

void zero_deepspeed_refuse(zero_deepspeed_input *in, const char *key, const char *reason)
{
    enum { SHOWN = 8 };
    const int n = in->out.n_refused++;
    char shown[ZERO_JSON_SHOWN];
    if (n > 0 && n <= SHOWN) append(in, &in->out.refused, ", ");
    if (n <= SHOWN)
        append(in, &in->out.refused, n < SHOWN ? zero_json_shown(key, shown) : "...");
    zero_deepspeed_note(in, key, "refused: %s", reason);
}
