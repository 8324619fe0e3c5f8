#include "pages/expect.h"

#include "base/embedded.h"
#include "facts/facts.h"

extern const zero_embedded zero_page_forms[];

/* A line of expect.form. */
typedef struct {
    char path[256], kind[8], given[64];
    int64_t least, most; /* of a text `least` is the most */
} expected;

static zero_status check_length(const char *where, const char *key, const char *text,
                                size_t most)
{
    char shown[ZERO_JSON_SHOWN];
    ZERO_FORMAT_IF(strlen(text) > most, "%.500s: %s: expected at most %zu bytes, found %zu",
                   where, zero_json_shown(key, shown), most, strlen(text));
    return ZERO_OK;
}

static zero_status check_member(const char *where, const json_t *object, const char *key,
                                const expected *row)
{
    double number = 0.0;
    int64_t whole;
    bool flag;
    const char *text = "";
    const json_t *part;
    switch (row->kind[0]) {
    case 'w': return zero_json_whole(where, object, key, row->least, row->most, &whole);
    case 'f': return zero_json_flag(where, object, key, &flag);
    case 'o': return zero_json_object(where, object, key, &part);
    case 'l': return zero_json_array(where, object, key, &part);
    case 't':
        ZERO_TRY(zero_json_text(where, object, key, &text));
        return check_length(where, key, text, (size_t)row->least);
    default: /* number, any */
        if (!json_is_null(json_object_get(object, key)))
            ZERO_TRY(zero_json_real(where, object, key, &number));
        if (row->kind[0] == 'a' || number >= 0.0) return ZERO_OK;
        return zero_fail(
            ZERO_ERR_FORMAT,
            "%.500s: \"%.60s\": expected a number of at least 0 or null, found %g", where,
            key, number);
    }
}

static zero_status walk(const char *where, const char *inside, const json_t *object,
                        const char *path, const expected *row);

/* The member itself, or what is in it: `rest` of the path, "" at its end. */
static zero_status walk_member(const char *where, const char *inside, const json_t *object,
                               const char *key, const char *rest, const expected *row)
{
    char here[700], shown[ZERO_JSON_SHOWN];
    const json_t *part;
    zero_print(here, inside ? "%.560s: \"%s\"" : "%.560s", where,
               inside ? zero_json_shown(inside, shown) : "");
    if (!*rest) return check_member(here, object, key, row);
    ZERO_TRY(zero_json_object(here, object, key, &part));
    return walk(where, key, part, rest + 1, row);
}

static zero_status walk(const char *where, const char *inside, const json_t *object,
                        const char *path, const expected *row)
{
    const char *rest = path + strcspn(path, "/"), *name;
    json_t *member;
    if (*path == '*') {
        size_t most = strtoul(path + 1, NULL, 10);
        json_object_foreach((json_t *)object, name, member)
        {
            ZERO_TRY(check_length(where, name, name, most));
            ZERO_TRY(walk_member(where, inside, object, name, rest, row));
        }
        return ZERO_OK;
    }
    for (name = path; name < rest; name += *name == ',') {
        char key[64];
        size_t n = strcspn(name, ",/?["), i;
        zero_print(key, "%.*s", (int)n, name);
        name += n;
        bool may_miss = *name == '?';
        name += may_miss;
        if (may_miss && !json_object_get(object, key)) continue;
        if (*name == '[') {
            name += strlen("[]");
            json_array_foreach(json_object_get(object, key), i, member)
            {
                char item[80];
                zero_print(item, "%.40s %zu", key, i + 1);
                ZERO_FORMAT_IF(!json_is_object(member),
                               "%.500s: \"%s\": expected an object", where, item);
                ZERO_TRY(walk(where, item, member, rest + 1, row));
            }
            continue;
        }
        ZERO_TRY(walk_member(where, inside, object, key, rest, row));
    }
    return ZERO_OK;
}

zero_status zero_expect(const char *where, const json_t *object, const char *section)
{
    char heading[40];
    zero_print(heading, "=== %s\n", section);
    const char *line = strstr(zero_embedded_text(zero_page_forms, "expect"), heading);
    assert(line);
    for (line = strchr(line, '\n') + 1; *line && *line != '\n';
         line = strchr(line, '\n') + 1) {
        expected row = {.least = 0};
        sscanf(line, "%255s %7s %" SCNd64 " %" SCNd64 " if %63s", row.path, row.kind,
               &row.least, &row.most, row.given);
        if (!row.given[0] || zero_fact_at(object, row.given))
            ZERO_TRY(walk(where, NULL, object, row.path, &row));
    }
    return ZERO_OK;
}
