#include "pages/expect.h"

#include "base/fail.h"
#include "facts/facts.h"

static zero_status check_length(const char *where, const char *key, const char *text,
                                size_t most)
{
    char shown[ZERO_JSON_SHOWN];
    if (strlen(text) <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT, "%.500s: %s: expected at most %zu bytes, found %zu",
                     where, zero_json_shown(key, shown), most, strlen(text));
}

static zero_status check_number(const char *where, const json_t *object, const char *key,
                                bool is_any)
{
    double number = 0.0;
    if (!json_is_null(json_object_get(object, key)))
        ZERO_TRY(zero_json_real(where, object, key, &number));
    if (is_any || number >= 0.0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT,
                     "%.500s: \"%.60s\": expected a number of at least 0 or null, found %g",
                     where, key, number);
}

static zero_status check_member(const char *where, const json_t *object, const char *key,
                                const zero_expected *row)
{
    int64_t number;
    bool flag;
    const char *text = "";
    const json_t *part;
    switch (row->kind) {
    case ZERO_EXPECT_WHOLE:
        return zero_json_whole(where, object, key, row->least, row->most, &number);
    case ZERO_EXPECT_FLAG: return zero_json_flag(where, object, key, &flag);
    case ZERO_EXPECT_OBJECT: return zero_json_object(where, object, key, &part);
    case ZERO_EXPECT_LIST: return zero_json_array(where, object, key, &part);
    case ZERO_EXPECT_TEXT:
        ZERO_TRY(zero_json_text(where, object, key, &text));
        return check_length(where, key, text, (size_t)row->most);
    default: return check_number(where, object, key, row->kind == ZERO_EXPECT_ANY);
    }
}

static zero_status walk(const char *where, const char *inside, const json_t *object,
                        const char *path, const zero_expected *row);

/* The member itself, or what is in it: `rest` of the path, "" at its end. */
static zero_status walk_member(const char *where, const char *inside, const json_t *object,
                               const char *key, const char *rest, const zero_expected *row)
{
    char here[700], shown[ZERO_JSON_SHOWN];
    const json_t *part;
    snprintf(here, sizeof here, inside ? "%.560s: \"%s\"" : "%.560s", where,
             inside ? zero_json_shown(inside, shown) : "");
    if (!*rest) return check_member(here, object, key, row);
    ZERO_TRY(zero_json_object(here, object, key, &part));
    return walk(where, key, part, rest + 1, row);
}

/* Items are objects. */
static zero_status walk_item(const char *where, const char *list, size_t i,
                             const json_t *item, const char *rest, const zero_expected *row)
{
    char name[80];
    snprintf(name, sizeof name, "%.40s %zu", list, i + 1);
    if (json_is_object(item)) return walk(where, name, item, rest + 1, row);
    return zero_fail(ZERO_ERR_FORMAT, "%.500s: \"%s\": expected an object", where, name);
}

static zero_status walk(const char *where, const char *inside, const json_t *object,
                        const char *path, const zero_expected *row)
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
        snprintf(key, sizeof key, "%.*s", (int)n, name);
        name += n;
        bool may_miss = *name == '?';
        name += may_miss;
        if (may_miss && !json_object_get(object, key)) continue;
        if (*name == '[') {
            name += strlen("[]");
            json_array_foreach(json_object_get(object, key), i, member)
            {
                ZERO_TRY(walk_item(where, key, i, member, rest, row));
            }
            continue;
        }
        ZERO_TRY(walk_member(where, inside, object, key, rest, row));
    }
    return ZERO_OK;
}

zero_status zero_expect(const char *where, const json_t *object, const zero_expected *rows,
                        int n)
{
    for (int i = 0; i < n; i++)
        if (!rows[i].given || zero_fact_at(object, rows[i].given))
            ZERO_TRY(walk(where, NULL, object, rows[i].path, &rows[i]));
    return ZERO_OK;
}
