#include "cli/run_options.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/type.h"
#include "cli/machine.h"
#include "lists/algorithm.h"
#include "math/backends.h"
#include "math/device.h"
#include "nn/share.h"
#include "sharding/offload.h"
#include "sharding/stages.h"
#include "train/learning_rate.h"
#include "train/metrics.h"

#define TEXT   .kind = ZERO_OPTION_TEXT
#define CHOICE .kind = ZERO_OPTION_CHOICE
#define FLAG   .kind = ZERO_OPTION_FLAG, .standard = "off"
#define WHOLE(least, most) \
    .kind = ZERO_OPTION_WHOLE, .min = (least), .max = (most), .argument = "N"
#define REAL(least, most) \
    .kind = ZERO_OPTION_REAL, .low = (least), .high = (most), .argument = "X"
#define FIELD(name)   ZERO_OPTION_FIELD(zero_config, name)
#define IN_PLAN(name) ZERO_OPTION_FIELD(zero_config, plan.name)
#define NO_FIELD      .offset = ZERO_OPTION_NOWHERE
#define PRESET        .absent = "the preset's"

/* The bits of a row (option.h). NUMBERS, RUN and SOURCE decide a run's numbers, PLAN only
 * where they are computed. */
#define RUN     .is = ZERO_OPTION_IDENTITY | ZERO_OPTION_RESUMED
#define PLAN    .is = ZERO_OPTION_IDENTITY | ZERO_OPTION_PLANNED
#define NUMBERS .is = ZERO_OPTION_IDENTITY | ZERO_OPTION_PLANNED | ZERO_OPTION_RESUMED
#define SOURCE \
    .is = ZERO_OPTION_IDENTITY | ZERO_OPTION_PLANNED | ZERO_OPTION_PER_RANK | \
          ZERO_OPTION_RESUMED
#define PLANNED  .is = ZERO_OPTION_IDENTITY | ZERO_OPTION_PLANNED | ZERO_OPTION_PER_RANK
#define CHECK    .is = ZERO_OPTION_PLANNED
#define PER_RANK .is = ZERO_OPTION_PER_RANK

/* Sanity limits; whether a value fits the machine is checked later. */
#define MANY  INT64_C(1000000000000)
#define INT31 INT64_C(2147483647) /* tokens and ranks' counts are int32_t */

/* ---- where options have no effect ---- */

#define CONFIG(run) (((const zero_run_facts *)(run))->config)

static bool has_whole_parameters(const void *run)
{
    return zero_stage_at((int)CONFIG(run)->plan.stage)->parameters == ZERO_HOLD_WHOLE;
}

static bool has_whole_states(const void *run)
{
    return zero_stage_at((int)CONFIG(run)->plan.stage)->optimizer == ZERO_HOLD_WHOLE;
}

static bool is_alone(const void *run)
{
    return CONFIG(run)->plan.n_ranks * zero_tp_ranks(&CONFIG(run)->tp) == 1;
}

static bool holds_all_once(const void *run)
{
    return is_alone(run) && CONFIG(run)->plan.type == ZERO_FP32;
}

static bool has_one_shard(const void *run)
{
    return zero_config_shard_ranks(CONFIG(run)) == 1;
}

static bool has_one_replica(const void *run)
{
    return zero_config_shard_ranks(CONFIG(run)) == CONFIG(run)->plan.n_ranks;
}

static bool works_in_place(const void *run)
{
    return ((const zero_run_facts *)run)->collectives == ZERO_ALGORITHM_SHM;
}

static bool stages_nothing(const void *run)
{
    return works_in_place(run) && !zero_config_has_device(CONFIG(run));
}

static bool has_one_node(const void *run)
{
    const zero_run_facts *facts = run;
    return facts->n_hosts == 1 && facts->config->fake_nodes == 1;
}

/* Threads share the arithmetic of the host's own backend. */
static bool has_one_thread(const void *run)
{
    const zero_config *c = CONFIG(run);
    bool is_cpu = strcmp(c->backend, zero_backend_name_at(0)) == 0;
    return c->plan.threads > 1 && (!is_cpu || (zero_config_has_device(c) && !c->offload));
}

static bool ends_before_delay(const void *run)
{
    return CONFIG(run)->plan.delayed_from >= CONFIG(run)->steps;
}

