/* config.h - everything a user can choose about a run, as plain data.
 *
 * Filled by the command line and --config (src/cli/options/train.txt) and completed by
 * zero_config_complete(), which needs neither MPI nor data. Until then a number that the
 * user left to the preset is 0, or -1 where 0 means something. Strings are borrowed and
 * outlive the configuration. Sizes are elements and sequences unless a name says bytes. */
#pragma once

#include "nn/shape.h"
#include "sharding/plan_input.h"
#include "train/tensor_parallel.h"

typedef struct {
    /* model */
    const char *model;        /* a preset of nn/presets.txt */
    const char *architecture; /* NULL: the preset's */
    zero_shape shape;         /* what options give; zeros: the base's */
    const char *tied;         /* on, off; NULL: the base's */
    zero_shape base; /* of a checkpoint or of imported files; no kind: the preset's */
    double dropout;
    const char *init_from; /* NULL: random weights */
    const char *backend;
    zero_bits bits;     /* of the cpu backend's products */
    const char *device; /* cpu: none; else the backend is the device's */

    /* data */
    const char *data, *val_data; /* val_data NULL: the last tenth of data */
    const char *tokenizer;       /* NULL: the data's own */
    int64_t token_bytes;         /* of files of raw tokens; 0: what the files say */
    bool shuffle;
    int64_t seed;

    /* optimisation */
    int64_t steps, global_batch; /* the batch in sequences */
    bool grows_with_ranks; /* computed: the global batch follows the ranks (weak scaling) */
    double lr, lr_min, beta1, beta2, eps, weight_decay, clip;
    int64_t warmup;
    const char *lr_decay; /* cosine, linear, none */
    int64_t eval_every, eval_batches;
    bool eval_random; /* validation windows anywhere, not in order */

    /* Sharding, communication, memory. Options fill in the members of the plan that they
     * name; n_ranks and accumulation are computed; zero_config_plan() decides the others.
     * Until then `offload` is where --offload-when puts updates, also without --offload. */
    zero_plan_input plan;
    bool
        bucket_grows; /* computed: the user gave no bucket, so it grows where the ranks need more */
    const char *activations; /* fp32, or as dtype; NULL: as the device likes */
    int64_t memory_limit;    /* bytes per rank; 0: no check; -1: what the machine gives */
    int64_t device_memory;   /* bytes per rank of a device; 0: no check */
    const char *collectives; /* auto, or an algorithm's name */
    const char *device_exchange; /* auto, ipc, mpi, staged */
    int64_t fake_nodes;          /* 0: the real ones */
    zero_tp tp;
    const char *offload; /* host, or the directory of the scratch file; NULL: no offload */

    /* checkpoints */
    const char *checkpoint; /* the directory; NULL: none */
    int64_t save_every;     /* 0: not by the number of steps */
    double save_minutes;    /* 0: not by the clock; -1, until completed: see config.c */
    int64_t keep;
    bool save_sync; /* the run waits for its saves */
    bool resume, resume_older, new_data, save_required;

    /* diagnosis */
    double watchdog;        /* seconds; 0: none */
    const char *check;      /* nothing, collectives */
    double progress_thread; /* milliseconds between its polls; 0: no thread */

    /* what is shown and written */
    const char *metrics, *record;          /* NULL: no file */
    int64_t metrics_every;                 /* steps between lines of steps */
    const char *trace;                     /* likewise */
    const char *trace_steps, *trace_ranks; /* NULL: the last steps; all ranks */
    int64_t narrate_steps;                 /* with `narrate`: how many, from the first on */
    bool narrate;                          /* they are told in words */
    int64_t log_every, sample;
    const char *progress; /* auto, live, lines, none */
    bool quiet;
    const char *expect_digest; /* 32 hexadecimal digits; NULL: any */
} zero_config;

#define ZERO_CONFIG_BUCKET ZERO_PLAN_BUCKET
/* Most microbatches per rank and step: the schedule lists the work of each one. */
#define ZERO_CONFIG_ACCUMULATION INT64_C(65536)

