#include "cli/deepspeed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "cli/deepspeed_batch.h"
#include "cli/deepspeed_input.h"
#include "cli/deepspeed_keys.h"
#include "cli/deepspeed_training.h"
#include "train/config.h"

typedef zero_deepspeed_input input;

/* ---- every key of the file ---- */

/* True if the value says "off": false, null, 0, "none", an object that is empty or not enabled. */
static bool is_off(const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_object(value))
        return json_object_size(value) == 0 ||
               json_is_false(json_object_get(value, "enabled"));
    if (json_is_number(value)) return json_number_value(value) == 0.0;
    return json_is_false(value) || json_is_null(value) ||
           (text && strcmp(text, "none") == 0);
}

static bool is_fixed_at(const json_t *value, const char *fixed)
{
    if (strcmp(fixed, "false") == 0) return is_off(value);
    if (json_is_number(value)) return json_number_value(value) == strtod(fixed, NULL);
    return json_is_null(value) || (json_is_true(value) && strcmp(fixed, "true") == 0);
}

static zero_status visit(const input *in, const json_t *object, const char *prefix);

static zero_status enter(const input *in, const json_t *value, const char *path,
                         const zero_deepspeed_key *key)
{
    if (json_is_null(value)) return ZERO_OK;
    if (!json_is_object(value)) return zero_deepspeed_type_error(in, path, "an object");
    bool is_switched_off = key->kind == ZERO_DEEPSPEED_SWITCH &&
                           !json_is_true(json_object_get(value, "enabled"));
    if (!is_switched_off) return visit(in, value, path);
    const char *enabled = json_string_value(json_object_get(value, "enabled"));
    if (!enabled || strcmp(enabled, "auto") != 0) return ZERO_OK;
    return zero_deepspeed_note(in, path, "enabled is \"auto\": not taken; give --dtype");
}

static zero_status judge(const input *in, const json_t *value, const char *path,
                         const zero_deepspeed_key *key)
{
    if (!key)
        return zero_deepspeed_refuse(in, path, "zero does not know this key of DeepSpeed");
    if (zero_deepspeed_is_auto(in, path))
        return zero_deepspeed_note(in, path,
                                   "\"auto\" is for Hugging Face's Trainer; not taken: "
                                   "zero's own default stays");
    switch (key->kind) {
    case ZERO_DEEPSPEED_SECTION:
    case ZERO_DEEPSPEED_SWITCH: return enter(in, value, path, key);
    case ZERO_DEEPSPEED_NAMED:
        return zero_deepspeed_note(in, path, "not taken: %s", key->reason);
    case ZERO_DEEPSPEED_FIXED:
        if (is_fixed_at(value, key->value)) return ZERO_OK;
        return zero_deepspeed_refuse(in, path, key->reason);
    case ZERO_DEEPSPEED_TAKEN: break;
    }
    return ZERO_OK;
}

static zero_status visit(const input *in, const json_t *object, const char *prefix)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        char path[256];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", name);
        bool is_path =
            strchr(name, '.') != NULL; /* it only looks like a key of a section */
        ZERO_TRY(judge(in, value, path, is_path ? NULL : zero_deepspeed_find(path)));
    }
    return ZERO_OK;
}

/* ---- precision ---- */

static zero_status take_type(const input *in)
{
    bool bf16 = false, old_bf16 = false, fp16 = false;
    ZERO_TRY(zero_deepspeed_flag(in, "bf16.enabled", &bf16));
    ZERO_TRY(zero_deepspeed_flag(in, "bfloat16.enabled", &old_bf16));
    ZERO_TRY(zero_deepspeed_flag(in, "fp16.enabled", &fp16));
    bf16 = bf16 || old_bf16;
    if (bf16 && fp16)
        return zero_fail(ZERO_ERR_INVALID, "%s: bf16 and fp16 are both enabled; keep one",
                         in->path);
    if (!bf16 && !fp16) return ZERO_OK;
    return zero_deepspeed_put(in, "dtype", json_string(bf16 ? "bf16" : "fp16"));
}

/* ---- ZeRO ---- */

#define ZERO_KEY(name) "zero_optimization." name