/* --quiet with --sample 0 or --progress none says one thing twice. */
static bool hides_samples(const void *run)
{
    return CONFIG(run)->quiet && CONFIG(run)->sample > 0;
}

static bool hides_lines(const void *run)
{
    return CONFIG(run)->quiet && strcmp(CONFIG(run)->progress, "none") != 0;
}

/* clang-format off */
#define IDLE(...)           .idle = {__VA_ARGS__}
#define WITHOUT(name)       {.option = (name)}
#define WITH(name, setting) {.option = (name), .value = (setting)}
#define IF(condition, text) {.holds = (condition), .words = (text)}
#define ALONE      IF(is_alone, "has no effect on one rank")
#define BELOW_3    IF(has_whole_parameters, \
    "has no effect below stage 3: parameters are not sharded")
#define AT_STAGE_0 IF(has_whole_states, \
    "shards nothing at stage 0: it only changes which rank sums which gradients")

const zero_option zero_run_options[] = {
    {.group = "Model", .name = "model", TEXT, FIELD(model), NUMBERS, .argument = "NAME",
     .standard = "tiny",
     .help = "tiny, gpt2, gpt2-medium, gpt2-large, gpt2-xl, lesson, ...; zero plan "
         "--models lists all"},
    {.name = "layers", WHOLE(1, 10000), FIELD(shape.layers), NUMBERS, PRESET,
     .help = "transformer blocks"},
    {.name = "hidden", WHOLE(1, 131072), FIELD(shape.hidden), NUMBERS, PRESET,
     .help = "channels, a multiple of heads"},
    {.name = "heads", WHOLE(1, 65536), FIELD(shape.heads), NUMBERS, PRESET,
     .help = "attention heads"},
    {.name = "seq", WHOLE(1, 16777216), FIELD(shape.seq), NUMBERS, PRESET,
     .help = "positions: tokens in a sequence"},
    {.name = "vocab", WHOLE(1, 16777216), FIELD(shape.vocab), NUMBERS,
     .absent = "the tokenizer's", .help = "words in the vocabulary"},
    {.name = "dropout", REAL(0, 0.99), FIELD(dropout), RUN, .standard = "0",
     .help = "share of activations dropped in training"},
    {.name = "init-from", TEXT, FIELD(init_from), RUN, .argument = "FILE",
     .absent = "random weights",
     .help = "initial weights: model.safetensors of a GPT-2, or its folder, which also "
         "has the shape and the tokenizer; or one of the hub's cache"},
    {.name = "backend", CHOICE, FIELD(backend), RUN, .name_at = zero_backend_name_at,
     .standard = "cpu",
     .help = "what computes; naive: plain loops, slow, one digest on every CPU: the "
         "oracle of the tests"},
    {.name = "device", TEXT, FIELD(device), CHECK, .argument = "cpu|cuda[:LIST]",
     .standard = "cpu",
     .help = "where it computes; cuda:0,2: on these GPUs of each machine, else on all; "
         "ranks take them in turn and may share one. A plan needs none, and reads no list"},

    {.group = "Data", .name = "data", TEXT, FIELD(data), SOURCE, .argument = "SPEC",
     .standard = "stories",
     .help = "stories, stories:SIZE, self (zero's own sources), lesson (eight letters, "
         "for --model lesson), a file, a directory or a 'pattern'"},
    {.name = "val-data", TEXT, FIELD(val_data), IDLE(WITH("eval-every", "0")),
     .is = ZERO_OPTION_IDENTITY | ZERO_OPTION_PER_RANK | ZERO_OPTION_RESUMED,
     .argument = "SPEC", .absent = "--data's files named val, else its last tenth",
     .help = "data for validation: a file, a directory or a 'pattern' of the same kind"},
    {.name = "tokenizer", TEXT, FIELD(tokenizer), SOURCE, .argument = "NAME|PATH",
     .absent = "the imported model's; stories: bpe:512, else byte",
     .help = "how text becomes tokens: byte, char, bpe:N with N words, or a "
         "tokenizer.json, a vocab.json beside its merges.txt, or their folder"},
    {.name = "token-bytes", WHOLE(1, 8), FIELD(token_bytes), RUN,
     .absent = "what the files say; 2 for *.bin, as nanoGPT's",
     .help = "--data and --val-data are raw tokens of 1, 2, 4 or 8 bytes each, low byte "
         "first, whatever the files are called"},
    {.name = "shuffle", FLAG, FIELD(shuffle), RUN,
     .help = "draw the samples in random order"},
    {.name = "seed", WHOLE(0, INT64_MAX), FIELD(seed), RUN, .standard = "1337",
     .help = "of weights, dropout, data and sampling"},

    {.group = "Optimisation", .name = "steps", WHOLE(0, MANY), FIELD(steps), RUN, PRESET,
     .help = "optimizer steps; 0: none"},
    {.name = "global-batch", WHOLE(1, INT31), FIELD(global_batch), NUMBERS,
     .absent = "--micro-batch x ranks: weak scaling",
     .help = "sequences per step, over all ranks; with more ranks each has fewer (strong "
         "scaling)"},
    {.name = "micro-batch", WHOLE(1, INT31), IN_PLAN(micro_batch), NUMBERS,
     .absent = "--global-batch / ranks",
     .help = "sequences that a rank computes at a time; given alone, more ranks make a "
         "larger batch (weak scaling); with --reproducible the default is one for all "
         "numbers of ranks"},
    {.name = "lr", REAL(0, 100), FIELD(lr), RUN, PRESET,
     .help = "learning rate after the warm-up"},
    {.name = "lr-min", REAL(0, 100), FIELD(lr_min), IDLE(WITH("lr-decay", "none")), RUN,
     .absent = "a tenth of --lr", .help = "learning rate at the end of the decay"},
    {.name = "lr-decay", CHOICE, FIELD(lr_decay), RUN, .name_at = zero_decay_name_at,
     .standard = "cosine",
     .help = "from --lr to --lr-min after the warm-up, along half a cosine or a line; "
         "none: the rate stays"},
    {.name = "warmup", WHOLE(0, MANY), FIELD(warmup), RUN, .absent = "a fifth of --steps",
     .help = "steps of linear warm-up"},
    {.name = "beta1", REAL(0, 0.999999), FIELD(beta1), RUN, .standard = "0.9",
     .help = "Adam: decay of the momentum"},
    {.name = "beta2", REAL(0, 0.999999), FIELD(beta2), RUN, .standard = "0.95",
     .help = "Adam: decay of the variance"},
    {.name = "eps", REAL(1e-30, 1), FIELD(eps), RUN, .standard = "1e-8",
     .help = "Adam: added to the root of the variance"},
    {.name = "weight-decay", REAL(0, 100), FIELD(weight_decay), RUN, .standard = "0.1",
     .help = "AdamW: decay, times the learning rate"},
    {.name = "clip", REAL(0, 1e30), FIELD(clip), RUN, .standard = "1.0",
     .help = "largest norm of the gradient; 0: any"},
    {.name = "eval-every", WHOLE(0, MANY), FIELD(eval_every), RUN, PRESET,
     .help = "steps between evaluations; 0: none"},
    {.name = "eval-batches", WHOLE(1, INT31), FIELD(eval_batches), IDLE(WITH("eval-every",
     "0")), RUN, PRESET, .help = "global batches in an evaluation"},
    {.name = "eval-random", FLAG, FIELD(eval_random), IDLE(WITH("eval-every", "0")), RUN,
     .help = "evaluate on windows drawn from all validation data, always the same ones"},

    {.group = "Sharding and communication", .name = "stage", WHOLE(0, ZERO_STAGE_COUNT - 1),
     IN_PLAN(stage), PLAN, .standard = "0",
     .name_at = zero_stage_words, .help = "ZeRO: what ranks hold in shards"},
    {.name = "bucket", WHOLE(64, ZERO_PLAN_MOST_BUCKET), IN_PLAN(bucket), IDLE(ALONE,
     IF(stages_nothing, "has no effect with collectives shm, which add in place")), PLAN,
     .absent = "1048576, or the least that very many ranks need",
     .help = "elements of other ranks' gradients staged at a time; without --bucket, very "
         "many ranks get the least that they need"},
    {.name = "message", .kind = ZERO_OPTION_WHOLE, .min = ZERO_LEAST_MESSAGE,
     .max = INT64_C(1) << 30, .argument = "BYTES", IN_PLAN(message), IDLE(ALONE,
     IF(works_in_place, "has no effect with collectives shm, which send no messages")),
     PLAN, .absent = "512 KiB between nodes, sent as soon as possible",
     .help = "largest message of p2p and hier; ranks then also keep pace with each other. "
         "For networks of up to 1 Gbit/s: 60K, which TCP sends at once; equal bits"},
    {.name = "dtype", CHOICE, IN_PLAN(type), NUMBERS, .name_at = zero_type_name_at,
     .standard = "fp32", .help = "of parameters and gradients; fp16 scales the loss"},
    {.name = "activations", CHOICE, FIELD(activations), NUMBERS,
     .name_at = zero_type_name_at, .absent = "fp32; with --device what it likes",
     .help = "what units hand on and keep for backward: of fp32, or of --dtype's 16 bits "
         "in half the memory"},
    {.name = "partition", CHOICE, IN_PLAN(partition), IDLE(IF(has_one_shard,
     "has no effect: one rank has all that is sharded"), AT_STAGE_0), PLAN,
     .words = "slice|owner", .standard = "slice",
     .help = "every group in shards, or the model cut once (the paper)"},
    {.name = "prefetch", WHOLE(0, INT31), IN_PLAN(prefetch), IDLE(BELOW_3), PLAN,
     .standard = "1", .help = "stage 3: uses of parameters gathered ahead"},
    {.name = "persist", WHOLE(0, MANY), IN_PLAN(persist), IDLE(BELOW_3), PLAN,
     .standard = "0", .help = "stage 3: groups of up to N parameters stay whole"},
    {.name = "overlap", CHOICE, IN_PLAN(serial), PLAN, .words = "on|off", .standard = "on",
     .help = "communicate while computing"},
    {.name = "reproducible", FLAG, IN_PLAN(reproducible), NUMBERS,
     .help = "the same bits on 1, 2, 4, 8, ... ranks, for one --global-batch"},
    {.name = "recompute", FLAG, IN_PLAN(recompute), PLAN,
     .help = "compute activations twice instead of keeping them"},
    {.name = "memory-limit", .kind = ZERO_OPTION_WHOLE, .max = INT64_MAX,
     .argument = "BYTES", FIELD(memory_limit), PLANNED, .absent = "what is free",
     .help = "bytes per rank that a plan may need of the host's memory; 0: do not check"},
    {.name = "device-memory", .kind = ZERO_OPTION_WHOLE, .min = 1, .max = INT64_MAX,
     .argument = "BYTES", FIELD(device_memory),
     .is = ZERO_OPTION_PLANNED | ZERO_OPTION_PER_RANK, .absent = "what is free",
     .help = "with --device: bytes per rank that a plan may need of the device's memory, "
         "with what CUDA takes; zero plan checks it only if it is given"},
    {.name = "collectives", CHOICE, FIELD(collectives), IDLE(ALONE), PLAN, .words = "auto",
     .name_at = zero_algorithm_name_at, .standard = "auto",
     .help = "algorithms; auto: shm on one node, hier on several, p2p where nodes cannot "
         "share memory"},
    {.name = "device-exchange", CHOICE, FIELD(device_exchange), IDLE(ALONE), CHECK,
     .words = "auto|ipc|mpi|staged", .standard = "auto",
     .help = "with --device: how ranks exchange parameters and gradients; ipc: devices of "
         "a node read each other's memory, mpi: messages of --collectives p2p from and to "
         "their memory, by a CUDA-aware MPI, staged: through the host's; auto: ipc where "
         "nodes have several ranks and their devices can; equal bits"},
    {.name = "fake-nodes", WHOLE(1, INT31), FIELD(fake_nodes), IDLE(ALONE, IF(has_one_node,
     "has no effect: there is one node")), PLAN, .absent = "the real ones",
     .help = "let this machine stand for N nodes; the times of a run mean nothing then"},
    {.name = "tp", WHOLE(1, ZERO_TP_MOST), FIELD(tp.ranks), PLAN, .standard = "1",
     .help = "tensor parallelism: neighbouring ranks that share each product; ranks / N "
         "is what ZeRO shards over"},
    {.name = "tp-slices", WHOLE(1, ZERO_TP_MOST), FIELD(tp.slices), NUMBERS,
     .absent = "--tp; with --reproducible and --tp at least 4",
     .help = "slices of a sum over what --tp cuts, added along a tree: bits are equal for "
         "every --tp that divides N"},
    {.name = "partition-activations", FLAG, IN_PLAN(partition_activations), PLAN,
     .help = "with --tp: each rank of N keeps 1/N of what --recompute keeps, the paper's "
         "P_a; with --offload-activations that goes to the file; equal bits"},
    {.name = "tp-across-nodes", FLAG, FIELD(tp.across_nodes), IDLE(WITHOUT("tp")), PLAN,
     .help = "let ranks of several nodes share a product: each waits for the network"},
    {.name = "shard-ranks", WHOLE(1, 65536), IN_PLAN(shard_ranks), IDLE(IF(has_one_replica,
     "has no effect: that is all ranks"), AT_STAGE_0, IF(has_one_shard,
     "shards nothing: each rank has a whole replica")), PLAN,
     .absent = "all that --stage can shard over",
     .help = "--stage shards over groups of N neighbouring ranks, such as those of a "
         "node, and the groups are replicas: more memory per rank, but groups exchange "
         "nothing but sums of gradients; equal bits"},
    {.name = "node-parameters", FLAG, IN_PLAN(node_parameters), PLAN,
     .help = "stage 3: gathered parameters stay in the node's memory until backward has "
         "used them: one gather less per step, at the price of the model's parameters "
         "once per node; equal bits"},
    {.name = "threads", WHOLE(1, ZERO_MOST_THREADS), IN_PLAN(threads),
     IDLE(IF(has_one_thread,
     "has no effect: one thread computes with this backend or device")), PLANNED,
     .absent = "OMP_NUM_THREADS, or 1",
     .help = "threads that compute in each rank, on cores of their own; each needs a "
         "workspace; equal bits"},

    {.group = "Offload", .name = "offload", TEXT, FIELD(offload), CHECK,
     .argument = "DIR|host", .absent = "everything stays in memory",
     .help = "keep optimizer states in a scratch file in DIR, on a local disk; or, with "
         "--device, in the host's memory. Beside a device the host's CPU updates them "
         "(ZeRO-Offload); equal bits"},
    {.name = "offload-when", CHOICE, IN_PLAN(offload), .min = ZERO_OFFLOAD_END,
     IDLE(WITHOUT("offload")), PLAN, .words = "end|lazy|backward", .standard = "lazy",
     .help = "where parameters are updated: at the end of the step; in the next step, "
         "before their first use, while it computes; or, with --clip 0, during the "
         "backward pass"},
    {.name = "offload-parameters", FLAG, IN_PLAN(offload_parameters), PLAN,
     .help = "stage 3, no device: keep this rank's parameters in DIR, too"},
    {.name = "offload-activations", FLAG, IN_PLAN(offload_activations), PLAN,
     .help = "no device: keep in DIR, too, what --recompute keeps"},
    {.name = "offload-depth", WHOLE(1, ZERO_OFFLOAD_MAX_DEPTH), IN_PLAN(offload_depth),
     IDLE(WITHOUT("offload"), WITH("offload", "host")), PLAN, .standard = "4",
     .help = "blocks of 262144 parameters' states in memory at once"},
    {.name = "delayed-update", WHOLE(0, MANY), IN_PLAN(delayed_from),
     IDLE(IF(ends_before_delay, "has no effect: no step comes after that one")), NUMBERS,
     .standard = "0",
     .help = "from step N on a gradient's update runs beside the whole next step and is "
         "seen by the one after it (ZeRO-Offload's DPU): OTHER NUMBERS than without; 0: "
         "never"},

    {.group = "Checkpoints", .name = "checkpoint", TEXT, FIELD(checkpoint),
     .argument = "DIR", .absent = "none",
     .help = "save there at the end, on SIGUSR1, and on SIGUSR2, SIGTERM, SIGHUP and "
         "SIGINT, which also stop the run"},
    {.name = "save-every", WHOLE(1, MANY), FIELD(save_every),
     .absent = "--save-minutes alone decides", .help = "steps between checkpoints"},
    {.name = "save-minutes", REAL(0, 1e6), FIELD(save_minutes),
     .absent = "10, and never with --save-every",
     .help = "minutes between checkpoints, by the clock of rank 0; 0: never"},
    {.name = "keep", WHOLE(1, 1000000), FIELD(keep), .absent = "2",
     .help = "newest checkpoints that stay; older ones are removed"},
    {.name = "resume", FLAG, FIELD(resume),
     .help = "resume from the newest checkpoint, if there is one; options that decide "
         "numbers, such as shape, data, batch and rates, are its unless they are given"},
    {.name = "resume-older", FLAG, FIELD(resume_older),
     .help = "the same, or from an older one if it is broken"},
    {.name = "new-data", FLAG, FIELD(new_data),
     .help = "with --resume: continue on another --data, from its first sample, with the "
         "same model, moments and schedule"},
    {.name = "save-required", FLAG, FIELD(save_required),
     .help = "end the run with 3 when a checkpoint cannot be written"},

    {.group = "Output", .name = "metrics", TEXT, FIELD(metrics), PER_RANK,
     .argument = "FILE", .absent = "no file",
     .help = "one JSON object per line and step; ledgers and profile last"},
    {.name = "trace", TEXT, FIELD(trace), .argument = "FILE", .absent = "none",
     .help = "writes the last steps, instruction by instruction, in the format of "
         "Chrome's trace viewer; ui.perfetto.dev opens it"},
    {.name = "trace-steps", TEXT, FIELD(trace_steps), .argument = "A-B",
     .absent = "the last 3 of the run",
     .help = "steps in the --trace, such as 3-5; if the run ends before B, as many as it "
         "has made last"},
    {.name = "trace-ranks", TEXT, FIELD(trace_ranks), .argument = "LIST",
     .absent = "all ranks",
     .help = "ranks in the --trace, such as 0-7,64"},
    {.name = "narrate", FLAG, FIELD(narrate),
     .help = "tell the first step in words, instruction by instruction, with numbers of "
         "all ranks; for small models, such as --model lesson --data lesson"},
    {.name = "narrate-steps", WHOLE(1, MANY), FIELD(narrate_steps),
     IDLE(WITHOUT("narrate")), .standard = "1", .help = "steps that --narrate tells"},
    {.name = "log-every", WHOLE(1, MANY), FIELD(log_every), IDLE(WITH("quiet", "on"),
     WITH("progress", "none")), PER_RANK, PRESET,
     .help = "steps between lines of progress"},
    {.name = "sample", WHOLE(0, MANY), FIELD(sample), IDLE(IF(hides_samples,
     "has no effect with --quiet")), PRESET,
     .help = "tokens of text generated after training, and before it from weights that "
         "were imported or saved"},
    {.name = "progress", CHOICE, FIELD(progress), IDLE(IF(hides_lines,
     "has no effect with --quiet")), PER_RANK, .words = "auto|live|lines|none",
     .standard = "auto",
     .help = "lines on stdout; live: and one on stderr that is redrawn; auto: live on a "
         "terminal without mpirun"},
    {.name = "quiet", FLAG, FIELD(quiet),
     .help = "print warnings, the last loss and the digest alone; make no samples"},
    {.name = "expect-digest", TEXT, FIELD(expect_digest), .argument = "HEX",
     .absent = "any digest",
     .help = "end the run with 1 if its digest is another one"},

    {.group = "Diagnosis", .name = "watchdog", REAL(0, 1e6), FIELD(watchdog),
     .standard = "120",
     .help = "end a job in which nothing moves for X seconds, or a disk does not answer; "
         "0: never. The default is five times as long while MPI starts"},
    {.name = "check", CHOICE, FIELD(check), IDLE(ALONE), .words = "nothing|collectives",
     .standard = "nothing",
     .help = "check that all ranks issue the same collective (slow)"},
    {.name = "check-replicas", WHOLE(0, INT31), IN_PLAN(check_replicas),
     IDLE(IF(holds_all_once, "has no effect: one rank holds all once, in fp32")), CHECK,
     .standard = "100",
     .help = "look for flipped bits in what ranks hold more than once: 16-bit parameters "
         "in each step, all else within N steps; and at saves; 0: never"},
    {.name = "check-memory", FLAG, IN_PLAN(check_memory), CHECK,
     .help = "look for flipped bits in optimizer states before each update; reads them "
         "twice more each step"},
    {.name = "progress-thread", REAL(0, 1000), FIELD(progress_thread), IDLE(ALONE),
     PER_RANK, .standard = "0",
     .help = "also poll collectives from a helper thread every X ms; 0: off"},

    {.group = "General", .name = "config", TEXT, NO_FIELD,
     .is = ZERO_OPTION_COMMAND_LINE | ZERO_OPTION_PLANNED, .argument = "FILE",
     .absent = "none",
     .help = "JSON object of these options; flags win over it"},
    {.name = NULL},
};
/* clang-format on */
