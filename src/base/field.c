#include "base/field.h"

static void write_real(double real, char *text, size_t size)
{
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, real);
        if (strtod(text, NULL) == real) return;
    }
}

void zero_field_write(const zero_field *field, const void *of,
                      char text[ZERO_FIELD_TEXT_BYTES])
{
    const void *at = (const char *)of + field->offset;
    const size_t size = ZERO_FIELD_TEXT_BYTES;
    const char *words;
    switch (field->kind) {
    case ZERO_FIELD_FLAG:
        snprintf(text, size, "%s", *(const bool *)at ? "on" : "off");
        break;
    case ZERO_FIELD_INT:
        if (field->word)
            snprintf(text, size, "%s", field->word(*(const int *)at));
        else
            snprintf(text, size, "%d", *(const int *)at);
        break;
    case ZERO_FIELD_WHOLE: snprintf(text, size, "%" PRId64, *(const int64_t *)at); break;
    case ZERO_FIELD_REAL: write_real(*(const double *)at, text, size); break;
    case ZERO_FIELD_FLOAT: write_real((double)*(const float *)at, text, size); break;
    case ZERO_FIELD_CHARS: snprintf(text, size, "%s", (const char *)at); break;
    case ZERO_FIELD_TEXT:
        words = *(const char *const *)at;
        snprintf(text, size, "%s", words ? words : "");
        break;
    }
}
