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
        char name[64];
        size_t length = strcspn(part, ".");
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

/* ---- typed values ---- */

static void show_value(const json_t *value, char shown[ZERO_JSON_SHOWN])
{
    switch (json_typeof(value)) {
    case JSON_STRING: zero_json_shown(json_string_value(value), shown); return;
    case JSON_TRUE: strcpy(shown, "true"); return;
    case JSON_FALSE: strcpy(shown, "false"); return;
    case JSON_INTEGER:
        snprintf(shown, ZERO_JSON_SHOWN, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
        return;
    case JSON_REAL:
        snprintf(shown, ZERO_JSON_SHOWN, "%.9g", json_real_value(value));
        return;
    case JSON_OBJECT: strcpy(shown, "an object"); return;
    case JSON_ARRAY: strcpy(shown, "a list"); return;
    case JSON_NULL: break;
    }
    strcpy(shown, "null");
}

zero_status zero_deepspeed_type_error(const zero_deepspeed_input *in, const char *key,
                                      const char *expected)
{
    char shown[ZERO_JSON_SHOWN];
    show_value(look_up(in, key), shown);
    return zero_fail(ZERO_ERR_INVALID, "%s: \"%s\": expected %s, found %s", in->path, key,
                     expected, shown);
}

zero_status zero_deepspeed_whole(const zero_deepspeed_input *in, const char *key,
                                 int64_t least, int64_t *value)
{
    const json_t *given = zero_deepspeed_value(in, key);
    char expected[64];
    if (!given) return ZERO_OK;
    double number = json_is_number(given) ? json_number_value(given) : -1.0;
    bool is_whole =
        number == floor(number) && number >= (double)least && number <= (double)WHOLE_MOST;
    snprintf(expected, sizeof expected, "a whole number from %" PRId64, least);
    if (!is_whole) return zero_deepspeed_type_error(in, key, expected);
    *value = (int64_t)number;
    return ZERO_OK;
}

zero_status zero_deepspeed_real(const zero_deepspeed_input *in, const char *key,
                                double *value)
{
    const json_t *given = zero_deepspeed_value(in, key);
    if (!given) return ZERO_OK;
    if (!json_is_number(given)) return zero_deepspeed_type_error(in, key, "a number");
    *value = json_number_value(given);
    return ZERO_OK;
}

zero_status zero_deepspeed_flag(const zero_deepspeed_input *in, const char *key,
                                bool *value)
{
    const json_t *given = zero_deepspeed_value(in, key);
    if (!given) return ZERO_OK;
    if (!json_is_boolean(given)) return zero_deepspeed_type_error(in, key, "true or false");
    *value = json_is_true(given);
    return ZERO_OK;
}

zero_status zero_deepspeed_text(const zero_deepspeed_input *in, const char *key,
                                const char **value)
{
    const json_t *given = zero_deepspeed_value(in, key);
    if (!given) return ZERO_OK;
    if (!json_is_string(given))
        return zero_deepspeed_type_error(in, key, "a text in quotes");
    *value = json_string_value(given);
    return ZERO_OK;
}

/* ---- the translation ---- */

zero_status zero_deepspeed_put(const zero_deepspeed_input *in, const char *option,
                               json_t *value)
{
    if (value && json_object_set_new(in->out->options, option, value) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the option %s", option);
}

static zero_status append(zero_bytes *text, const char *more)
{
    return zero_bytes_append(text, more, strlen(more));
}

zero_status zero_deepspeed_note(const zero_deepspeed_input *in, const char *key,
                                const char *fmt, ...)
{
    char line[512], shown[ZERO_JSON_SHOWN];
    va_list arguments;
    va_start(arguments, fmt);
    vsnprintf(line, sizeof line, fmt, arguments);
    va_end(arguments);
    ZERO_TRY(append(&in->out->notes, zero_json_shown(key, shown)));
    ZERO_TRY(append(&in->out->notes, ": "));
    ZERO_TRY(append(&in->out->notes, line));
    return append(&in->out->notes, "\n");
}

zero_status zero_deepspeed_refuse(const zero_deepspeed_input *in, const char *key,
                                  const char *reason)
{
    enum { SHOWN = 8 };
    zero_deepspeed *out = in->out;
    char shown[ZERO_JSON_SHOWN];
    const char *before = out->n_refused == 0 ? "" : ", ";
    if (out->n_refused < SHOWN) {
        ZERO_TRY(append(&out->refused, before));
        ZERO_TRY(append(&out->refused, zero_json_shown(key, shown)));
    } else if (out->n_refused == SHOWN) {
        ZERO_TRY(append(&out->refused, ", ..."));
    }
    out->n_refused++;
    return zero_deepspeed_note(in, key, "refused: %s", reason);
}
