/* json_tree.h - members of JSON objects by type: written, and read where they are known to
 * be sound or may be missing, which is 0 or NULL. (json_input.h reads strictly.) */
#pragma once

#include <jansson.h>

#include "base/fail.h"

static inline void zero_put_whole(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static inline void zero_put_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_real(value));
}

static inline void zero_put_flag(json_t *object, const char *key, bool value)
{
    json_object_set_new(object, key, json_boolean(value));
}

static inline void zero_put_string(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_string(value));
}

/* What json_pack() makes, as the next item of a list, or as more members of an object. */
void zero_put_item(json_t *list, const char *format, ...);
void zero_put_members(json_t *object, const char *format, ...);

static inline int64_t zero_get_whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static inline double zero_get_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static inline const char *zero_get_string(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}
