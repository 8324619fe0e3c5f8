#include "pages/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"

#define COUNT(array) (sizeof array / sizeof array[0])

/* Members of the first line that say how a run was made, besides its configuration. */
static const char *const facts[] = {"version", "commit", "build",      "resumed_step",
                                    "ranks",   "nodes",  "hosts",      "cpu",
                                    "mpi",     "blas",   "arithmetic", "data"};
/* Each run has its own. */
static const char *const files[] = {"metrics", "trace", "expect-digest"};

static bool is_among(const char *key, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return false;
}

static zero_status no_memory(void)
{
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the settings of runs");
}

/* A missing value and null are both left open. */
static bool is_open(const json_t *value)
{
    return !value || json_is_null(value);
}

static bool are_equal(const json_t *a, const json_t *b)
{
    if (is_open(a) || is_open(b)) return is_open(a) && is_open(b);
    return json_equal(a, b);
}

/* Takes over `text`; NULL: there was no memory for it. */
static zero_status keep(zero_settings *s, char *text, const char **kept)
{
    void *larger =
        text ? zero_grow(s->texts, s->n_texts, &s->text_room, sizeof *s->texts) : NULL;
    if (!larger) {
        free(text);
        return no_memory();
    }
    s->texts = larger;
    s->texts[s->n_texts++] = text;
    *kept = text;
    return ZERO_OK;
}

static zero_status write_value(zero_settings *s, const json_t *value, const char **text)
{
    *text = "open";
    if (is_open(value)) return ZERO_OK;
    if (json_is_string(value)) return keep(s, strdup(json_string_value(value)), text);
    return keep(s, json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)), text);
}

/* ---- one setting of all runs ---- */

static const json_t *value_of(const zero_record *r, const char *key, bool is_option)
{
    const json_t *from = is_option ? json_object_get(r->file.run, "config") : r->file.run;
    return json_object_get(from, key);
}

static bool do_differ(const zero_record *records, int n, const char *key, bool is_option)
{
    for (int i = 1; i < n; i++)
        if (!are_equal(value_of(&records[0], key, is_option),
                       value_of(&records[i], key, is_option)))
            return true;
    return false;
}

static zero_status add(zero_settings *s, const zero_record *records, const char *key,
                       bool is_option)
{
    void *larger = zero_grow(s->settings, s->n, &s->room, sizeof *s->settings);
    if (!larger) return no_memory();
    s->settings = larger;
    zero_setting *setting = &s->settings[s->n];
    setting->values = calloc((size_t)s->n_runs, sizeof *setting->values);
    if (!setting->values) return no_memory();
    s->n++;
    snprintf(setting->name, sizeof setting->name, "%s%s", is_option ? "--" : "", key);
    for (int i = 0; i < s->n_runs; i++) {
        setting->values[i] = "unknown";
        if (!records[i].has_run) continue;
        ZERO_TRY(
            write_value(s, value_of(&records[i], key, is_option), &setting->values[i]));
    }
    return ZERO_OK;
}

/* ---- all settings ---- */

static bool is_option_before(const zero_record *records, int i, const char *key)
{
    for (int k = 0; k < i; k++)
        if (value_of(&records[k], key, true)) return true;
    return false;
}

/* The options of run i that the runs before it do not have. */
static zero_status compare_options(zero_settings *s, const zero_record *records, int i)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(records[i].file.run, "config"), key, value)
    {
        if (is_among(key, files, COUNT(files)) || is_option_before(records, i, key) ||
            !do_differ(records, s->n_runs, key, true))
            continue;
        ZERO_TRY(add(s, records, key, true));
    }
    return ZERO_OK;
}

static zero_status compare_all(zero_settings *s, const zero_record *records)
{
    for (int i = 0; i < s->n_runs; i++) ZERO_TRY(compare_options(s, records, i));
    for (size_t f = 0; f < COUNT(facts); f++)
        if (do_differ(records, s->n_runs, facts[f], false))
            ZERO_TRY(add(s, records, facts[f], false));
    return ZERO_OK;
}

zero_status zero_settings_compare(zero_settings *settings, const zero_record *records,
                                  int n_records)
{
    zero_settings s = {.n_runs = n_records};
    zero_status st = compare_all(&s, records);
    if (st == ZERO_OK)
        *settings = s;
    else
        zero_settings_destroy(&s);
    return st;
}

void zero_settings_destroy(zero_settings *settings)
{
    for (int64_t i = 0; i < settings->n; i++) free(settings->settings[i].values);
    for (int64_t i = 0; i < settings->n_texts; i++) free(settings->texts[i]);
    free(settings->settings);
    free(settings->texts);
    *settings = (zero_settings){0};
}
