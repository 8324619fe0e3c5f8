#include "cli/option.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "train/metrics.h"

static void put(const zero_option *option, const void *value, size_t size, void *into)
{
    if (option->offset == ZERO_OPTION_NOWHERE) return;
    memcpy((char *)into + option->offset, value, size);
}

static void put_whole(const zero_option *option, int64_t number, void *into)
{
    const int narrow = (int)number;
    const bool flag = number != 0;
    switch (option->size) {
    case sizeof flag: put(option, &flag, sizeof flag, into); break;
    case sizeof narrow: put(option, &narrow, sizeof narrow, into); break;
    default: put(option, &number, sizeof number, into);
    }
}

static int64_t whole_at(const zero_option *option, const void *field)
{
    switch (option->size) {
    case sizeof(bool): return *(const bool *)field;
    case sizeof(int): return *(const int *)field;
    default: return *(const int64_t *)field;
    }
}

/* True if a choice is stored as the place of its word. */
static bool is_place(const zero_option *option)
{
    return option->kind == ZERO_OPTION_CHOICE && option->size > 0 &&
           option->size < sizeof(const char *);
}

/* ---- words ---- */

/* Appends word i of the row, "lines" of "lines|bar" for 0, or what name_at() adds after
 * those. False past the last one. */
static bool word_at(const zero_option *option, int i, const char **word, size_t *length)
{
    for (const char *w = option->words; w; i--) {
        *word = w;
        *length = strcspn(w, "|");
        if (i == 0) return true;
        w = w[*length] ? w + *length + 1 : NULL;
    }
    *word = option->name_at ? option->name_at(i) : NULL;
    *length = *word ? strlen(*word) : 0;
    return *word != NULL;
}

static void join_words(const zero_option *option, char text[ZERO_OPTION_TEXT_BYTES])
{
    const char *word;
    size_t length, used = 0;
    text[0] = '\0';
    for (int i = 0; word_at(option, i, &word, &length); i++) {
        int n = snprintf(text + used, ZERO_OPTION_TEXT_BYTES - used, "%s%.*s",
                         i > 0 ? "|" : "", (int)length, word);
        used += (size_t)n;
        assert(used < ZERO_OPTION_TEXT_BYTES);
    }
}

void zero_option_help(const zero_option *option, char text[ZERO_OPTION_HELP_BYTES])
{
    const char *meaning;
    bool has_meanings = option->kind == ZERO_OPTION_WHOLE && option->name_at;
    int used = snprintf(text, ZERO_OPTION_HELP_BYTES, "%s", option->help);
    for (int i = 0; has_meanings && (meaning = option->name_at(i)); i++)
        used += snprintf(text + used, (size_t)(ZERO_OPTION_HELP_BYTES - used), "%s%d %s",
                         i > 0 ? ", " : ": ", i, meaning);
    assert(used < ZERO_OPTION_HELP_BYTES);
}

void zero_option_argument(const zero_option *option, char text[ZERO_OPTION_TEXT_BYTES])
{
    text[0] = '\0';
    if (option->kind == ZERO_OPTION_CHOICE)
        join_words(option, text);
    else if (option->argument)
        snprintf(text, ZERO_OPTION_TEXT_BYTES, "%s%s%s", option->argument,
                 option->words ? "|" : "", option->words ? option->words : "");
}

/* ---- from text ---- */

static zero_status store_text(const zero_option *option, const char *text,
                              const char *where, void *into)
{
    char words[ZERO_OPTION_TEXT_BYTES];
    const char *word = text;
    size_t length = strlen(text);
    int place = 0; /* of the text among the row's words */
    if (option->kind == ZERO_OPTION_CHOICE)
        while (word_at(option, place, &word, &length) &&
               (strlen(text) != length || memcmp(word, text, length) != 0))
            place++;
    if (!word) {
        join_words(option, words);
        return zero_fail(ZERO_ERR_INVALID, "%s: expected one of %s", where, words);
    }
    if (*text == '\0')
        return zero_fail(ZERO_ERR_INVALID, "%s: expected %s, found an empty text", where,
                         option->argument);
    if (is_place(option))
        put_whole(option, option->min + place, into);
    else
        put(option, &text, sizeof text, into);
    return ZERO_OK;
}