static zero_status take_bucket(const input *in)
{
    const char *key = ZERO_KEY("reduce_bucket_size");
    const int64_t least = 64, most = ZERO_PLAN_MOST_BUCKET;
    int64_t bucket = 0;
    ZERO_TRY(zero_deepspeed_whole(in, key, 0, &bucket));
    if (!zero_deepspeed_value(in, key)) return ZERO_OK;
    if (bucket >= least && bucket <= most)
        return zero_deepspeed_put(in, "bucket", json_integer(bucket));
    return zero_deepspeed_note(in, key,
                               "not taken: zero has buckets of %" PRId64 " to %" PRId64
                               " elements; it keeps its default, and results are the same",
                               least, most);
}

/* DeepSpeed counts elements that are fetched ahead, zero counts uses of groups. */
static zero_status take_prefetch(const input *in)
{
    const char *key = ZERO_KEY("stage3_prefetch_bucket_size");
    int64_t elements = -1;
    ZERO_TRY(zero_deepspeed_whole(in, key, 0, &elements));
    if (elements < 0) return ZERO_OK;
    ZERO_TRY(zero_deepspeed_put(in, "prefetch", json_integer(elements > 0)));
    if (elements == 0) return ZERO_OK;
    return zero_deepspeed_note(in, key,
                               "prefetch is 1: zero counts groups that are gathered ahead, "
                               "not elements");
}

static zero_status take_persist(const input *in)
{
    const char *key = ZERO_KEY("stage3_param_persistence_threshold");
    int64_t elements = -1;
    ZERO_TRY(zero_deepspeed_whole(in, key, 0, &elements));
    if (elements < 0) return ZERO_OK;
    ZERO_TRY(zero_deepspeed_put(in, "persist", json_integer(elements)));
    return zero_deepspeed_note(
        in, key,
        "persist is about whole groups, such as a block, not about single tensors");
}

/* ZeRO++'s secondary shards: each group of `size` ranks, such as those of a node, has a second copy
 * of all parameters; 1 means no second copy. */
static zero_status take_secondary(const input *in)
{
    const char *key = ZERO_KEY("zero_hpz_partition_size");
    int64_t size = 1;
    ZERO_TRY(zero_deepspeed_whole(in, key, 1, &size));
    if (size == 1) return ZERO_OK;
    ZERO_TRY(zero_deepspeed_put(in, "node-parameters", json_true()));
    return zero_deepspeed_note(
        in, key,
        "node-parameters is on: zero keeps them once per node, which "
        "needs several ranks there, whatever their number; results are "
        "the same");
}

/* MiCS: shards over groups of `size` ranks, which are replicas; -1 means all ranks. */
static zero_status take_replicas(const input *in)
{
    const char *key = ZERO_KEY("mics_shard_size");
    int64_t size = -1;
    ZERO_TRY(zero_deepspeed_whole(in, key, -1, &size));
    if (size <= 0) return ZERO_OK;
    if (zero_is_power_of_two(size))
        return zero_deepspeed_put(in, "shard-ranks", json_integer(size));
    return zero_deepspeed_note(
        in, key,
        "not taken: zero's replicas have a power of two of ranks; it "
        "shards over all, and results are the same");
}

static zero_status has_no_effect(const input *in, const char *key)
{
    if (!zero_deepspeed_value(in, key)) return ZERO_OK;
    return zero_deepspeed_note(in, key, "not taken: it has no effect below stage 3");
}

static zero_status take_zero(const input *in, int64_t stage)
{
    bool overlap = false;
    if (zero_deepspeed_value(in, ZERO_KEY("stage")))
        ZERO_TRY(zero_deepspeed_put(in, "stage", json_integer(stage)));
    ZERO_TRY(zero_deepspeed_flag(in, ZERO_KEY("overlap_comm"), &overlap));
    if (zero_deepspeed_value(in, ZERO_KEY("overlap_comm")))
        ZERO_TRY(zero_deepspeed_put(in, "overlap", json_string(overlap ? "on" : "off")));
    ZERO_TRY(take_bucket(in));
    if (stage < 3) {
        ZERO_TRY(has_no_effect(in, ZERO_KEY("zero_hpz_partition_size")));
        ZERO_TRY(has_no_effect(in, ZERO_KEY("mics_shard_size")));
        ZERO_TRY(has_no_effect(in, ZERO_KEY("stage3_prefetch_bucket_size")));
        return has_no_effect(in, ZERO_KEY("stage3_param_persistence_threshold"));
    }
    ZERO_TRY(take_secondary(in));
    ZERO_TRY(take_replicas(in));
    ZERO_TRY(take_prefetch(in));
    return take_persist(in);
}

