#include "cli/run_options.h"

#include "base/hash.h"

#include "cli/machine.h"
#include "facts/facts.h"
#include "math/backends.h"
#include "sharding/offload.h"
#include "sharding/stages.h"
#include "train/learning_rate.h"

const zero_option zero_run_options[] = {
#include "cli/options/train.rows"
};

/* ---- values: for checkpoints, metrics and other ranks ---- */

json_t *zero_run_options_identity(const zero_config *config)
{
    char buffer[ZERO_OPTION_TEXT_BYTES];
    json_t *values = json_object();
    for (const zero_option *row = zero_run_options; values && row->name; row++) {
        const char *text = zero_option_value(row, config, buffer);
        if (text && (row->is & ZERO_OPTION_IDENTITY))
            zero_put_string(values, row->name, text);
    }
    return values;
}

bool zero_run_options_is_as_ever(const char *name, const char *value)
{
    static const struct {
        const char *name, *value;
    } before[] = {{"activations", "fp32"},
                  {"bits", "auto"},
                  {"lr-decay", "cosine"},
                  {"message", "0"},
                  {"tp", "1"},
                  {"tp-slices", "1"},
                  {"tp-across-nodes", "off"},
                  {"partition-activations", "off"},
                  {"node-parameters", "off"},
                  {"optimizer", "adamw"},
                  {"muon-scale", "rms"},
                  {"muon-type", "fp32"},
                  {"pp", "1"},
                  {"pp-schedule", "1f1b"},
                  {"delayed-update", "0"}};
    for (int k = 0; k < ZERO_COUNT(before); k++)
        if (zero_same_text(before[k].name, name))
            return zero_same_text(before[k].value, value);
    return false;
}

json_t *zero_run_options_chosen(const zero_options *given, const zero_config *config)
{
    zero_config standard;
    json_t *values = json_object();
    zero_options_reset(&zero_command_train, &standard);
    for (const zero_option *row = zero_run_options; values && row->name; row++) {
        if (row->offset == ZERO_OPTION_NOWHERE || !zero_options_is_set(given, row->name))
            continue;
        json_t *value = zero_option_typed(row, config),
               *unset = zero_option_typed(row, &standard);
        if (!json_equal(value, unset)) json_object_set(values, row->name, value);
        json_decref(value);
        json_decref(unset);
    }
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

/* ---- notes ---- */

void zero_notes_show(const zero_options *given, const zero_option *rows, const void *values,
                     unsigned only, json_t *run)
{
    json_t *options = zero_options_typed(rows, values);
    json_object_update_missing(run, options);
    for (const zero_option *row = rows; row->name; row++) {
        char buffer[ZERO_OPTION_TEXT_BYTES];
        const char *value = zero_option_value(row, values, buffer);
        bool is_standard =
            !value || (row->standard && zero_same_text(value, row->standard));
        bool is_flag = row->kind == ZERO_OPTION_FLAG;
        if ((row->is & only) != only || !zero_options_is_set(given, row->name) ||
            is_standard)
            continue;
        const char *words = NULL; /* the first whose condition holds */
        for (int i = 0; i < ZERO_COUNT(row->idle) && !words; i++) {
            zero_fact fact;
            const zero_scope scope = {.node = run};
            const char *when = row->idle[i].when;
            if (when && zero_fact_of(when, strlen(when), &scope, &fact) == ZERO_OK &&
                zero_fact_is_true(&fact))
                words = row->idle[i].words;
        }
        if (words)
            fprintf(stderr, "zero: note: --%s%s%s %s\n", row->name, is_flag ? "" : " ",
                    is_flag ? "" : value, words);
    }
    json_decref(options);
    json_decref(run);
}

static void warn(ZERO_UNUSED void *arg, const char *text)
{
    fprintf(stderr, "zero: warning: %s\n", text);
}

zero_listener zero_notes_listener(void)
{
    return (zero_listener){.tell = warn};
}

void zero_run_options_note(const zero_options *given, const zero_config *c,
                           zero_algorithm collectives, int n_hosts)
{
    const int64_t over = c->plan.n_ranks;
    json_t *run = json_pack("{s:I, s:I, s:i, s:s, s:i}", "ranks",
                            (over * zero_tp_ranks(&c->tp) * zero_plan_stages(&c->plan)),
                            "over", over, "shards", zero_config_shard_ranks(c), "used",
                            zero_algorithm_name(collectives), "nodes", n_hosts);
    zero_notes_show(given, zero_run_options, c, n_hosts > 0 ? 0 : ZERO_OPTION_PLANNED, run);
}