zero_status zero_option_store(const zero_option *option, const char *text,
                              const char *where, void *into)
{
    switch (option->kind) {
    case ZERO_OPTION_WHOLE: {
        int64_t number = ZERO_OPTION_WORD;
        bool is_number = !option->words || strcmp(text, option->words) != 0;
        if (is_number && (!zero_quantity_whole(text, &number) || number < option->min ||
                          number > option->max))
            return zero_fail(
                ZERO_ERR_INVALID,
                "%s: expected a whole number from %" PRId64 " to %" PRId64 "%s%s%s", where,
                option->min, option->max, option->words ? ", or " : "",
                option->words ? option->words : "",
                option->max < 1000
                    ? ""
                    : "; 64K and 64KB are 64000, 64KiB is 65536, likewise M, G, T");
        put_whole(option, number, into);
        return ZERO_OK;
    }
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE: {
        double number = 0.0;
        bool is_rate = option->kind == ZERO_OPTION_RATE;
        bool is_number =
            is_rate ? zero_quantity_rate(text, &number) : zero_quantity_real(text, &number);
        if (!is_number || number < option->low || number > option->high)
            return zero_fail(
                ZERO_ERR_INVALID, "%s: expected a decimal number from %g to %g, such as %s",
                where, option->low, option->high, is_rate ? "50G" : "0.5 or 3e-4");
        put(option, &number, sizeof number, into);
        return ZERO_OK;
    }
    case ZERO_OPTION_FLAG: {
        bool on = strcmp(text, "on") == 0;
        if (!on && strcmp(text, "off") != 0)
            return zero_fail(
                ZERO_ERR_INVALID,
                "%s: expected on or off; on a command line --%s alone means on", where,
                option->name);
        put(option, &on, sizeof on, into);
        return ZERO_OK;
    }
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: break;
    }
    return store_text(option, text, where, into);
}

const zero_option *zero_option_named(const zero_option *row, const char *name)
{
    for (; strcmp(row->name, name) != 0; row++) assert(row[1].name);
    return row;
}

void zero_option_reset(const zero_option *option, void *into)
{
    if (option->standard) {
        zero_status st = zero_option_store(option, option->standard, option->name, into);
        assert(st == ZERO_OK);
        (void)st;
        return;
    }
    const char *no_text = NULL;
    int64_t number = option->min > 0 ? 0 : -1;
    double real = -1.0;
    bool off = false;
    switch (option->kind) {
    case ZERO_OPTION_WHOLE: put_whole(option, number, into); break;
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE: put(option, &real, sizeof real, into); break;
    case ZERO_OPTION_FLAG: put(option, &off, sizeof off, into); break;
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: put(option, &no_text, sizeof no_text, into); break;
    }
}

/* ---- to text ---- */

static bool is_left_open(const zero_option *option, const void *field)
{
    switch (option->kind) {
    case ZERO_OPTION_WHOLE: return whole_at(option, field) < option->min;
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE:
        return *(const double *)field < option->low ||
               *(const double *)field > option->high;
    case ZERO_OPTION_FLAG: return false;
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: break;
    }
    return !is_place(option) && *(const char *const *)field == NULL;
}

const char *zero_option_value(const zero_option *option, const void *from,
                              char text[ZERO_OPTION_TEXT_BYTES])
{
    const zero_field real = {option->name, ZERO_FIELD_REAL, option->offset, NULL};
    const char *word;
    size_t length;
    if (option->offset == ZERO_OPTION_NOWHERE) return NULL;
    const void *at = (const char *)from + option->offset;
    if (option->words && option->kind == ZERO_OPTION_WHOLE &&
        whole_at(option, at) == ZERO_OPTION_WORD)
        return option->words;
    if (is_left_open(option, at)) return NULL;
    switch (option->kind) {
    case ZERO_OPTION_WHOLE:
        snprintf(text, ZERO_OPTION_TEXT_BYTES, "%" PRId64, whole_at(option, at));
        return text;
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE: zero_field_write(&real, from, text); return text;
    case ZERO_OPTION_FLAG: return *(const bool *)at ? "on" : "off";
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: break;
    }
    if (!is_place(option)) return *(const char *const *)at;
    word_at(option, (int)(whole_at(option, at) - option->min), &word, &length);
    snprintf(text, ZERO_OPTION_TEXT_BYTES, "%.*s", (int)length, word);
    return text;
}

json_t *zero_option_typed(const zero_option *option, const void *from)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    const char *text = zero_option_value(option, from, buffer);
    const char *at = (const char *)from + option->offset;
    if (!text) return json_null();
    if (text == option->words) return json_string(text);
    switch (option->kind) {
    case ZERO_OPTION_WHOLE: return json_integer(strtoll(text, NULL, 10));
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE: return json_real(*(const double *)(const void *)at);
    case ZERO_OPTION_FLAG: return json_boolean(*(const bool *)at);
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: break;
    }
    return zero_metrics_text(text);
}

json_t *zero_options_typed(const zero_option *rows, const void *from)
{
    json_t *values = json_object();
    for (const zero_option *row = rows; values && row->name; row++)
        if (row->offset != ZERO_OPTION_NOWHERE)
            json_object_set_new(values, row->name, zero_option_typed(row, from));
    return values;
}
