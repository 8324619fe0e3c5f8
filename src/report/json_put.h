/* json_put.h - members of a JSON object, by type. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

static inline void put_whole(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static inline void put_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_real(value));
}

static inline void put_text(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_string(value));
}

/* Writes the object and a newline, and releases it. */
static inline void put_out(json_t *object, FILE *out)
{
    json_dumpf(object, out, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(object);
}
