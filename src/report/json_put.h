/* json_put.h - members of a JSON object, by type. */
#pragma once

#include <jansson.h>

#include "base/fail.h"

static inline void put_whole(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static inline void put_real(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, json_real(value));
}

static inline void put_flag(json_t *object, const char *key, bool value)
{
    json_object_set_new(object, key, json_boolean(value));
}

static inline void put_text(json_t *object, const char *key, const char *value)
{
    json_object_set_new(object, key, json_string(value));
}

/* Prints the object, legible, and a newline, and releases it. ZERO_ERR_NOMEM, also for
 * NULL. */
ZERO_NODISCARD zero_status zero_json_print(json_t *object, size_t flags, FILE *out);

/* Prints a section of forms/report.txt, with texts legible, and releases the tree, which
 * may be NULL. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_report_print(const char *section, json_t *facts, FILE *out);
