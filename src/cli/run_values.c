/* A run's options as values: for checkpoints, metrics and other ranks. */
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/run_options.h"
#include "train/metrics.h"

zero_status zero_run_options_complete(void *config)
{
    zero_config *c = config;
    return zero_config_take_preset(c);
}

json_t *zero_run_options_identity(const zero_config *config)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    json_t *values = json_object();
    for (const zero_option *row = zero_run_options; values && row->name; row++) {
        const char *text = zero_option_value(row, config, buffer);
        if (text && (row->is & ZERO_OPTION_IDENTITY))
            json_object_set_new(values, row->name, json_string(text));
    }
    return values;
}

bool zero_run_options_is_as_ever(const char *name, const char *value)
{
    static const struct {
        const char *name, *value;
    } before[] = {{"activations", "fp32"},
                  {"lr-decay", "cosine"},
                  {"tp", "1"},
                  {"tp-slices", "1"},
                  {"tp-across-nodes", "off"},
                  {"partition-activations", "off"},
                  {"node-parameters", "off"},
                  {"delayed-update", "0"}};
    for (size_t k = 0; k < sizeof before / sizeof before[0]; k++)
        if (strcmp(before[k].name, name) == 0) return strcmp(before[k].value, value) == 0;
    return false;
}

/* An option's value with its type; null if it is left open. */
static json_t *typed(const zero_option *row, const zero_config *config)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    const char *text = zero_option_value(row, config, buffer);
    const char *at = (const char *)config + row->offset;
    if (!text) return json_null();
    switch (row->kind) {
    case ZERO_OPTION_WHOLE: return json_integer(strtoll(text, NULL, 10));
    case ZERO_OPTION_REAL:
    case ZERO_OPTION_RATE: return json_real(*(const double *)(const void *)at);
    case ZERO_OPTION_FLAG: return json_boolean(*(const bool *)at);
    case ZERO_OPTION_TEXT:
    case ZERO_OPTION_CHOICE: break;
    }
    return zero_metrics_text(text);
}

json_t *zero_run_options_chosen(const zero_options *given, const zero_config *config)
{
    zero_config standard;
    json_t *values = json_object();
    zero_options_reset(&zero_command_train, &standard);
    for (const zero_option *row = zero_run_options; values && row->name; row++) {
        if (row->offset == ZERO_OPTION_NOWHERE || !zero_options_is_set(given, row->name))
            continue;
        json_t *value = typed(row, config), *unset = typed(row, &standard);
        if (!json_equal(value, unset)) json_object_set(values, row->name, value);
        json_decref(value);
        json_decref(unset);
    }
    return values;
}

json_t *zero_run_options_resolved(const zero_config *config)
{
    json_t *values = json_object();
    for (const zero_option *row = zero_run_options; values && row->name; row++)
        if (row->offset != ZERO_OPTION_NOWHERE)
            json_object_set_new(values, row->name, typed(row, config));
    return values;
}

uint64_t zero_run_options_fingerprint(const zero_config *config)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    uint64_t hash = 0;
    for (const zero_option *row = zero_run_options; row->name; row++) {
        const char *text = zero_option_value(row, config, buffer);
        if (!text || (row->is & ZERO_OPTION_PER_RANK)) continue;
        hash = XXH3_64bits_withSeed(row->name, strlen(row->name), hash);
        hash = XXH3_64bits_withSeed(text, strlen(text), hash);
    }
    return hash;
}
