/* zero config: the configuration file of another program as one of zero's. */

#include "base/legible.h"
#include "cli/config_file.h"
#include "cli/deepspeed.h"
#include "cli/options.h"
#include "comm/launch.h"
#include "train/config.h"

typedef struct {
    const char *from;
    int64_t n_ranks;
} config_options;
static zero_status run(void *options, const zero_options *given)
{
    const config_options *o = options;
    const char *path = given->operands[0];
    json_auto_t *file = NULL;
    ZERO_AT_END(zero_deepspeed_destroy) zero_deepspeed found = {0};
    ZERO_TRY(zero_config_file_load(NULL, path, &file));
    ZERO_TRY(zero_deepspeed_translate(path, file, o->n_ranks, &found));
    if (zero_launch_rank_hint() <= 0 && found.notes.len > 0)
        fprintf(stderr, "%.*s", (int)found.notes.len, (const char *)found.notes.bytes);
    /* The printed options have passed the checks of a --config file. */
    static const bool overridden[ZERO_OPTIONS_MOST];
    bool set[ZERO_OPTIONS_MOST] = {false};
    zero_config config;
    ZERO_TRY(zero_deepspeed_check(path, &found));
    zero_options_reset(&zero_command_train, &config);
    ZERO_TRY(zero_config_file_store(path, found.options, &zero_command_train, overridden,
                                    &config, set));
    /* As they stand in a --config file, in the order of --help. */
    const zero_option_table *table_of;
    const zero_option *option;
    const char *before = "{";
    for (int i = 0; (option = zero_command_option(&zero_command_train, i, &table_of));
         i++) {
        if (!set[i]) continue;
        printf("%s", before);
        char text[ZERO_OPTION_TEXT_BYTES];
        const char *value = zero_option_value(option, &config, text);
        char *quoted = NULL;
        if (option->kind == ZERO_OPTION_TEXT || option->kind == ZERO_OPTION_CHOICE) {
            json_t *string = json_string(value);
            value = quoted = json_dumps(string, JSON_ENCODE_ANY);
            json_decref(string);
        }
        if (option->kind == ZERO_OPTION_FLAG)
            value = zero_same_text(value, "on") ? "true" : "false";
        ZERO_FAIL_IF(!value, ZERO_ERR_NOMEM, "no memory to print --%s", option->name);
        printf("\n  \"%s\": ", option->name);
        zero_legible_print_json(value, stdout);
        free(quoted);
        before = ",";
    }
    printf("%s\n}\n", *before == '{' ? before : "");
    return ZERO_OK;
}

const zero_command zero_command_config = {
#include "cli/options/config.command"
    .run = run,
};
