#include "cli/config_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/option_table.h"
#include "cli/option_value.h"

zero_status zero_config_file_load(const char *path, json_t **file)
{
    json_error_t at;
    FILE *stream = fopen(path, "r");
    if (!stream)
        return zero_fail(ZERO_ERR_INVALID, "--config %s: cannot be opened: %s", path,
                         strerror(errno));
    errno = 0;
    json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &at);
    bool unreadable = ferror(stream) != 0;
    int error = errno;
    fclose(stream);
    if (root && !json_is_object(root)) {
        json_decref(root);
        return zero_fail(
            ZERO_ERR_INVALID,
            "%s: expected one object of options, as in {\"steps\": 100}, found "
            "a list",
            path);
    }
    if (root) {
        *file = root;
        return ZERO_OK;
    }
    if (unreadable)
        return zero_fail(ZERO_ERR_INVALID, "--config %s: cannot be read: %s", path,
                         strerror(error));
    return zero_fail(ZERO_ERR_INVALID, "%s:%d:%d: not a JSON object of options: %s", path,
                     at.line, at.column, at.text);
}

/* A value as a user would write it behind a flag; numbers go through `buffer`. NULL if no
 * option takes such a value. */
static const char *as_text(const json_t *value, char *buffer, size_t size)
{
    switch (json_typeof(value)) {
    case JSON_STRING: return json_string_value(value);
    case JSON_TRUE: return "on";
    case JSON_FALSE: return "off";
    case JSON_INTEGER:
        snprintf(buffer, size, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return buffer;
    case JSON_REAL: snprintf(buffer, size, "%.17g", json_real_value(value)); return buffer;
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_NULL: break;
    }
    return NULL;
}

static zero_status check_type(const zero_option *option, const json_t *value,
                              const char *path)
{
    bool text = option->kind == ZERO_OPTION_TEXT || option->kind == ZERO_OPTION_CHOICE;
    bool flag = option->kind == ZERO_OPTION_FLAG;
    if (json_is_string(value)) return ZERO_OK; /* "2M", "on": as behind a flag */
    if (json_is_number(value) && !text && !flag) return ZERO_OK;
    if (json_is_boolean(value) && flag) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "\"%s\" in %s: expected %s, found another type",
                     option->name, path,
                     text   ? "a text in quotes"
                     : flag ? "true or false"
                            : "a number");
}

static zero_status find_key(const char *key, const char *path, const zero_option **option,
                            int *index)
{
    *option = zero_option_find(key, strlen(key), index);
    if (*option && !(*option)->command_line_only) return ZERO_OK;
    if (*option)
        return zero_fail(ZERO_ERR_INVALID, "\"%s\" in %s: belongs on the command line only",
                         key, path);
    const char *nearest = zero_option_nearest(key);
    if (nearest)
        return zero_fail(ZERO_ERR_INVALID,
                         "\"%.80s\" in %s: no such option; did you mean \"%s\"?", key, path,
                         nearest);
    return zero_fail(ZERO_ERR_INVALID, "\"%.80s\" in %s: no such option; --help lists all",
                     key, path);
}

zero_status zero_config_file_apply(const char *path, json_t *file, uint64_t overridden,
                                   zero_config *config, uint64_t *set)
{
    const char *key;
    json_t *value;
    json_object_foreach(file, key, value)
    {
        char number[64], where[512];
        const zero_option *option;
        int index;
        ZERO_TRY(find_key(key, path, &option, &index));
        if (overridden >> index & 1) continue;
        ZERO_TRY(check_type(option, value, path));
        const char *text = as_text(value, number, sizeof number);
        snprintf(where, sizeof where, "\"%s\": %.80s in %.300s", key, text, path);
        ZERO_TRY(zero_option_store(option, text, where, config));
        *set |= UINT64_C(1) << index;
    }
    return ZERO_OK;
}
