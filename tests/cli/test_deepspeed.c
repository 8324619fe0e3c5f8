/* A DeepSpeed configuration becomes options of zero train, or a reason why not. */

#include "support/test.h"

#include "cli/config_file.h"
#include "cli/deepspeed.h"
#include "support/mentions.h"

static json_t *parsed(const char *text)
{
    json_t *file = NULL;
    if (zero_config_file_parse("ds.json", text, strlen(text), &file) != ZERO_OK)
        fail_msg("%s: %s", text, zero_last_error());
    return file;
}

static zero_deepspeed translated(const char *text, int64_t n_ranks)
{
    json_t *file = parsed(text);
    zero_deepspeed d;
    if (zero_deepspeed_translate("ds.json", file, n_ranks, &d) != ZERO_OK)
        fail_msg("%s: %s", text, zero_last_error());
    json_decref(file);
    assert_ok(zero_bytes_append(&d.notes, "", 1)); /* a text for strstr() */
    mentions_exist(text, (const char *)d.notes.bytes);
    return d;
}

/* The options have the values of `expected`; null: the option is not given. */
static void gives(const char *text, int64_t n_ranks, const char *expected)
{
    zero_deepspeed d = translated(text, n_ranks);
    json_t *options = parsed(expected), *value;
    const char *key;
    json_object_foreach(options, key, value)
    {
        json_t *found = json_object_get(d.options, key);
        bool is_number = json_is_number(value) && json_is_number(found);
        bool equal = is_number ? json_number_value(value) == json_number_value(found)
                     : json_is_null(value) ? found == NULL
                                           : json_equal(value, found);
        if (!equal) fail_msg("%s: expected another %s", text, key);
    }
    if (zero_deepspeed_check("ds.json", &d) != ZERO_OK) fail_msg("%s", zero_last_error());
    json_decref(options);
    zero_deepspeed_destroy(&d);
}

/* The key is named in a line that contains `reason`, and the file is taken or not. */
static void names(const char *text, const char *key, const char *reason, bool is_refused)
{
    zero_deepspeed d = translated(text, 0);
    const char *line = strstr((const char *)d.notes.bytes, key);
    const char *end = line ? strchr(line, '\n') : NULL;
    const char *found = line ? strstr(line, reason) : NULL;
    if (!found || found > end)
        fail_msg("%s: no '%s' about %s in:\n%s", text, reason, key,
                 (const char *)d.notes.bytes);
    zero_status st = zero_deepspeed_check("ds.json", &d);
    assert_int_equal(st, is_refused ? ZERO_ERR_INVALID : ZERO_OK);
    if (is_refused) assert_told(key);
    zero_deepspeed_destroy(&d);
}

static void wrong(const char *text, int64_t n_ranks, const char *message)
{
    json_t *file = parsed(text);
    zero_deepspeed d;
    assert_fails(zero_deepspeed_translate("ds.json", file, n_ranks, &d), ZERO_ERR_INVALID,
                 message);
    json_decref(file);
}

#define TOTAL "\"train_batch_size\": "
#define MICRO "\"train_micro_batch_size_per_gpu\": "
#define STEPS "\"gradient_accumulation_steps\": "

TEST(batches_are_those_of_deepspeed)
{
    gives("{" TOTAL "64}", 0, "{\"global-batch\": 64, \"micro-batch\": null}");
    gives("{" MICRO "4}", 0, "{\"global-batch\": null, \"micro-batch\": 4}");
    gives("{" MICRO "4, " STEPS "1}", 0, "{\"global-batch\": null, \"micro-batch\": 4}");
    gives("{" TOTAL "64, " MICRO "4}", 0, "{\"global-batch\": 64, \"micro-batch\": 4}");
    gives("{" TOTAL "64, " MICRO "4, " STEPS "8}", 0,
          "{\"global-batch\": 64, \"micro-batch\": 4}");
    gives("{" TOTAL "64, " MICRO "4, " STEPS "8}", 2, "{\"global-batch\": 64}");
    gives("{" TOTAL "64, " STEPS "8}", 2, "{\"global-batch\": 64, \"micro-batch\": 4}");
    gives("{" MICRO "4, " STEPS "8}", 3, "{\"global-batch\": 96, \"micro-batch\": 4}");
    gives("{" TOTAL "\"auto\", " MICRO "\"auto\", " STEPS "\"auto\"}", 0,
          "{\"global-batch\": null, \"micro-batch\": null}");
    names("{}", "train_batch_size", "neither batch is given", false);
    names("{" TOTAL "64, " MICRO "4, " STEPS "8}", "gradient_accumulation_steps",
          "8 on 2 ranks", false);
}

