#include "cli/deepspeed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "cli/deepspeed_input.h"
#include "sharding/plan_input.h"

typedef zero_deepspeed_input input;

/* ---- every key of the file ---- */

static bool is_fixed_at(const json_t *value, const char *fixed)
{
    if (strcmp(fixed, "false") == 0) {
        /* True if the value says "off": false, null, 0, "none", an object that is empty or
         * not enabled. */
        const char *text = json_string_value(value);
        if (json_is_object(value))
            return json_object_size(value) == 0 ||
                   json_is_false(json_object_get(value, "enabled"));
        if (json_is_number(value)) return json_number_value(value) == 0.0;
        return json_is_false(value) || json_is_null(value) ||
               (text && strcmp(text, "none") == 0);
    }
    if (json_is_number(value)) return json_number_value(value) == strtod(fixed, NULL);
    return json_is_null(value) || (json_is_true(value) && strcmp(fixed, "true") == 0);
}

static void visit(input *in, const json_t *object, const char *prefix);

static void visit(input *in, const json_t *object, const char *prefix)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const zero_deepspeed_key *key = zero_deepspeed_keys;
        char path[256];
        snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", name);
        while (key->path && strcmp(key->path, path) != 0) key++;
        /* A name with a dot only looks like a key of a section. */
        if (!key->path || strchr(name, '.'))
            zero_deepspeed_refuse(in, path, "zero does not know this key of DeepSpeed");
        else if (zero_deepspeed_is_auto(in, path))
            zero_deepspeed_note(in, path,
                                "\"auto\" is for Hugging Face's Trainer; not taken: zero's "
                                "own default stays");
        else if (key->rule[0] == 's') {
            /* A section, or a switch: without "enabled": true its members mean nothing. */
            bool is_switch = strcmp(key->rule, "switch") == 0;
            const json_t *enabled = json_object_get(value, "enabled");
            const char *text = json_string_value(enabled);
            if (!json_is_null(value)) {
                if (!json_is_object(value))
                    zero_deepspeed_expected(in, path, "an object");
                else if (!is_switch || json_is_true(enabled))
                    visit(in, value, path);
                else if (text && strcmp(text, "auto") == 0)
                    zero_deepspeed_note(in, path,
                                        "enabled is \"auto\": not taken; give --dtype");
            }
        } else if (strcmp(key->rule, "any") == 0)
            zero_deepspeed_note(in, path, "not taken: %s", key->reason);
        else if (strncmp(key->rule, "only ", 5) == 0 && !is_fixed_at(value, key->rule + 5))
            zero_deepspeed_refuse(in, path, key->reason);
    }
}

/* ---- precision ---- */

/* ---- ZeRO ---- */

#define ZERO_KEY(name) "zero_optimization." name

static void has_no_effect(input *in, const char *key)
{
    if (zero_deepspeed_value(in, key))
        zero_deepspeed_note(in, key, "not taken: it has no effect below stage 3");
}

/* Keys of stage 3 alone. ZeRO++'s secondary shards: each group of that many ranks, such as
 * those of a node, has a second copy of all parameters; 1: no second copy. MiCS shards over
 * groups of that many ranks, which are replicas; -1: over all ranks. DeepSpeed counts
 * elements that are fetched ahead, zero counts uses of groups. */
static void take_stage_3(input *in, bool is_stage_3)
{
    static const char *const keys[] = {ZERO_KEY("zero_hpz_partition_size"),
                                       ZERO_KEY("mics_shard_size"),
                                       ZERO_KEY("stage3_prefetch_bucket_size"),
                                       ZERO_KEY("stage3_param_persistence_threshold")};
    for (int i = 0; !is_stage_3 && i < 4; i++) has_no_effect(in, keys[i]);
    if (!is_stage_3) return;
    if (zero_deepspeed_whole(in, keys[0], 1, 1) != 1) {
        zero_deepspeed_put(in, "node-parameters", json_true());
        zero_deepspeed_note(
            in, keys[0],
            "node-parameters is on: zero keeps them once per node, which needs several "
            "ranks there, whatever their number; results are the same");
    }
    const int64_t replica = zero_deepspeed_whole(in, keys[1], -1, -1);
    if (replica > 0 && zero_is_power_of_two(replica))
        zero_deepspeed_put(in, "shard-ranks", json_integer(replica));
    else if (replica > 0)
        zero_deepspeed_note(in, keys[1],
                            "not taken: zero's replicas have a power of two of ranks; it "
                            "shards over all, and results are the same");
    const int64_t ahead = zero_deepspeed_whole(in, keys[2], 0, -1);
    if (ahead >= 0) zero_deepspeed_put(in, "prefetch", json_integer(ahead > 0));
    if (ahead > 0)
        zero_deepspeed_note(
            in, keys[2],
            "prefetch is 1: zero counts groups that are gathered ahead, not elements");
    const int64_t whole = zero_deepspeed_whole(in, keys[3], 0, -1);
    if (whole < 0) return;
    zero_deepspeed_put(in, "persist", json_integer(whole));
    zero_deepspeed_note(
        in, keys[3],
        "persist is about whole groups, such as a block, not about single tensors");
}

