/* Numbers as people read them: three or four digits and a unit. */

#include "facts/facts.h"

/* Four digits, without an exponent; `unit` follows them. */
static void write_digits(double value, const char *unit, char *text, size_t size)
{
    double all = fabs(value);
    int digits = all == 0.0 ? 0 : all < 10.0 ? 3 : all < 100.0 ? 2 : all < 1000.0 ? 1 : 0;
    bool is_extreme = all > 1e15 || (all > 0.0 && all < 0.001);
    snprintf(text, size, is_extreme ? "%.*e%s" : "%.*f%s", is_extreme ? 3 : digits, value,
             unit);
}

/* Whole numbers and large ones in groups of three digits, with narrow blanks that do not
 * break. */
static void write_grouped(double value, char *text, size_t size)
{
    char digits[32];
    if ((value != round(value) && fabs(value) < 1000.0) || fabs(value) >= 1e15) {
        write_digits(value, "", text, size);
        return;
    }
    int length = zero_print(digits, "%.0f", round(value));
    size_t used = 0;
    for (int i = 0; i < length && used < size; i++) {
        bool is_break = i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0;
        used += (size_t)snprintf(text + used, size - used, "%s%c", is_break ? "\u202f" : "",
                                 digits[i]);
    }
}

/* False: there is no such unit. */
static bool write_named(double value, const char *unit, char *text, size_t size)
{
    static const char *const prefixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    bool is_known = true;
    double ms = 1e3 * value;
    size_t n = 0;
    if (zero_same_text(unit, "bytes")) {
        for (; fabs(value) >= 1024.0 && n + 1 < sizeof prefixes / sizeof prefixes[0]; n++)
            value /= 1024.0;
        snprintf(text, size, "%.*f %sB", n > 0 ? 2 : 0, value, prefixes[n]);
    } else if (zero_same_text(unit, "whole"))
        snprintf(text, size, "%.0f", value);
    else if (zero_same_text(unit, "number"))
        write_digits(value, "", text, size);
    else if (zero_same_text(unit, "seconds") && value >= 1.0)
        write_digits(value, " s", text, size);
    else if (zero_same_text(unit, "seconds"))
        write_digits(value > 0.0 && value < 1e-3 ? 1e6 * value : ms,
                     value > 0.0 && value < 1e-3 ? " us" : " ms", text, size);
    else if (zero_same_text(unit, "share"))
        snprintf(text, size, "%.1f %%", 100.0 * value);
    else if (zero_same_text(unit, "ms")) /* without their name: four digits */
        snprintf(text, size, "%.*f",
                 ms < 1.0      ? 4
                 : ms < 10.0   ? 3
                 : ms < 100.0  ? 2
                 : ms < 1000.0 ? 1
                               : 0,
                 ms);
    else if (zero_same_text(unit, "s") || zero_same_text(unit, "es"))
        snprintf(text, size, "%s", value == 1.0 ? "" : unit);
    else if (zero_same_text(unit, "grouped"))
        write_grouped(value, text, size);
    else
        is_known = false;
    return is_known;
}

/* ".3f", "+.1f", "g": what a double's conversion may be. */
static bool is_conversion(const char *unit)
{
    size_t n = strspn(unit, "+.0123456789");
    return n < 8 && unit[n] != '\0' && strchr("fge", unit[n]) && unit[n + 1] == '\0';
}

bool zero_unit_write(const zero_fact *fact, const char *unit, char *text, size_t size)
{
    bool is_whole =
        fact->node && (json_is_integer(fact->node) || json_is_boolean(fact->node));
    if (fact->kind == ZERO_FACT_TEXT || fact->kind == ZERO_FACT_TREE) {
        snprintf(text, size, "%.*s", (int)fact->length, fact->text ? fact->text : "");
        return unit[0] == '\0' || zero_same_text(unit, "text");
    }
    if (is_whole && (unit[0] == '\0' || zero_same_text(unit, "whole"))) {
        if (json_is_boolean(fact->node))
            snprintf(text, size, "%s", json_is_true(fact->node) ? "true" : "false");
        else
            snprintf(text, size, "%" JSON_INTEGER_FORMAT, json_integer_value(fact->node));
        return true;
    }
    bool is_named = write_named(fact->number, unit, text, size);
    if (unit[0] != '\0' && !is_named && !is_conversion(unit)) return false;
    if (is_named && isfinite(fact->number)) return true;
    char format[16];
    bool is_round = fact->number == floor(fact->number) && fabs(fact->number) < 9e15;
    zero_print(format, "%%%s", unit[0] ? unit : is_round ? ".0f" : "g");
    snprintf(text, size, "-");
    if (!isfinite(fact->number)) return true;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, size, format, fact->number);
#pragma GCC diagnostic pop
    return true;
}