/* ---- offload ---- */

/* Where DeepSpeed keeps a part of the states. */
typedef struct {
    bool in_host;
    const char *directory; /* NULL: not in a file */
} place;

/* A place by its section and the flag of older files. */
static zero_status find_place(const input *in, const char *section, const char *older,
                              place *p)
{
    char device_key[80], path_key[80];
    const char *device = "none";
    snprintf(device_key, sizeof device_key, "%s.device", section);
    snprintf(path_key, sizeof path_key, "%s.nvme_path", section);
    ZERO_TRY(zero_deepspeed_flag(in, older, &p->in_host));
    ZERO_TRY(zero_deepspeed_text(in, device_key, &device));
    if (strcmp(device, "none") == 0) return ZERO_OK;
    p->in_host = strcmp(device, "cpu") == 0;
    if (p->in_host) return ZERO_OK;
    if (strcmp(device, "nvme") != 0)
        return zero_deepspeed_type_error(in, device_key, "none, cpu or nvme");
    ZERO_TRY(zero_deepspeed_text(in, path_key, &p->directory));
    if (p->directory) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: \"%s\" is nvme: expected the directory in \"%s\", found none",
                     in->path, device_key, path_key);
}

static zero_status take_parameters(const input *in, const place *states, const place *p)
{
    const char *key = ZERO_KEY("offload_param");
    if (p->in_host)
        return zero_deepspeed_note(in, key,
                                   "not taken: --offload-parameters moves them to the file "
                                   "of --offload DIR; results are the same");
    if (!p->directory) return ZERO_OK;
    ZERO_TRY(zero_deepspeed_put(in, "offload-parameters", json_true()));
    if (!states->directory)
        return zero_deepspeed_note(in, key,
                                   "optimizer states lie in that directory, too: --offload "
                                   "DIR moves them first; results are the same");
    if (strcmp(states->directory, p->directory) == 0) return ZERO_OK;
    return zero_deepspeed_note(in, key,
                               "zero has one file, in the nvme_path of offload_optimizer");
}

/* Beside a device the host's memory is another tier. Without one it is where states lie anyway. */
static zero_status take_offload(const input *in, int64_t stage)
{
    const char *key = ZERO_KEY("offload_optimizer");
    place states = {false, NULL}, parameters = {false, NULL};
    ZERO_TRY(find_place(in, key, ZERO_KEY("cpu_offload"), &states));
    if (stage == 3) {
        ZERO_TRY(
            zero_deepspeed_flag(in, ZERO_KEY("cpu_offload_param"), &parameters.in_host));
        ZERO_TRY(find_place(in, ZERO_KEY("offload_param"), ZERO_KEY("cpu_offload_params"),
                            &parameters));
    } else {
        ZERO_TRY(has_no_effect(in, ZERO_KEY("offload_param")));
    }
    const char *directory = states.directory ? states.directory : parameters.directory;
    if (directory && strcmp(directory, "host") == 0) directory = "./host";
    if (directory) ZERO_TRY(zero_deepspeed_put(in, "offload", json_string(directory)));
    if (states.in_host && !directory)
        ZERO_TRY(zero_deepspeed_note(
            in, key,
            "not taken: where the host computes, optimizer states are in its memory; with "
            "--device give --offload host; results are the same"));
    return take_parameters(in, &states, &parameters);
}

/* ---- activations, output ---- */

