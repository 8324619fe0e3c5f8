#include "cli/option.h"

#include "base/quantity.h"
#include "train/metrics.h"

/* A value between its text and its field: one member, by the kind of the option. */
typedef struct {
    int64_t
        whole; /* of a flag 0 or 1; of a choice that is stored so the place of its word */
    double real;
    const char *text;
} value;

static bool is_real(const zero_option *option)
{
    return option->kind == ZERO_OPTION_REAL || option->kind == ZERO_OPTION_RATE;
}

/* True if a choice is stored as the place of its word. */
static bool is_place(const zero_option *option)
{
    return option->kind == ZERO_OPTION_CHOICE && option->size > 0 &&
           option->size < sizeof(const char *);
}

static bool is_text(const zero_option *option)
{
    return !is_place(option) &&
           (option->kind == ZERO_OPTION_TEXT || option->kind == ZERO_OPTION_CHOICE);
}

static void put(const zero_option *option, value v, void *into)
{
    if (option->offset == ZERO_OPTION_NOWHERE) return;
    char *at = (char *)into + option->offset;
    const int narrow = (int)v.whole;
    const bool flag = v.whole != 0;
    if (is_text(option))
        memcpy(at, &v.text, sizeof v.text);
    else if (is_real(option))
        memcpy(at, &v.real, sizeof v.real);
    else if (option->size == sizeof flag || option->kind == ZERO_OPTION_FLAG)
        memcpy(at, &flag, sizeof flag);
    else if (option->size == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &v.whole, sizeof v.whole);
}

static value get(const zero_option *option, const void *from)
{
    const void *at = (const char *)from + option->offset;
    if (is_text(option)) return (value){.text = *(const char *const *)at};
    if (is_real(option)) return (value){.real = *(const double *)at};
    if (option->size == sizeof(bool) || option->kind == ZERO_OPTION_FLAG)
        return (value){.whole = *(const bool *)at};
    return (value){.whole = option->size == sizeof(int) ? *(const int *)at
                                                        : *(const int64_t *)at};
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

zero_status zero_option_store(const zero_option *option, const char *text,
                              const char *where, void *into)
{
    value v = {.text = text};
    const char *word = text;
    size_t length = strlen(text);
    char words[ZERO_OPTION_TEXT_BYTES];
    bool is_rate = option->kind == ZERO_OPTION_RATE;
    switch (option->kind) {
    case ZERO_OPTION_WHOLE:
        v.whole = ZERO_OPTION_WORD;
        if (option->words && zero_same_text(text, option->words)) break;
        ZERO_INVALID_IF(!zero_quantity_whole(text, &v.whole) || v.whole < option->min ||
                            v.whole > option->max,
                        "%s: expected a whole number from %" PRId64 " to %" PRId64 "%s%s%s",
                        where, option->min, option->max, option->words ? ", or " : "",
                        option->words ? option->words : "",
                        option->max < 1000
                            ? ""
                            : "; 64K and 64KB are 64000, 64KiB is 65536, likewise M, G, T");
        break;
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE:
        ZERO_INVALID_IF(!(is_rate ? zero_quantity_rate(text, &v.real)
                                  : zero_quantity_real(text, &v.real)) ||
                            v.real < option->low || v.real > option->high,
                        "%s: expected a decimal number from %g to %g, such as %s", where,
                        option->low, option->high, is_rate ? "50G" : "0.5 or 3e-4");
        break;
    case ZERO_OPTION_FLAG:
        v.whole = zero_same_text(text, "on");
        ZERO_INVALID_IF(!v.whole && !zero_same_text(text, "off"),
                        "%s: expected on or off; on a command line --%s alone means on",
                        where, option->name);
        break;
    case ZERO_OPTION_CHOICE:
        for (v.whole = option->min;
             word_at(option, (int)(v.whole - option->min), &word, &length) &&
             (strlen(text) != length || memcmp(word, text, length) != 0);)
            v.whole++;
        join_words(option, words);
        ZERO_INVALID_IF(!word, "%s: expected one of %s", where, words);
        break;
    case ZERO_OPTION_TEXT:
        ZERO_INVALID_IF(*text == '\0', "%s: expected %s, found an empty text", where,
                        option->argument);
    }
    put(option, v, into);
    return ZERO_OK;
}

const zero_option *zero_option_named(const zero_option *row, const char *name)
{
    for (; !zero_same_text(row->name, name); row++) assert(row[1].name);
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
    bool may_be_zero = option->kind == ZERO_OPTION_WHOLE && option->min <= 0;
    put(option, (value){.whole = may_be_zero ? -1 : 0, .real = -1.0}, into);
}

/* ---- to text ---- */

static bool is_left_open(const zero_option *option, value v)
{
    if (is_text(option)) return !v.text;
    if (is_real(option)) return v.real < option->low || v.real > option->high;
    return option->kind == ZERO_OPTION_WHOLE && v.whole < option->min;
}

const char *zero_option_value(const zero_option *option, const void *from,
                              char text[ZERO_OPTION_TEXT_BYTES])
{
    const zero_field real = {option->name, ZERO_FIELD_REAL, option->offset, NULL};
    const char *word;
    size_t length;
    if (option->offset == ZERO_OPTION_NOWHERE) return NULL;
    value v = get(option, from);
    if (option->words && option->kind == ZERO_OPTION_WHOLE && v.whole == ZERO_OPTION_WORD)
        return option->words;
    if (is_left_open(option, v)) return NULL;
    if (is_text(option)) return v.text;
    if (option->kind == ZERO_OPTION_FLAG) return v.whole ? "on" : "off";
    if (is_real(option))
        zero_field_write(&real, from, text);
    else if (is_place(option)) {
        word_at(option, (int)(v.whole - option->min), &word, &length);
        snprintf(text, ZERO_OPTION_TEXT_BYTES, "%.*s", (int)length, word);
    } else
        snprintf(text, ZERO_OPTION_TEXT_BYTES, "%" PRId64, v.whole);
    return text;
}

json_t *zero_option_typed(const zero_option *option, const void *from)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    const char *text = zero_option_value(option, from, buffer);
    if (!text) return json_null();
    if (text == option->words) return json_string(text);
    if (is_real(option)) return json_real(get(option, from).real);
    if (option->kind == ZERO_OPTION_FLAG) return json_boolean(get(option, from).whole);
    return option->kind == ZERO_OPTION_WHOLE ? json_integer(get(option, from).whole)
                                             : zero_metrics_text(text);
}

json_t *zero_options_typed(const zero_option *rows, const void *from)
{
    json_t *values = json_object();
    for (const zero_option *row = rows; values && row->name; row++)
        if (row->offset != ZERO_OPTION_NOWHERE)
            json_object_set_new(values, row->name, zero_option_typed(row, from));
    return values;
}