/* ---- offload ---- */

/* Where DeepSpeed keeps a part of the states. */
typedef struct {
    bool in_host;
    const char *directory; /* NULL: not in a file */
} place;

/* A place by its section and the flag of older files. */
static place find_place(input *in, const char *section, const char *older, bool in_host)
{
    place p = {zero_deepspeed_flag(in, older, in_host), NULL};
    char device_key[80], path_key[80];
    snprintf(device_key, sizeof device_key, "%s.device", section);
    snprintf(path_key, sizeof path_key, "%s.nvme_path", section);
    const char *device = zero_deepspeed_text(in, device_key, "none");
    if (strcmp(device, "none") == 0) return p;
    p.in_host = strcmp(device, "cpu") == 0;
    if (p.in_host) return p;
    if (strcmp(device, "nvme") != 0)
        zero_deepspeed_expected(in, device_key, "none, cpu or nvme");
    p.directory = zero_deepspeed_text(in, path_key, NULL);
    if (!p.directory)
        zero_deepspeed_wrong(in,
                             "\"%s\" is nvme: expected the directory in \"%s\", found none",
                             device_key, path_key);
    return p;
}

/* Beside a device the host's memory is another tier. Without one it is where states lie
 * anyway. */
static void take_offload(input *in, bool is_stage_3)
{
    const char *key = ZERO_KEY("offload_optimizer"), *other = ZERO_KEY("offload_param");
    const place states = find_place(in, key, ZERO_KEY("cpu_offload"), false);
    place parameters = {false, NULL};
    if (is_stage_3)
        parameters =
            find_place(in, other, ZERO_KEY("cpu_offload_params"),
                       zero_deepspeed_flag(in, ZERO_KEY("cpu_offload_param"), false));
    else
        has_no_effect(in, other);
    const char *directory = states.directory ? states.directory : parameters.directory;
    if (directory && strcmp(directory, "host") == 0) directory = "./host";
    if (directory) zero_deepspeed_put(in, "offload", json_string(directory));
    if (states.in_host && !directory)
        zero_deepspeed_note(
            in, key,
            "not taken: where the host computes, optimizer states are in its memory; with "
            "--device give --offload host; results are the same");
    if (parameters.in_host)
        zero_deepspeed_note(in, other,
                            "not taken: --offload-parameters moves them to the file of "
                            "--offload DIR; results are the same");
    if (parameters.in_host || !parameters.directory) return;
    zero_deepspeed_put(in, "offload-parameters", json_true());
    if (!states.directory)
        zero_deepspeed_note(in, other,
                            "optimizer states lie in that directory, too: --offload DIR "
                            "moves them first; results are the same");
    else if (strcmp(states.directory, parameters.directory) != 0)
        zero_deepspeed_note(in, other,
                            "zero has one file, in the nvme_path of offload_optimizer");
}

/* ---- activations ---- */

#define ACTIVATIONS "activation_checkpointing"