TEST(batches_that_contradict_each_other_are_refused)
{
    wrong("{" TOTAL "64, " MICRO "4, " STEPS "3}", 0, "train_batch_size 64 is not");
    wrong("{" TOTAL "64, " MICRO "4, " STEPS "8}", 3, "with 4, 8 and 3");
    wrong("{" TOTAL "64, " MICRO "3}", 0, "train_batch_size 64 is not");
    wrong("{" TOTAL "64}", 5, "train_batch_size 64 is not");
    wrong("{" TOTAL "64, " STEPS "8}", 0, "give --ranks N");
    wrong("{" TOTAL "64, " STEPS "8}", 3, "train_batch_size 64 is not");
    wrong("{" MICRO "4, " STEPS "8}", 0, "give --ranks N");
    wrong("{" MICRO "4e9, " STEPS "4e9}", 1000000, "sequences are more than 2147483647");
    wrong("{" STEPS "8}", 4, "needs train_batch_size");
    wrong("{" TOTAL "0}", 0, "expected a whole number from 1, found 0");
    wrong("{" TOTAL "1.5}", 0, "found 1.5");
    wrong("{" TOTAL "\"64\"}", 0, "found 64");
    wrong("{" TOTAL "1e300}", 0, "found 1e+300");
    wrong("{" TOTAL "true}", 0, "found true");
}

#define ADAM(params) "{\"optimizer\": {\"type\": \"AdamW\", \"params\": {" params "}}}"

TEST(the_optimizer_has_deepspeeds_defaults)
{
    gives(ADAM(""), 0,
          "{\"lr\": 0.001, \"beta1\": 0.9, \"beta2\": 0.999, \"eps\": 1e-8, "
          "\"weight-decay\": 0, \"clip\": 0, \"lr-decay\": \"none\", \"lr-min\": null, "
          "\"warmup\": 0}");
    gives(ADAM("\"torch_adam\": true"), 0, "{\"weight-decay\": 0.01}");
    gives(
        ADAM("\"lr\": 3e-5, \"betas\": [0.8, 0.99], \"eps\": 1e-6, \"weight_decay\": 3e-7"),
        0,
        "{\"lr\": 3e-5, \"beta1\": 0.8, \"beta2\": 0.99, \"eps\": 1e-6, "
        "\"weight-decay\": 3e-7, \"lr-decay\": \"none\"}");
    gives(ADAM("\"lr\": \"auto\", \"betas\": \"auto\", \"weight_decay\": \"auto\""), 0,
          "{\"lr\": null, \"beta1\": null, \"weight-decay\": null, \"lr-decay\": null, "
          "\"eps\": 1e-8}");
    gives("{\"gradient_clipping\": 0.5}", 0, "{\"clip\": 0.5, \"lr\": null}");
    gives("{\"gradient_clipping\": \"auto\"}", 0, "{\"clip\": null}");
    names("{}", "gradient_clipping", "clip is 0", false);
    names("{}", "optimizer", "no type is given", false);
    names("{\"optimizer\": {\"type\": \"Lamb\"}}", "optimizer.type", "AdamW alone", true);
    names("{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"adam_w_mode\": false, "
          "\"weight_decay\": 0.1}}}",
          "optimizer.params.adam_w_mode", "apart from the gradient", true);
    names(ADAM("\"amsgrad\": true"), "optimizer.params.amsgrad", "refused", true);
    names(ADAM("\"nesterov\": true"), "optimizer.params.nesterov", "does not know", true);
    wrong(ADAM("\"betas\": [0.9]"), 0, "a list of two numbers");
    wrong(ADAM("\"betas\": [0.9, \"x\"]"), 0, "a list of two numbers");
    wrong(ADAM("\"lr\": \"fast\""), 0, "expected a number, found fast");
}