/* DeepSpeed's section only says how a script's own checkpointing works. */
static zero_status take_activations(const input *in)
{
    static const char *const flags[] = {
        "activation_checkpointing.partition_activations",
        "activation_checkpointing.cpu_checkpointing",
        "activation_checkpointing.contiguous_memory_optimization"};
    int64_t number = 0;
    bool is_set[3] = {false, false, false};
    for (int i = 0; i < 3; i++) ZERO_TRY(zero_deepspeed_flag(in, flags[i], &is_set[i]));
    bool in_parts = is_set[0], in_host = is_set[1], on = in_parts || in_host || is_set[2];
    ZERO_TRY(zero_deepspeed_whole(in, "activation_checkpointing.number_checkpoints", 0,
                                  &number));
    if (!zero_deepspeed_value(in, "activation_checkpointing")) return ZERO_OK;
    if (!on && number == 0)
        return zero_deepspeed_note(in, "activation_checkpointing",
                                   "all of it is off, so recompute stays off; results are "
                                   "the same");
    ZERO_TRY(zero_deepspeed_put(in, "recompute", json_true()));
    ZERO_TRY(zero_deepspeed_note(in, "activation_checkpointing",
                                 "recompute is on: zero recomputes every block; results "
                                 "are the same"));
    if (in_parts && in->tp > 1)
        ZERO_TRY(zero_deepspeed_put(in, "partition-activations", json_true()));
    else if (in_parts)
        ZERO_TRY(zero_deepspeed_note(in, flags[0],
                                     "not taken: --partition-activations divides what "
                                     "recompute keeps among the ranks of --tp"));
    bool has_file = json_object_get(in->out->options, "offload") != NULL;
    if (in_host && has_file)
        ZERO_TRY(zero_deepspeed_put(in, "offload-activations", json_true()));
    if (!in_host) return ZERO_OK;
    return zero_deepspeed_note(in, flags[1],
                               "%s--offload-activations moves what recompute keeps to "
                               "the file of --offload DIR; results are the same",
                               has_file ? "" : "not taken: ");
}

static zero_status take_print(const input *in)
{
    int64_t steps = 0;
    ZERO_TRY(zero_deepspeed_whole(in, "steps_per_print", 1, &steps));
    return steps == 0 ? ZERO_OK : zero_deepspeed_put(in, "log-every", json_integer(steps));
}

/* DeepSpeed's batches are those of the ranks that are left when each `tp` share a product. */
static zero_status take_tp(input *in)
{
    const char *key = "tensor_parallel.autotp_size";
    ZERO_TRY(zero_deepspeed_whole(in, key, 0, &in->tp));
    if (in->tp <= 1) return ZERO_OK;
    if (in->n_ranks % in->tp != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "%s: \"%s\": %" PRId64 " does not divide --ranks %" PRId64,
                         in->path, key, in->tp, in->n_ranks);
    in->n_ranks /= in->tp;
    return zero_deepspeed_put(in, "tp", json_integer(in->tp));
}

static zero_status translate(input *in)
{
    int64_t stage = 0;
    ZERO_TRY(visit(in, in->file, ""));
    ZERO_TRY(take_tp(in));
    ZERO_TRY(zero_deepspeed_take_batches(in));
    ZERO_TRY(zero_deepspeed_take_training(in));
    ZERO_TRY(take_type(in));
    ZERO_TRY(zero_deepspeed_whole(in, ZERO_KEY("stage"), 0, &stage));
    if (stage > 3)
        return zero_deepspeed_type_error(in, ZERO_KEY("stage"), "a stage from 0 to 3");
    ZERO_TRY(take_zero(in, stage));
    ZERO_TRY(take_offload(in, stage));
    ZERO_TRY(take_activations(in));
    return take_print(in);
}

zero_status zero_deepspeed_translate(const char *path, const json_t *file, int64_t n_ranks,
                                     zero_deepspeed *out)
{
    zero_deepspeed made = {.options = json_object()};
    input in = {.path = path, .file = file, .n_ranks = n_ranks, .out = &made};
    zero_status st = made.options ? translate(&in)
                                  : zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
    if (st == ZERO_OK)
        *out = made;
    else
        zero_deepspeed_destroy(&made);
    return st;
}

zero_status zero_deepspeed_check(const char *path, const zero_deepspeed *d)
{
    bool one = d->n_refused == 1;
    if (d->n_refused == 0) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "%s: %d key%s no counterpart and may change results: %.*s; take %s out "
        "of the file if the run may differ",
        path, d->n_refused, one ? " has" : "s have", (int)d->refused.len,
        (const char *)d->refused.bytes, one ? "it" : "them");
}

void zero_deepspeed_destroy(zero_deepspeed *d)
{
    json_decref(d->options);
    zero_bytes_destroy(&d->notes);
    zero_bytes_destroy(&d->refused);
    *d = (zero_deepspeed){0};
}
