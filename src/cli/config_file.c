#include "cli/config_file.h"

#include "io/bytes.h"
#include "io/json_input.h"

#define MOST_BYTES ((size_t)64 << 20)

/* An unreadable --config is a usage error (2), not a damaged file (4). */
static zero_status refuse(const char *before, const char *after)
{
    return zero_fail(ZERO_ERR_INVALID, "%s%s%s", before, zero_last_error(), after);
}

zero_status zero_config_file_parse(const char *path, const void *bytes, size_t len,
                                   json_t **file)
{
    json_auto_t *root = NULL;
    zero_status st = zero_json_parse(path, bytes, len, &root);
    if (st == ZERO_ERR_FORMAT) return refuse("", "; this is not a JSON object of options");
    ZERO_TRY(st);
    ZERO_INVALID_IF(!json_is_object(root),
                    "%s: expected one object of options, as in {\"steps\": 100}, found %s",
                    path, json_is_array(root) ? "a list" : "another value");
    *file = json_incref(root);
    return ZERO_OK;
}

zero_status zero_config_file_load(const char *option, const char *path, json_t **file)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    zero_status st = zero_bytes_read_at_most(&text, path, MOST_BYTES);
    if (st == ZERO_ERR_NOMEM) return st;
    if (st != ZERO_OK) return refuse(option ? option : "", "");
    if (!option) zero_hjson_blank(text.bytes, text.len);
    return zero_config_file_parse(path, text.bytes, text.len, file);
}

/* A value as a user would write it after a flag; numbers go through `buffer`. NULL if no
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

/* The row of this name that a file may set. */
static zero_status find_key(const char *key, const char *path, const zero_command *command,
                            int *index)
{
    const zero_option_table *table;
    const zero_option *option;
    bool exists = false;
    char shown[ZERO_JSON_SHOWN];
    for (*index = 0; (option = zero_command_option(command, *index, &table)); ++*index) {
        if (!zero_same_text(option->name, key)) continue;
        if (table->in_file && !(option->is & ZERO_OPTION_COMMAND_LINE)) return ZERO_OK;
        exists = true;
    }
    ZERO_INVALID_IF(exists, "\"%s\" in %s: belongs on the command line only", key, path);
    const char *nearest = zero_command_nearest_option(command, key);
    zero_json_shown(key, shown);
    ZERO_INVALID_IF(nearest, "\"%s\" in %s: no such option; did you mean \"%s\"?", shown,
                    path, nearest);
    return zero_fail(ZERO_ERR_INVALID, "\"%s\" in %s: no such option; --help lists all",
                     shown, path);
}

zero_status zero_config_file_store(const char *path, json_t *file,
                                   const zero_command *command, const bool overridden[],
                                   void *into, bool set[])
{
    const char *key;
    json_t *value;
    json_object_foreach(file, key, value)
    {
        char number[64], where[512], shown[ZERO_JSON_SHOWN];
        const zero_option_table *table;
        int index;
        ZERO_TRY(find_key(key, path, command, &index));
        if (overridden[index]) continue;
        const zero_option *option = zero_command_option(command, index, &table);
        bool is_text =
            option->kind == ZERO_OPTION_TEXT || option->kind == ZERO_OPTION_CHOICE;
        bool is_flag = option->kind == ZERO_OPTION_FLAG;
        bool fits = json_is_string(value) || /* "2M", "on": as after a flag */
                    (json_is_number(value) && !is_text && !is_flag) ||
                    (json_is_boolean(value) && is_flag);
        ZERO_INVALID_IF(!fits, "\"%s\" in %s: expected %s, found another type",
                        option->name, path,
                        is_text   ? "a text in quotes"
                        : is_flag ? "true or false"
                                  : "a number");
        const char *text = as_text(value, number, sizeof number);
        zero_print(where, "\"%s\": %s in %.300s", key, zero_json_shown(text, shown), path);
        ZERO_TRY(zero_option_store(option, text, where, (char *)into + table->base));
        set[index] = true;
    }
    return ZERO_OK;
}

static bool begins(const unsigned char *text, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* The length of the string at the start of the text, with its quotes. */
static size_t string_length(const unsigned char *text, size_t len)
{
    size_t at = 1;
    while (at < len && text[at] != '"' && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
    return at < len ? at + 1 : len;
}

/* The length of the comment at the start of the text; 0 without one. */
static size_t comment_length(const unsigned char *text, size_t len)
{
    bool is_block = begins(text, len, "/*");
    size_t at = 2;
    if (!is_block && !begins(text, len, "//") && !begins(text, len, "#")) return 0;
    if (is_block)
        while (at < len && !begins(text + at, len - at, "*/")) at++;
    else
        for (at = 1; at < len && text[at] != '\n';) at++;
    if (is_block && at < len) at += 2;
    return at < len ? at : len;
}

void zero_hjson_blank(unsigned char *text, size_t len)
{
    unsigned char *comma = NULL; /* the last character that means something, if it is one */
    for (size_t at = 0, n; at < len; at += n) {
        n = comment_length(text + at, len - at);
        for (size_t i = at; i < at + n; i++)
            if (text[i] != '\n') text[i] = ' ';
        if (n > 0) continue;
        n = text[at] == '"' ? string_length(text + at, len - at) : 1;
        if (comma && (text[at] == '}' || text[at] == ']')) *comma = ' ';
        if (text[at] == ',')
            comma = text + at;
        else if (!strchr(" \t\r\n", text[at]) || text[at] == '\0')
            comma = NULL;
    }
}