#define SCHEDULED(type, params) \
    "{\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.5}}, " \
    "\"scheduler\": {\"type\": \"" type "\", \"params\": {" params "}}}"
#define LINEAR "\"warmup_type\": \"linear\""

TEST(schedulers_with_linear_warm_up_have_a_counterpart)
{
    gives(SCHEDULED("WarmupLR", LINEAR), 0,
          "{\"lr\": 0.5, \"lr-decay\": \"none\", \"warmup\": 1000, \"steps\": null}");
    gives(SCHEDULED("WarmupLR", LINEAR ", \"warmup_max_lr\": 2, \"warmup_num_steps\": 7"),
          0, "{\"lr\": 2, \"lr-decay\": \"none\", \"lr-min\": null, \"warmup\": 7}");
    gives(SCHEDULED("WarmupDecayLR", LINEAR ", \"total_num_steps\": 300, "
                                            "\"warmup_num_steps\": 30"),
          0,
          "{\"lr\": 0.001, \"lr-decay\": \"linear\", \"lr-min\": 0, \"warmup\": 30, "
          "\"steps\": 300}");
    gives(SCHEDULED("WarmupDecayLR",
                    "\"total_num_steps\": \"auto\", \"warmup_min_lr\": \"auto\", "
                    "\"warmup_max_lr\": \"auto\", \"warmup_num_steps\": \"auto\""),
          0,
          "{\"lr\": 0.5, \"lr-decay\": \"linear\", \"lr-min\": 0, \"warmup\": null, "
          "\"steps\": null}");
    gives(SCHEDULED("WarmupCosineLR", LINEAR ", \"total_num_steps\": 300"), 0,
          "{\"lr\": 0.5, \"lr-min\": 0.00005, \"lr-decay\": null, \"warmup\": 1000, "
          "\"steps\": 300}");
    gives(SCHEDULED("WarmupCosineLR", LINEAR ", \"cos_min_ratio\": 0.1"), 0,
          "{\"lr-min\": 0.05}");
    gives(SCHEDULED("WarmupLR",
                    "\"warmup_num_steps\": \"auto\", \"warmup_max_lr\": \"auto\""),
          0, "{\"lr\": 0.5, \"lr-decay\": \"none\", \"warmup\": null}");
    names(SCHEDULED("WarmupLR", LINEAR), "scheduler", "two steps ahead", false);
    names(SCHEDULED("WarmupLR", ""), "scheduler.params.warmup_type", "logarithmic", true);
    names(SCHEDULED("WarmupLR", LINEAR ", \"warmup_min_lr\": 1e-5"),
          "scheduler.params.warmup_min_lr", "begins near 0", true);
    names(SCHEDULED("WarmupDecayLR", ""), "scheduler.params.warmup_type", "logarithmic",
          true);
    names(SCHEDULED("OneCycle", ""), "scheduler.type", "alone", true);
    wrong(SCHEDULED("WarmupCosineLR", LINEAR ", \"cos_min_ratio\": 2"), 0, "from 0 to 1");
}

