#include "facts/csv.h"

#include "base/legible.h"

void zero_csv_text(const char *text, FILE *out)
{
    bool is_quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (is_quoted) fputc('"', out);
    for (size_t n; *text; text += n) {
        char shown[ZERO_SHOWN_BYTES];
        n = *text == '"' ? 1 : zero_legible(text, strcspn(text, "\""), shown, sizeof shown);
        fputs(*text == '"' ? "\"\"" : shown, out);
    }
    if (is_quoted) fputc('"', out);
}

static void print_field(const json_t *value, const char *unit, FILE *out)
{
    size_t i;
    json_t *item;
    char text[64];
    const double number = json_is_real(value) ? json_real_value(value) : 0.0;
    const zero_fact fact = {.kind = ZERO_FACT_NUMBER, .number = number, .node = value};
    const bool is_real = json_is_real(value);
    if (json_is_string(value)) zero_csv_text(json_string_value(value), out);
    if ((json_is_number(value) || json_is_boolean(value)) && isfinite(number) &&
        zero_unit_write(&fact, is_real ? unit : "", text, sizeof text))
        fputs(text, out);
    json_array_foreach((json_t *)value, i, item)
    {
        if (i > 0) fputc(' ', out);
        print_field(item, unit, out);
    }
}

void zero_csv_rows(const char *spec, const char *unit, const json_t *list,
                   const zero_scope *outer, bool names, FILE *out)
{
    const zero_scope none = {.node = NULL};
    zero_scope scope = {.outer = outer ? outer : &none};
    zero_spec_part part;
    while (names || zero_scope_next(list, &scope)) {
        for (const char *at = spec; zero_spec_next(&at, &part);) {
            json_t *value = names ? NULL : zero_spec_value(&part, &scope);
            fprintf(out, "%s%s", part.text == spec ? "" : ",", names ? part.name : "");
            print_field(value, unit, out);
            json_decref(value);
        }
        fputc('\n', out);
        names = false;
    }
}
