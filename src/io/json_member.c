/* Members of JSON objects by key (json_input.h). */
#include "io/json_input.h"

#include <stdarg.h>

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a text";
    case JSON_INTEGER: return "a whole number";
    case JSON_REAL: return "a number with a fraction or an exponent";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: break;
    }
    return "null";
}

#define TYPE(type) (1u << (type))

/* The member of that key if its type is one of `types`. */
static zero_status member(const char *path, const json_t *object, const char *key,
                          const char *expected, unsigned types, const json_t **value)
{
    char shown[ZERO_JSON_SHOWN];
    zero_json_shown(key, shown);
    ZERO_FORMAT_IF(!json_is_object(object),
                   "%.500s: expected an object with \"%s\" in it, found %s", path, shown,
                   object ? type_name(object) : "nothing");
    const json_t *found = json_object_get(object, key);
    ZERO_FORMAT_IF(!found, "%.500s: \"%s\" is missing: expected %s", path, shown, expected);
    ZERO_FORMAT_IF(!(types & TYPE(json_typeof(found))),
                   "%.500s: \"%s\": expected %s, found %s", path, shown, expected,
                   type_name(found));
    *value = found;
    return ZERO_OK;
}

zero_status zero_json_whole(const char *path, const json_t *object, const char *key,
                            int64_t least, int64_t most, int64_t *value)
{
    char expected[80];
    const json_t *found = NULL;
    zero_print(expected, "a whole number from %" PRId64 " to %" PRId64, least, most);
    ZERO_TRY(member(path, object, key, expected, TYPE(JSON_INTEGER), &found));
    int64_t number = json_integer_value(found);
    ZERO_FORMAT_IF(number < least || number > most,
                   "%.500s: \"%s\": expected %s, found %" PRId64, path,
                   ZERO_SHOWN_SHORT(key), expected, number);
    *value = number;
    return ZERO_OK;
}

zero_status zero_json_real(const char *path, const json_t *object, const char *key,
                           double *value)
{
    const json_t *found = NULL; /* jansson reads no number that is not finite */
    ZERO_TRY(member(path, object, key, "a finite number",
                    TYPE(JSON_INTEGER) | TYPE(JSON_REAL), &found));
    *value = json_number_value(found);
    return ZERO_OK;
}

zero_status zero_json_flag(const char *path, const json_t *object, const char *key,
                           bool *value)
{
    const json_t *found = NULL;
    ZERO_TRY(member(path, object, key, "true or false", TYPE(JSON_TRUE) | TYPE(JSON_FALSE),
                    &found));
    *value = json_is_true(found);
    return ZERO_OK;
}

zero_status zero_json_text(const char *path, const json_t *object, const char *key,
                           const char **value)
{
    const json_t *found = NULL;
    ZERO_TRY(member(path, object, key, "a text", TYPE(JSON_STRING), &found));
    *value = json_string_value(found);
    return ZERO_OK;
}

zero_status zero_json_object(const char *path, const json_t *object, const char *key,
                             const json_t **value)
{
    return member(path, object, key, "an object", TYPE(JSON_OBJECT), value);
}

zero_status zero_json_array(const char *path, const json_t *object, const char *key,
                            const json_t **value)
{
    return member(path, object, key, "a list", TYPE(JSON_ARRAY), value);
}

zero_status zero_json_only(const char *path, const json_t *object, int n,
                           const char *const *names)
{
    char all[300] = "";
    /* jansson's iterators may change the object, so they take no const one. */
    json_t *members = (json_t *)object;
    for (void *i = json_object_iter(members); i; i = json_object_iter_next(members, i)) {
        const char *key = json_object_iter_key(i);
        int at = 0;
        while (at < n && !zero_same_text(key, names[at])) at++;
        if (at < n) continue;
        for (int k = 0; k < n; k++) {
            size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, "%s%s", k > 0 ? ", " : "", names[k]);
        }
        return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": no such key; expected one of %s",
                         path, ZERO_SHOWN_SHORT(key), all);
    }
    return ZERO_OK;
}

/* ---- trees of our own (json_tree.h) ---- */

void zero_put_item(json_t *list, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    json_array_append_new(list, json_vpack_ex(NULL, 0, format, args));
    va_end(args);
}

void zero_put_members(json_t *object, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    json_object_update_new(object, json_vpack_ex(NULL, 0, format, args));
    va_end(args);
}