TEST(types_are_those_that_are_enabled)
{
    gives("{\"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": false}}", 0,
          "{\"dtype\": \"bf16\"}");
    gives("{\"bfloat16\": {\"enabled\": true}}", 0, "{\"dtype\": \"bf16\"}");
    gives("{\"fp16\": {\"enabled\": true, \"loss_scale\": 0, \"loss_scale_window\": 1000, "
          "\"initial_scale_power\": 16, \"hysteresis\": 2, \"min_loss_scale\": 1}}",
          0, "{\"dtype\": \"fp16\"}");
    gives("{\"fp16\": {\"enabled\": false, \"loss_scale\": 128}}", 0, "{\"dtype\": null}");
    gives("{\"bf16\": {\"enabled\": \"auto\"}}", 0, "{\"dtype\": null}");
    names("{\"bf16\": {\"enabled\": \"auto\"}}", "bf16", "give --dtype", false);
    names("{\"fp16\": {\"enabled\": true, \"initial_scale_power\": 12}}",
          "fp16.initial_scale_power", "refused", true);
    names("{\"amp\": {\"enabled\": true}}", "amp", "Apex", true);
    names("{\"amp\": {\"enabled\": false}, \"data_types\": {\"grad_accum_dtype\": "
          "\"bf16\"}}",
          "data_types.grad_accum_dtype", "only rounding differs", false);
    wrong("{\"bf16\": {\"enabled\": true}, \"fp16\": {\"enabled\": true}}", 0, "keep one");
    wrong("{\"bf16\": true}", 0, "expected an object, found true");
    wrong("{\"bf16\": {\"enabled\": 1}}", 0, "expected true or false, found 1");
}

#define SHARDED(members) "{\"zero_optimization\": {" members "}}"

TEST(stages_buckets_and_thresholds)
{
    gives(SHARDED("\"stage\": 2, \"reduce_bucket_size\": 5e5, \"overlap_comm\": false"), 0,
          "{\"stage\": 2, \"bucket\": 500000, \"overlap\": \"off\", \"prefetch\": null}");
    gives(SHARDED("\"stage\": 3, \"stage3_prefetch_bucket_size\": 5e7, "
                  "\"stage3_param_persistence_threshold\": 1e5"),
          0, "{\"stage\": 3, \"prefetch\": 1, \"persist\": 100000, \"bucket\": null}");
    gives(SHARDED("\"stage\": 3, \"stage3_prefetch_bucket_size\": 0"), 0,
          "{\"prefetch\": 0}");
    names(SHARDED("\"stage\": 1, \"reduce_bucket_size\": 5e8"),
          "zero_optimization.reduce_bucket_size", "64 to 268435456", false);
    names(SHARDED("\"stage\": 2, \"stage3_prefetch_bucket_size\": 5"),
          "zero_optimization.stage3_prefetch_bucket_size", "below stage 3", false);
    names(SHARDED("\"zero_quantized_weights\": true"),
          "zero_optimization.zero_quantized_weights", "not quantized", true);
    gives(SHARDED("\"zero_quantized_weights\": false"), 0, "{\"stage\": null}");
    wrong(SHARDED("\"stage\": 4"), 0, "a stage from 0 to 3, found 4");
    wrong("{\"zero_optimization\": true}", 0, "expected an object, found true");
}

TEST(smaller_shard_groups_and_secondary_shards_have_a_counterpart)
{
    gives(SHARDED("\"stage\": 3, \"mics_shard_size\": 8"), 0,
          "{\"shard-ranks\": 8, \"node-parameters\": null}");
    gives(SHARDED("\"stage\": 3, \"mics_shard_size\": -1, \"zero_hpz_partition_size\": 1"),
          0, "{\"shard-ranks\": null, \"node-parameters\": null}");
    gives(SHARDED("\"stage\": 3, \"zero_hpz_partition_size\": 8"), 0,
          "{\"shard-ranks\": null, \"node-parameters\": true}");
    names(SHARDED("\"stage\": 3, \"zero_hpz_partition_size\": 8"),
          "zero_optimization.zero_hpz_partition_size", "once per node", false);
    names(SHARDED("\"stage\": 3, \"mics_shard_size\": 6"),
          "zero_optimization.mics_shard_size", "a power of two of ranks", false);
    gives(SHARDED("\"stage\": 2, \"mics_shard_size\": 8, \"zero_hpz_partition_size\": 8"),
          0, "{\"shard-ranks\": null, \"node-parameters\": null}");
    names(SHARDED("\"stage\": 2, \"mics_shard_size\": 8"),
          "zero_optimization.mics_shard_size", "below stage 3", false);
    wrong(SHARDED("\"stage\": 3, \"zero_hpz_partition_size\": 0"), 0,
          "expected a whole number from 1, found 0");
}

#define ACTIVATIONS(members) "{\"activation_checkpointing\": {" members "}}"

