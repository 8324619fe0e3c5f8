#include "cli/option_value.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

static void put(const zero_option *option, const void *value, size_t size,
                zero_config *config)
{
    if (option->offset == ZERO_OPTION_NOWHERE) return;
    memcpy((char *)config + option->offset, value, size);
}

/* K is 1000, for elements and bytes alike; KiB is what our own output calls 1024 bytes. */
static bool multiply_suffix(const char *suffix, int64_t *number)
{
    static const char units[] = "KMGT";
    if (*suffix == '\0') return true;
    const char *unit = strchr(units, *suffix);
    bool is_binary = strcmp(suffix + 1, "iB") == 0;
    if (!unit || (suffix[1] != '\0' && !is_binary)) return false;
    for (const char *u = units; u <= unit; u++)
        if (__builtin_mul_overflow(*number, is_binary ? 1024 : 1000, number)) return false;
    return true;
}

static bool parse_whole(const char *text, int64_t *number)
{
    if (text[strspn(text, "-")] < '0' || text[strspn(text, "-")] > '9') return false;
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && multiply_suffix(end, number);
}

/* Decimal numbers only: strtod() would take nan, inf and hexadecimal, too. */
static bool parse_real(const char *text, double *number)
{
    if (strspn(text, "0123456789+-.eE") != strlen(text)) return false;
    char *end;
    errno = 0;
    *number = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0';
}

/* Rates of machines go beyond billions: T is 10^12. */
bool zero_option_parse_rate(const char *text, double *number)
{
    static const char units[] = "KMGT";
    char digits[64];
    size_t length = strlen(text);
    const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
    if (unit) length--;
    if (length == 0 || length >= sizeof digits) return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!parse_real(digits, number)) return false;
    for (const char *u = units; unit && u <= unit; u++) *number *= 1000.0;
    return true;
}

static bool is_word(const char *text, const char *words)
{
    size_t length = strlen(text);
    for (const char *w = words; w; w = strchr(w, '|')) {
        if (*w == '|') w++;
        if (strcspn(w, "|") == length && memcmp(w, text, length) == 0) return true;
    }
    return false;
}

zero_status zero_option_read_whole(const char *text, const char *where, int64_t least,
                                   int64_t most, int64_t *number)
{
    int64_t n;
    if (parse_whole(text, &n) && n >= least && n <= most) {
        *number = n;
        return ZERO_OK;
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: expected a whole number from %" PRId64 " to %" PRId64 "%s", where,
                     least, most,
                     most < 1000 ? "" : "; 64K is 64000, 64KiB is 65536, likewise M, G, T");
}

static zero_status store_whole(const zero_option *option, const char *text,
                               const char *where, zero_config *config)
{
    int64_t number;
    ZERO_TRY(zero_option_read_whole(text, where, option->min, option->max, &number));
    put(option, &number, sizeof number, config);
    return ZERO_OK;
}

static zero_status store_real(const zero_option *option, const char *text,
                              const char *where, zero_config *config)
{
    double number;
    if (!parse_real(text, &number) || !(number >= option->low && number <= option->high))
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: expected a decimal number from %g to %g, such as 0.5 or 3e-4",
                         where, option->low, option->high);
    put(option, &number, sizeof number, config);
    return ZERO_OK;
}

static zero_status store_text(const zero_option *option, const char *text,
                              const char *where, zero_config *config)
{
    if (option->kind == ZERO_OPTION_CHOICE && !is_word(text, option->words))
        return zero_fail(ZERO_ERR_INVALID, "%s: expected one of %s", where, option->words);
    if (*text == '\0')
        return zero_fail(ZERO_ERR_INVALID, "%s: expected %s, found an empty text", where,
                         option->argument);
    put(option, &text, sizeof text, config);
    return ZERO_OK;
}

