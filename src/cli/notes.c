#include "cli/notes.h"

#include <stdio.h>
#include <string.h>

#include "facts/facts.h"

/* The row's first words whose condition holds; NULL: it has its effect. */
static const char *find_idle(const zero_option *row, const json_t *run)
{
    for (size_t i = 0; i < sizeof row->idle / sizeof row->idle[0]; i++) {
        zero_fact fact;
        const zero_scope scope = {.node = run};
        const char *when = row->idle[i].when;
        if (when && zero_fact_of(when, strlen(when), &scope, &fact) == ZERO_OK &&
            zero_fact_is_true(&fact))
            return row->idle[i].words;
    }
    return NULL;
}

void zero_notes_show(const zero_options *given, const zero_option *rows, const void *values,
                     unsigned only, json_t *run)
{
    json_t *options = zero_options_typed(rows, values);
    json_object_update_missing(run, options);
    for (const zero_option *row = rows; row->name; row++) {
        char buffer[ZERO_OPTION_TEXT_BYTES];
        const char *value = zero_option_value(row, values, buffer);
        bool is_standard = !value || (row->standard && strcmp(value, row->standard) == 0);
        bool is_flag = row->kind == ZERO_OPTION_FLAG;
        if ((row->is & only) != only || !zero_options_is_set(given, row->name) ||
            is_standard)
            continue;
        const char *words = find_idle(row, run);
        if (words)
            fprintf(stderr, "zero: note: --%s%s%s %s\n", row->name, is_flag ? "" : " ",
                    is_flag ? "" : value, words);
    }
    json_decref(options);
    json_decref(run);
}

static void warn(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "zero: warning: %s\n", text);
}

zero_listener zero_notes_listener(void)
{
    return (zero_listener){.tell = warn};
}