TEST(activations_are_recomputed_where_a_file_says_how)
{
    gives(ACTIVATIONS("\"partition_activations\": true"), 0, "{\"recompute\": true}");
    names(ACTIVATIONS("\"partition_activations\": true"),
          "activation_checkpointing.partition_activations", "--partition-activations",
          false);
    gives(ACTIVATIONS("\"number_checkpoints\": 4"), 0, "{\"recompute\": true}");
    gives(ACTIVATIONS("\"partition_activations\": false, \"number_checkpoints\": null"), 0,
          "{\"recompute\": null}");
    gives("{\"steps_per_print\": 10}", 0, "{\"log-every\": 10, \"recompute\": null}");
}

#define OPTIMIZER_IN(place)  "\"offload_optimizer\": {" place "}"
#define PARAMETERS_IN(place) "\"offload_param\": {" place "}"
#define NVME(path)           "\"device\": \"nvme\", \"nvme_path\": \"" path "\", \"pin_memory\": true"
#define CPU                  "\"device\": \"cpu\""
#define NOWHERE              "{\"offload\": null, \"offload-parameters\": null}"

TEST(states_go_to_the_directory_of_a_file)
{
    gives(SHARDED("\"stage\": 2, " OPTIMIZER_IN(NVME("/d"))), 0,
          "{\"offload\": \"/d\", \"offload-parameters\": null}");
    gives(SHARDED("\"stage\": 3, " OPTIMIZER_IN(NVME("/d")) ", " PARAMETERS_IN(NVME("/d"))),
          0, "{\"offload\": \"/d\", \"offload-parameters\": true}");
    gives(SHARDED("\"stage\": 3, " PARAMETERS_IN(NVME("/d"))), 0,
          "{\"offload\": \"/d\", \"offload-parameters\": true}");
    names(SHARDED("\"stage\": 3, " PARAMETERS_IN(NVME("/d")) ", " OPTIMIZER_IN(CPU)),
          "zero_optimization.offload_param: ", "optimizer states lie in", false);
    names(SHARDED("\"stage\": 3, " OPTIMIZER_IN(NVME("/d")) ", " PARAMETERS_IN(NVME("/e"))),
          "zero_optimization.offload_param: ", "one file", false);
    gives(SHARDED("\"stage\": 2, " OPTIMIZER_IN(NVME("host"))), 0,
          "{\"offload\": \"./host\"}"); /* host alone would be the host's memory */
    gives(SHARDED("\"stage\": 2, " PARAMETERS_IN(NVME("/d"))), 0, NOWHERE);
    names(SHARDED("\"stage\": 2, " PARAMETERS_IN(NVME("/d"))),
          "zero_optimization.offload_param: ", "below stage 3", false);
    /* The memory of a host that computes is no other place. */
    gives(SHARDED("\"stage\": 3, " OPTIMIZER_IN(CPU) ", " PARAMETERS_IN(CPU)), 0, NOWHERE);
    gives(SHARDED("\"stage\": 3, \"cpu_offload\": true, \"cpu_offload_params\": true"), 0,
          NOWHERE);
    names(SHARDED("\"stage\": 1, " OPTIMIZER_IN(CPU)),
          "zero_optimization.offload_optimizer", "--offload host", false);
    names(SHARDED("\"stage\": 1, \"cpu_offload\": true"),
          "zero_optimization.offload_optimizer", "--offload host", false);
    names(SHARDED("\"stage\": 3, " PARAMETERS_IN(CPU)),
          "zero_optimization.offload_param: ", "--offload-parameters", false);
    gives(SHARDED("\"stage\": 3, " OPTIMIZER_IN("\"device\": \"none\"")), 0, NOWHERE);
    gives("{\"aio\": {\"block_size\": 262144}}", 0, NOWHERE);
    wrong(SHARDED("\"stage\": 2, " OPTIMIZER_IN("\"device\": \"nvme\"")), 0,
          "expected the directory in \"zero_optimization.offload_optimizer.nvme_path\"");
    wrong(SHARDED("\"stage\": 2, " OPTIMIZER_IN("\"device\": \"disk\"")), 0,
          "expected none, cpu or nvme, found disk");
    wrong(SHARDED(OPTIMIZER_IN("\"device\": 3")), 0, "expected a text in quotes, found 3");
    wrong(SHARDED("\"offload_optimizer\": true"), 0, "expected an object, found true");
}