static zero_status store_flag(const zero_option *option, const char *text,
                              const char *where, zero_config *config)
{
    bool on = strcmp(text, "on") == 0;
    if (!on && strcmp(text, "off") != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: expected on or off (on a command line --%s "
                         "alone means on)",
                         where, option->name);
    put(option, &on, sizeof on, config);
    return ZERO_OK;
}

static zero_status check_built(const zero_option *option, const char *text,
                               const char *where)
{
    if (!option->only || strcmp(text, option->only) == 0) return ZERO_OK;
    if (*option->only == '\0')
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "%s: this version of zero cannot do that yet; leave %s out", where,
                         option->name);
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "%s: this version of zero cannot do that yet, only %s %s; choose that, "
        "or leave it out",
        where, option->name, option->only);
}

zero_status zero_option_store(const zero_option *option, const char *text,
                              const char *where, zero_config *config)
{
    switch (option->kind) {
    case ZERO_OPTION_WHOLE: ZERO_TRY(store_whole(option, text, where, config)); break;
    case ZERO_OPTION_REAL: ZERO_TRY(store_real(option, text, where, config)); break;
    case ZERO_OPTION_FLAG: ZERO_TRY(store_flag(option, text, where, config)); break;
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: ZERO_TRY(store_text(option, text, where, config)); break;
    }
    return check_built(option, text, where);
}

void zero_option_reset(const zero_option *option, zero_config *config)
{
    if (option->standard) {
        zero_status st = zero_option_store(option, option->standard, option->name, config);
        assert(st == ZERO_OK);
        (void)st;
        return;
    }
    const char *no_text = NULL;
    int64_t number = option->min > 0 ? 0 : -1;
    double real = -1.0;
    bool off = false;
    switch (option->kind) {
    case ZERO_OPTION_WHOLE: put(option, &number, sizeof number, config); break;
    case ZERO_OPTION_REAL: put(option, &real, sizeof real, config); break;
    case ZERO_OPTION_FLAG: put(option, &off, sizeof off, config); break;
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: put(option, &no_text, sizeof no_text, config); break;
    }
}

/* ---- back to text ---- */

/* The fewest digits that are read back as the same number. */
static void write_shortest(double real, char *buffer, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g", digits, real);
        if (strtod(buffer, NULL) == real) return;
    }
}

/* Writes the value to `buffer` if it is no text already; NULL if the preset decides. */
static const char *as_text(const zero_option *option, const zero_config *config,
                           char *buffer, size_t size)
{
    const char *field = (const char *)config + option->offset, *text;
    int64_t number;
    double real;
    bool on;
    switch (option->kind) {
    case ZERO_OPTION_WHOLE:
        memcpy(&number, field, sizeof number);
        snprintf(buffer, size, "%" PRId64, number);
        return number < option->min ? NULL : buffer;
    case ZERO_OPTION_REAL:
        memcpy(&real, field, sizeof real);
        write_shortest(real, buffer, size);
        return real < option->low ? NULL : buffer;
    case ZERO_OPTION_FLAG: memcpy(&on, field, sizeof on); return on ? "on" : "off";
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: break;
    }
    memcpy(&text, field, sizeof text);
    return text;
}

static bool decides_what_is_computed(const char *group)
{
    static const char *const others[] = {"Checkpoints", "What is shown and written",
                                         "Diagnosis"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(group, others[i]) == 0) return false;
    return true;
}

json_t *zero_option_values(const zero_config *config)
{
    char buffer[64];
    int n;
    const zero_option *table = zero_option_table(&n);
    json_t *values = json_object();
    const char *group = "";
    for (int i = 0; values && i < n; i++) {
        if (table[i].group) group = table[i].group;
        if (table[i].offset == ZERO_OPTION_NOWHERE || !decides_what_is_computed(group))
            continue;
        const char *text = as_text(&table[i], config, buffer, sizeof buffer);
        if (text) json_object_set_new(values, table[i].name, json_string(text));
    }
    return values;
}