/* Fills in what the preset decides and works out slices, and the batch for n_ranks ranks:
 *
 *     N = n_ranks / T, the ranks that ZeRO shards over
 *     global batch = N * micro batch * accumulation
 *
 * With `reproducible` a micro batch that the user left open does not depend on n_ranks.
 * ZERO_ERR_INVALID, with the numbers, if that has no solution in whole numbers or
 * needs more than ZERO_CONFIG_ACCUMULATION microbatches. */
zero_status zero_config_complete(zero_config *config, int n_ranks);

/* Fills in what the preset decides without knowing ranks or data: rates, steps, the shape,
 * and the preset's global batch or micro batch. What stays open is 0. ZERO_ERR_INVALID for
 * a model that is not known, and for rates that contradict each other. */
zero_status zero_config_take_preset(zero_config *config);

/* The shape of imported weights, where the user gave none: `has_model` says that --model
 * was given, which decides it alone. With nothing given the preset, for steps, rate and
 * batch, is the one nearest in size. Zeros in `found` are unknown. ZERO_ERR_INVALID if the
 * heads are and would be guessed. */
zero_status zero_config_take_shape(zero_config *config, const zero_shape *found,
                                   bool has_model);

/* The preset's learning rate, which is for random weights. */
double zero_config_scratch_rate(const zero_config *config);

/* Everything that can be found wrong without ranks and without data, but for what forms
 * say of options that contradict each other (cli/forms/checks.txt). */
zero_status zero_config_check(const zero_config *config);
/* The checks that need only what the user gave, for a run that takes the rest from its
 * checkpoint. */
zero_status zero_config_check_given(const zero_config *config);
/* True with --resume and --resume-older. */
bool zero_config_resumes(const zero_config *config);

/* The model's shape: the preset's, changed by what the user gave; where neither names a
 * vocabulary, the data's. */
zero_status zero_config_shape(const zero_config *config, int64_t data_vocab,
                              zero_shape *shape);

/* What a run's model is called: the preset, or the architecture of imported weights that is
 * not the preset's. */
const char *zero_config_model(const zero_config *config);

/* Completes a plan's input that began as config->plan, of a completed configuration, and
 * has got its model, rank, layouts and collectives. */
void zero_config_plan(const zero_config *config, zero_plan_input *in);

/* The same for a rank that no communicator has. Borrows `part`, what the rank has of the
 * model, and the layouts. */
zero_plan_input zero_config_plan_at(const zero_config *config, const zero_model *part,
                                    const zero_tp_place *place, const zero_layout *world,
                                    zero_algorithm collectives);

/* The bucket for an input, whatever its own is: the user's, or else the default or the
 * least that its ranks need. */
int64_t zero_config_bucket(const zero_config *config, const zero_plan_input *in);

/* ZERO_ERR_INVALID if R does not divide N = n_ranks / T, or is neither N nor a power of
 * two; the message has the numbers. */
zero_status zero_config_check_shard_ranks(const zero_config *config, int n_ranks);

/* ---- config_plan.c ---- */

/* R, of a completed configuration. */
int zero_config_shard_ranks(const zero_config *config);

/* True if --device names one. */
bool zero_config_has_device(const zero_config *config);
/* The directory of the scratch file, or NULL. */
const char *zero_config_directory(const zero_config *config);
/* True with --device-exchange auto. */
bool zero_config_chooses_exchange(const zero_config *config);
/* Bytes that the device's library takes of it, by assumption. */
size_t zero_config_context(const zero_config *config);

/* The type for a run whose parameters are of `parameters`. `name` is what --activations
 * says; NULL: fp32, and on a device that computes with 16-bit rows the type of the
 * parameters. ZERO_ERR_INVALID, with the remedy, for another 16-bit type than the
 * parameters', and for a device that has none. */
zero_status zero_activations_choose(const char *name, zero_type parameters,
                                    const char *device, zero_type *activations);
/* That of a checked configuration. */
zero_type zero_config_activations(const zero_config *config);