TEST(activations_go_there_with_the_states)
{
    const char *with = "{\"zero_optimization\": {\"stage\": 1, " OPTIMIZER_IN(
        NVME("/d")) "}, \"activation_checkpointing\": {\"cpu_checkpointing\": true}}";
    gives(with, 0, "{\"recompute\": true, \"offload-activations\": true}");
    gives(ACTIVATIONS("\"cpu_checkpointing\": true"), 0,
          "{\"recompute\": true, \"offload-activations\": null}");
    names(ACTIVATIONS("\"cpu_checkpointing\": true"),
          "activation_checkpointing.cpu_checkpointing", "not taken", false);
}

#define SHARES(more) "{\"tensor_parallel\": {\"autotp_size\": 2}, " more "}"

TEST(batches_are_those_of_the_ranks_that_shard)
{
    gives(SHARES(MICRO "4, " STEPS "8"), 6,
          "{\"tp\": 2, \"global-batch\": 96, \"micro-batch\": 4}");
    gives(SHARES(TOTAL "64, " MICRO "4, " STEPS "8"), 4,
          "{\"tp\": 2, \"global-batch\": 64}");
    gives(SHARES("\"activation_checkpointing\": {\"partition_activations\": true}"), 0,
          "{\"tp\": 2, \"partition-activations\": true}");
    gives("{\"tensor_parallel\": {\"autotp_size\": 1}}", 3, "{\"tp\": null}");
    wrong(SHARES(TOTAL "64"), 3, "2 does not divide --ranks 3");
    wrong(SHARES(TOTAL "64, " MICRO "4, " STEPS "8"), 2, "x ranks / autotp_size, with");
}

/* A file with what Hjson allows, and the same as JSON: lines and columns are those of the file. */
TEST(comments_and_last_commas_are_blanks)
{
    static const struct {
        const char *hjson, *json;
    } files[] = {
        {"{ // a\n\"b\": 1, # c\n}", "{     \n\"b\": 1     \n}"},
        {"# a\n{\"b\": [1, 2,], /* c,\n } */ }", "   \n{\"b\": [1, 2 ]       \n      }"},
        {"{\"#\": \"//, }\", \"/*\": \"\\\"#,]\"}//",
         "{\"#\": \"//, }\", \"/*\": \"\\\"#,]\"}  "},
        {"{\"a\": 1,/**/ /* */ // \n }", "{\"a\": 1               \n }"},
        {"{\"a\": 1,, }", "{\"a\": 1,  }"},
        {"{\"a\": 1 / 2}", "{\"a\": 1 / 2}"},
        {"{} /* no end\n, }", "{}          \n   "},
        {"{\"no end, }#", "{\"no end, }#"},
        {"{\"a\\", "{\"a\\"},
        {"/", "/"},
        {"#", " "},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        unsigned char text[64];
        size_t len = strlen(files[i].hjson);
        memcpy(text, files[i].hjson, len + 1);
        zero_hjson_blank(text, len);
        assert_string_equal((char *)text, files[i].json);
    }
}

TEST(keys_that_nobody_knows_are_refused)
{
    names("{\"train_batchsize\": 4}", "train_batchsize", "does not know", true);
    names("{\"optimizer.type\": \"AdamW\"}", "optimizer.type", "does not know", true);
    names(SHARDED("\"a.b\": 1"), "zero_optimization.a.b", "does not know", true);
    names("{\"wandb\": {\"enabled\": true, \"any\": 1}}", "wandb", "--metrics", false);
    zero_deepspeed d =
        translated("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,"
                   "\"h\":1,\"i\":1,\"j\":1}",
                   0);
    assert_fails(zero_deepspeed_check("ds.json", &d), ZERO_ERR_INVALID,
                 "10 keys have no counterpart");
    assert_told("g, h, ...; take them out");
    zero_deepspeed_destroy(&d);
}
