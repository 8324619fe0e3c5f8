#include "cli/notes.h"

#include <stdio.h>
#include <string.h>

#include "sharding/stages.h"

static bool keeps_parameters(const zero_config *c)
{
    return zero_stage_at((int)c->stage)->parameters == ZERO_HOLD_WHOLE;
}

static bool shards_nothing(const zero_config *c)
{
    return zero_stage_at((int)c->stage)->optimizer == ZERO_HOLD_WHOLE;
}

static bool has_replicas_of_nothing(const zero_config *c)
{
    return shards_nothing(c) && zero_config_shard_ranks(c) < c->data_ranks;
}

static bool sends_nothing(const zero_config *c)
{
    return strcmp(c->collectives, "shm") == 0;
}

/* Options, and the configurations in which they do little. */
static const struct {
    const char *name;
    bool (*is_idle)(const zero_config *config);
    const char *words;
} notes[] = {
    {"prefetch", keeps_parameters,
     "has no effect below stage 3: parameters are not sharded"},
    {"persist", keeps_parameters,
     "has no effect below stage 3: parameters are not sharded"},
    {"partition", shards_nothing,
     "shards nothing at stage 0: it only changes which rank sums which gradients"},
    {"message", sends_nothing,
     "has no effect with collectives shm, which send no messages"},
    {"shard-ranks", has_replicas_of_nothing,
     "shards nothing at stage 0: it only changes which rank sums which gradients"},
};

void zero_notes_show(const zero_config *config, zero_algorithm collectives)
{
    zero_config chosen = *config;
    chosen.collectives = zero_algorithm_name(collectives); /* not auto */
    const zero_command *train = &zero_command_train;
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++) {
        char text[ZERO_OPTION_TEXT_BYTES];
        const zero_option_table *table;
        const char *name = notes[i].name;
        int index = zero_command_find_option(train, 0, name, strlen(name));
        const zero_option *row = zero_command_option(train, index, &table);
        const char *value = zero_option_value(row, config, text);
        bool is_given = value && (!row->standard || strcmp(value, row->standard) != 0);
        if (is_given && notes[i].is_idle(&chosen))
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
