#include "pages/fields.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "io/json_input.h"

zero_status zero_field_real_or_null(const char *where, const json_t *object,
                                    const char *key, double least, double *value)
{
    double number = NAN;
    if (!json_is_null(json_object_get(object, key)))
        ZERO_TRY(zero_json_real(where, object, key, &number));
    if (number < least)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: \"%.60s\": expected a number of at least %g or null, "
                         "found %g",
                         where, key, least, number);
    *value = number;
    return ZERO_OK;
}

static zero_status copy(const char *where, const char *key, const char *found, char *text,
                        size_t size)
{
    size_t length = strlen(found);
    char shown[ZERO_JSON_SHOWN];
    if (length >= size)
        return zero_fail(ZERO_ERR_FORMAT,
                         "%.500s: %s: expected at most %zu bytes, found %zu", where,
                         zero_json_shown(key, shown), size - 1, length);
    memcpy(text, found, length + 1);
    return ZERO_OK;
}

zero_status zero_field_text(const char *where, const json_t *object, const char *key,
                            char *text, size_t size)
{
    const char *found = NULL;
    ZERO_TRY(zero_json_text(where, object, key, &found));
    return copy(where, key, found, text, size);
}

zero_status zero_field_name(const char *where, const char *key, char *text, size_t size)
{
    return copy(where, key, key, text, size);
}
