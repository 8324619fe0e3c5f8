#include "cli/option_table.h"

#include <string.h>

#include "cli/suggest.h"
#include "comm/collective.h"
#include "train/config.h"

#define TEXT   .kind = ZERO_OPTION_TEXT
#define CHOICE .kind = ZERO_OPTION_CHOICE
#define FLAG   .kind = ZERO_OPTION_FLAG
#define WHOLE(least, most) \
    .kind = ZERO_OPTION_WHOLE, .min = (least), .max = (most), .argument = "N"
#define REAL(least, most) \
    .kind = ZERO_OPTION_REAL, .low = (least), .high = (most), .argument = "X"
#define FIELD(name) .offset = offsetof(zero_config, name)
#define NO_FIELD    .offset = ZERO_OPTION_NOWHERE
#define PRESET      .absent = "the preset's"

/* Bounds are of sense, not of memory: what passes them still has to fit the machine. */
#define MANY  INT64_C(1000000000000)
#define INT31 INT64_C(2147483647) /* tokens and ranks' counts are int32_t */

/* clang-format off */
static const zero_option table[] = {
    {.group = "Model", .name = "model", TEXT, FIELD(model), .argument = "NAME", .standard = "tiny",
     .help = "tiny, gpt2, gpt2-medium, -large, -xl; all: zero plan --models"},
    {.name = "layers", WHOLE(1, 10000), FIELD(layers), PRESET, .help = "transformer blocks"},
    {.name = "hidden", WHOLE(1, 131072), FIELD(hidden), PRESET, .help = "channels, a multiple of heads"},
    {.name = "heads", WHOLE(1, 65536), FIELD(heads), PRESET, .help = "attention heads"},
    {.name = "seq", WHOLE(1, 16777216), FIELD(seq), PRESET, .help = "positions: tokens in a sequence"},
    {.name = "vocab", WHOLE(1, 16777216), FIELD(vocab), PRESET, .help = "words in the vocabulary"},
    {.name = "dropout", REAL(0, 0.99), FIELD(dropout), .standard = "0", .help = "share of activations dropped in training"},
    {.name = "init-from", TEXT, FIELD(init_from), .argument = "FILE", .absent = "random ones",
     .help = "initial weights: a GPT-2's model.safetensors, or its folder"},
    {.name = "backend", TEXT, FIELD(backend), .argument = "NAME", .standard = "cpu", .help = "who computes: cpu, naive"},

    {.group = "Data", .name = "data", TEXT, FIELD(data), .argument = "SPEC", .standard = "stories",
     .help = "stories[:SIZE], self, a file, a directory or a 'pattern'"},
    {.name = "tokenizer", TEXT, FIELD(tokenizer), .argument = "NAME", .absent = "the data's own", .help = "how text becomes tokens: byte, or bpe:N with N words"},
    {.name = "shuffle", FLAG, FIELD(shuffle), .standard = "off", .help = "draw the samples in random order"},
    {.name = "seed", WHOLE(0, INT64_MAX), FIELD(seed), .standard = "1337", .help = "of weights, dropout, data and sampling"},

    {.group = "Optimisation", .name = "steps", WHOLE(1, MANY), FIELD(steps), PRESET, .help = "optimizer steps"},
    {.name = "global-batch", WHOLE(1, INT31), FIELD(global_batch), PRESET, .help = "sequences per step, over all ranks"},
    {.name = "micro-batch", WHOLE(1, INT31), FIELD(micro_batch), PRESET, .help = "sequences that a rank computes at a time"},
    {.name = "lr", REAL(0, 100), FIELD(lr), PRESET, .help = "learning rate after the warm-up"},
    {.name = "lr-min", REAL(0, 100), FIELD(lr_min), .absent = "a tenth of --lr", .help = "learning rate at the end of the cosine"},
    {.name = "warmup", WHOLE(0, MANY), FIELD(warmup), .absent = "a fifth of --steps", .help = "steps of linear warm-up"},
    {.name = "beta1", REAL(0, 0.999999), FIELD(beta1), .standard = "0.9", .help = "Adam: decay of the momentum"},
    {.name = "beta2", REAL(0, 0.999999), FIELD(beta2), .standard = "0.95", .help = "Adam: decay of the variance"},
    {.name = "eps", REAL(1e-30, 1), FIELD(eps), .standard = "1e-8", .help = "Adam: added to the root of the variance"},
    {.name = "weight-decay", REAL(0, 100), FIELD(weight_decay), .standard = "0.1", .help = "AdamW: decay, times the learning rate"},
    {.name = "clip", REAL(0, 1e30), FIELD(clip), .standard = "1.0", .help = "largest norm of the gradient; 0: any"},
    {.name = "eval-every", WHOLE(0, MANY), FIELD(eval_every), PRESET, .help = "steps between evaluations; 0: none"},
    {.name = "eval-batches", WHOLE(1, INT31), FIELD(eval_batches), PRESET, .help = "global batches in an evaluation"},

    {.group = "Sharding and communication", .name = "stage", WHOLE(0, 3), FIELD(stage), .standard = "0",
     .help = "ZeRO: 0 none, 1 optimizer, 2 + gradients, 3 + parameters"},
    {.name = "bucket", WHOLE(64, 64 * ZERO_CONFIG_BUCKET), FIELD(bucket), .standard = "1048576",
     .help = "elements of other ranks' gradients staged at a time"},
    {.name = "dtype", CHOICE, FIELD(dtype), .words = "fp32|bf16|fp16", .standard = "fp32", .help = "of parameters and gradients; fp16 scales the loss"},
    {.name = "partition", CHOICE, FIELD(partition), .words = "slice|owner", .standard = "slice",
     .help = "every group in shards, or the model cut once (the paper)"},
    {.name = "prefetch", WHOLE(0, INT31), FIELD(prefetch), .standard = "1", .help = "stage 3: uses of parameters gathered ahead"},
    {.name = "persist", WHOLE(0, MANY), FIELD(persist), .standard = "0", .help = "stage 3: groups of up to N parameters stay whole"},
    {.name = "overlap", CHOICE, FIELD(overlap), .words = "on|off", .standard = "on", .help = "communicate while computing"},
    {.name = "reproducible", FLAG, FIELD(reproducible), .standard = "off", .help = "the same bits at any world size (powers of two)"},
    {.name = "recompute", FLAG, FIELD(recompute), .standard = "off", .help = "compute activations twice instead of keeping them"},
    {.name = "memory-limit", WHOLE(0, INT64_MAX), FIELD(memory_limit), .absent = "the machine's",
     .help = "bytes per rank that a plan may need; 0: do not check"},
    {.name = "collectives", CHOICE, FIELD(collectives), .words = "auto|mpi|p2p|shm|hier", .standard = "auto",
     .help = "algorithms; auto: shm on one node, hier on several, p2p else"},
    {.name = "fake-nodes", WHOLE(1, INT31), FIELD(fake_nodes), .absent = "the real ones", .help = "let this machine stand for N nodes"},
    {.name = "threads", WHOLE(1, 4096), FIELD(threads), .absent = "OPENBLAS_NUM_THREADS, or 1", .help = "of BLAS per rank; 2 or more: it does fp32"},

    {.group = "Checkpoints", .name = "checkpoint", TEXT, FIELD(checkpoint), .argument = "DIR", .absent = "none",
     .help = "save there at the end, on SIGUSR1, and on SIGUSR2 stop"},
    {.name = "save-every", WHOLE(1, MANY), FIELD(save_every), .absent = "never", .help = "steps between checkpoints"},
    {.name = "keep", WHOLE(1, 1000000), FIELD(keep), .absent = "2", .help = "newest checkpoints that stay; older ones are removed"},
    {.name = "resume", FLAG, FIELD(resume), .standard = "off", .help = "go on from the newest checkpoint, if there is one"},
    {.name = "resume-older", FLAG, FIELD(resume_older), .standard = "off", .help = "the same, or an older one if it is broken"},
    {.name = "save-required", FLAG, FIELD(save_required), .standard = "off", .help = "end the run with 3 when a checkpoint cannot be written"},

    {.group = "What is shown and written", .name = "metrics", TEXT, FIELD(metrics), .argument = "FILE", .absent = "no file",
     .help = "one JSON object per line and step; ledgers, profile last"},
    {.name = "log-every", WHOLE(1, MANY), FIELD(log_every), PRESET, .help = "steps between lines of progress"},
    {.name = "sample", WHOLE(0, MANY), FIELD(sample), PRESET, .help = "tokens of text generated before and after"},
    {.name = "progress", CHOICE, FIELD(progress), .words = "lines|bar", .standard = "lines", .help = "how progress is shown"},

    {.group = "Diagnosis", .name = "watchdog", REAL(0, 1e6), FIELD(watchdog), .standard = "120",
     .help = "end a job in which nothing moves for X seconds; 0: never"},
    {.name = "check", CHOICE, FIELD(check), .words = "nothing|collectives", .standard = "nothing",
     .help = "ranks compare every collective before it; slow"},
    {.name = "progress-thread", REAL(0, 1000), FIELD(progress_thread), .standard = "0",
     .help = "collectives are polled by a thread, too, every X ms; 0: by none"},

    {.group = "General", .name = "config", TEXT, NO_FIELD, .command_line_only = true, .argument = "FILE", .absent = "none",
     .help = "JSON object of these options; flags win over it"},
    {.name = "help", FLAG, NO_FIELD, .command_line_only = true, .standard = "off", .help = "show this text"},

    {.group = "Not in this version yet (other values are refused)",
     .name = "tp", WHOLE(1, INT31), NO_FIELD, .standard = "1", .only = "1", .help = "ranks that share each product"},
};
/* clang-format on */

#define N_OPTIONS ((int)(sizeof table / sizeof *table))
_Static_assert(sizeof table / sizeof *table <= 64, "zero_options.set has 64 bits");

const zero_option *zero_option_table(int *n)
{
    *n = N_OPTIONS;
    return table;
}

const zero_option *zero_option_find(const char *name, size_t length, int *index)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        if (strlen(table[i].name) != length || memcmp(table[i].name, name, length) != 0)
            continue;
        *index = i;
        return &table[i];
    }
    return NULL;
}

const char *zero_option_nearest(const char *name)
{
    const char *names[N_OPTIONS];
    for (int i = 0; i < N_OPTIONS; i++) names[i] = table[i].name;
    return zero_suggest(name, N_OPTIONS, names);
}
