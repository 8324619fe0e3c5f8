#include "cli/notes.h"

#include <stdio.h>
#include <string.h>

#define REASON 160

/* True if the option has its default, or was left open. */
static bool is_standard(const zero_option *row, const char *value)
{
    return !value || (row->standard && strcmp(value, row->standard) == 0);
}

static bool holds(const zero_option_idle *idle, const zero_notes *of, char text[REASON])
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    if (!idle->option) {
        snprintf(text, REASON, "%s", idle->words ? idle->words : "");
        return idle->holds && idle->holds(of->run);
    }
    const zero_option *row = zero_option_named(of->rows, idle->option);
    const char *value = zero_option_value(row, of->values, buffer);
    bool is_shown = idle->value && row->kind != ZERO_OPTION_FLAG;
    snprintf(text, REASON, "has no effect %s --%s%s%s", idle->value ? "with" : "without",
             idle->option, is_shown ? " " : "", is_shown ? idle->value : "");
    if (!idle->value) return is_standard(row, value);
    return value && strcmp(value, idle->value) == 0;
}

static bool is_idle(const zero_option *row, const zero_notes *of, char text[REASON])
{
    for (size_t i = 0; i < sizeof row->idle / sizeof row->idle[0]; i++)
        if (holds(&row->idle[i], of, text)) return true;
    return false;
}

void zero_notes_show_all(const zero_options *given, const zero_notes *of)
{
    for (const zero_option *row = of->rows; row->name; row++) {
        char buffer[ZERO_OPTION_TEXT_BYTES], reason[REASON];
        const char *value = zero_option_value(row, of->values, buffer);
        bool counts = (row->is & of->only) == of->only;
        if (!counts || !zero_options_is_set(given, row->name) || is_standard(row, value))
            continue;
        bool is_flag = row->kind == ZERO_OPTION_FLAG;
        if (is_idle(row, of, reason))
            fprintf(stderr, "zero: note: --%s%s%s %s\n", row->name, is_flag ? "" : " ",
                    is_flag ? "" : value, reason);
    }
}

void zero_notes_show(const zero_options *given, const zero_run_facts *run)
{
    const zero_notes notes = {.rows = zero_run_options,
                              .values = run->config,
                              .run = run,
                              .only = run->n_hosts > 0 ? 0 : ZERO_OPTION_PLANNED};
    zero_notes_show_all(given, &notes);
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
