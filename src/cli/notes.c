#include "cli/notes.h"

#include <stdio.h>
#include <string.h>

#include "sharding/stages.h"

static bool keeps_parameters(const zero_stage *stage)
{
    return stage->parameters == ZERO_HOLD_WHOLE;
}

static bool shards_nothing(const zero_stage *stage)
{
    return stage->optimizer == ZERO_HOLD_WHOLE;
}

/* Options, and the stages at which they do little. */
static const struct {
    const char *name;
    bool (*is_idle)(const zero_stage *stage);
    const char *words;
} notes[] = {
    {"prefetch", keeps_parameters,
     "has no effect below stage 3: parameters are not sharded"},
    {"persist", keeps_parameters,
     "has no effect below stage 3: parameters are not sharded"},
    {"partition", shards_nothing,
     "shards nothing at stage 0: it only changes which rank sums which gradients"},
};

void zero_notes_show(const zero_config *config)
{
    const zero_command *train = &zero_command_train;
    const zero_stage *stage = zero_stage_at((int)config->stage);
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        char text[ZERO_OPTION_TEXT_BYTES];
        const zero_option_table *table;
        const char *name = notes[i].name;
        int index = zero_command_find_option(train, 0, name, strlen(name));
        const zero_option *row = zero_command_option(train, index, &table);
        const char *value = zero_option_value(row, config, text);
        if (notes[i].is_idle(stage) && strcmp(value, row->standard) != 0)
            fprintf(stderr, "zero: note: --%s %s %s\n", name, value, notes[i].words);
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
