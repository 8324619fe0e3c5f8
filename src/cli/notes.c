#include "cli/notes.h"

#include <stdio.h>
#include <string.h>

/* Why the option is idle in this run; NULL: it is not. */
static const char *find_reason(const zero_option *row, const zero_run_facts *run)
{
    const size_t most = sizeof row->idle / sizeof row->idle[0];
    for (size_t i = 0; i < most && row->idle[i]; i++)
        if (row->idle[i]->holds(run)) return row->idle[i]->words;
    return NULL;
}

void zero_notes_show(const zero_options *given, const zero_run_facts *run)
{
    for (const zero_option *row = zero_run_options; row->name; row++) {
        char text[ZERO_OPTION_TEXT_BYTES];
        const char *value = zero_option_value(row, run->config, text);
        const char *reason = find_reason(row, run);
        bool is_planned = row->is & ZERO_OPTION_PLANNED;
        if (!reason || !value || (run->n_hosts == 0 && !is_planned)) continue;
        if (!zero_options_is_set(given, row->name)) continue;
        if (row->standard && strcmp(value, row->standard) == 0) continue;
        bool is_flag = row->kind == ZERO_OPTION_FLAG;
        fprintf(stderr, "zero: note: --%s%s%s %s\n", row->name, is_flag ? "" : " ",
                is_flag ? "" : value, reason);
    }
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