/* DeepSpeed's section only says how a script's own checkpointing works. */
static void take_activations(input *in)
{
    const char *parts = ACTIVATIONS ".partition_activations",
               *host = ACTIVATIONS ".cpu_checkpointing";
    const bool in_parts = zero_deepspeed_flag(in, parts, false),
               in_host = zero_deepspeed_flag(in, host, false),
               has_file = json_object_get(in->out.options, "offload") != NULL;
    bool on = zero_deepspeed_flag(in, ACTIVATIONS ".contiguous_memory_optimization", false);
    on = zero_deepspeed_whole(in, ACTIVATIONS ".number_checkpoints", 0, 0) > 0 || on;
    if (!zero_deepspeed_value(in, ACTIVATIONS)) return;
    if (!on && !in_parts && !in_host) {
        zero_deepspeed_note(
            in, ACTIVATIONS,
            "all of it is off, so recompute stays off; results are the same");
        return;
    }
    zero_deepspeed_put(in, "recompute", json_true());
    zero_deepspeed_note(
        in, ACTIVATIONS,
        "recompute is on: zero recomputes every block; results are the same");
    if (in_parts && in->tp > 1)
        zero_deepspeed_put(in, "partition-activations", json_true());
    else if (in_parts)
        zero_deepspeed_note(in, parts,
                            "not taken: --partition-activations divides what recompute "
                            "keeps among the ranks of --tp");
    if (in_host && has_file) zero_deepspeed_put(in, "offload-activations", json_true());
    if (in_host)
        zero_deepspeed_note(in, host,
                            "%s--offload-activations moves what recompute keeps to the "
                            "file of --offload DIR; results are the same",
                            has_file ? "" : "not taken: ");
}

/* DeepSpeed's batches are those of the ranks that are left when each `tp` share a
 * product. */
static void take_tp(input *in)
{
    const char *key = "tensor_parallel.autotp_size";
    in->tp = zero_deepspeed_whole(in, key, 0, 0);
    if (in->tp <= 1) return;
    if (in->n_ranks % in->tp != 0)
        zero_deepspeed_wrong(in, "\"%s\": %" PRId64 " does not divide --ranks %" PRId64,
                             key, in->tp, in->n_ranks);
    in->n_ranks /= in->tp;
    zero_deepspeed_put(in, "tp", json_integer(in->tp));
}

zero_status zero_deepspeed_translate(const char *path, const json_t *file, int64_t n_ranks,
                                     zero_deepspeed *out)
{
    input in = {
        .path = path, .file = file, .n_ranks = n_ranks, .out = {.options = json_object()}};
    if (!in.out.options) return zero_fail(ZERO_ERR_NOMEM, "no memory for the options");
    const char *overlap = ZERO_KEY("overlap_comm");
    visit(&in, in.file, "");
    take_tp(&in);
    zero_deepspeed_take_training(&in);
    bool bf16 = zero_deepspeed_flag(&in, "bf16.enabled", false);
    bf16 = zero_deepspeed_flag(&in, "bfloat16.enabled", false) || bf16;
    const bool fp16 = zero_deepspeed_flag(&in, "fp16.enabled", false);
    if (bf16 && fp16) zero_deepspeed_wrong(&in, "bf16 and fp16 are both enabled; keep one");
    if (bf16 || fp16) zero_deepspeed_put(&in, "dtype", json_string(bf16 ? "bf16" : "fp16"));
    const int64_t stage = zero_deepspeed_whole(&in, ZERO_KEY("stage"), 0, 0);
    if (stage > 3) zero_deepspeed_expected(&in, ZERO_KEY("stage"), "a stage from 0 to 3");
    if (zero_deepspeed_value(&in, ZERO_KEY("stage")))
        zero_deepspeed_put(&in, "stage", json_integer(stage));
    const bool overlaps = zero_deepspeed_flag(&in, overlap, false);
    if (zero_deepspeed_value(&in, overlap))
        zero_deepspeed_put(&in, "overlap", json_string(overlaps ? "on" : "off"));
    const char *key = ZERO_KEY("reduce_bucket_size");
    const int64_t least = 64, most = ZERO_PLAN_MOST_BUCKET;
    const int64_t bucket = zero_deepspeed_whole(&in, key, 0, -1);
    if (bucket >= least && bucket <= most)
        zero_deepspeed_put(&in, "bucket", json_integer(bucket));
    else if (bucket >= 0)
        zero_deepspeed_note(&in, key,
                            "not taken: zero has buckets of %" PRId64 " to %" PRId64
                            " elements; it keeps its default, and results are the same",
                            least, most);
    take_stage_3(&in, stage == 3);
    take_offload(&in, stage == 3);
    take_activations(&in);
    const int64_t steps = zero_deepspeed_whole(&in, "steps_per_print", 1, 0);
    if (steps > 0) zero_deepspeed_put(&in, "log-every", json_integer(steps));
    if (in.status == ZERO_OK)
        *out = in.out;
    else
        zero_deepspeed_destroy(&in.out);
    return in.status;
}

zero_status zero_deepspeed_check(const char *path, const zero_deepspeed *d)
{
    const bool one = d->n_refused == 1;
    if (d->n_refused == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: %d key%s no counterpart and may change results: %.*s; take %s "
                     "out of the file if the run may differ",
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
