/* step_file.h - one training step in a file, by any framework: what went in, and what came
 * out.
 *
 * It is a safetensors file; `zero help step-files` describes it:
 *
 *     tokens, targets          I32 [ranks, microbatches, sequences, positions]
 *     before/NAME, after/NAME  weights, by Hugging Face's names
 *     momentum_before/NAME, ...   Adam's moments, likewise; none before the first update
 *     gradient/NAME            as the optimizer got it; optional
 *     loss, norm               F64 [1]; optional
 *     __metadata__             "format", "step" and "config", two JSON objects
 *
 * Every byte comes from outside: the result is ZERO_OK, or ZERO_ERR_FORMAT or ZERO_ERR_IO
 * that names file and tensor. Nothing here is collective. */
#pragma once

#include "checkpoint/hugging_face.h"
#include "zero/train.h"

/* Tensors of each name. */
typedef enum {
    ZERO_STEP_BEFORE, /* the three parts of zero_state_part, and again */
    ZERO_STEP_MOMENTUM_BEFORE,
    ZERO_STEP_VARIANCE_BEFORE,
    ZERO_STEP_AFTER,
    ZERO_STEP_MOMENTUM_AFTER,
    ZERO_STEP_VARIANCE_AFTER,
    ZERO_STEP_GRADIENT,
    ZERO_STEP_PARTS
} zero_step_part;

extern const char *const zero_step_prefixes[ZERO_STEP_PARTS]; /* "before/" */

/* What a step was, as "step" says it. Texts are borrowed from the file, or the caller's. */
typedef struct {
    const char *framework; /* "torch 2.15.0" */
    const char *sharding;  /* "ddp", "fsdp2", ...; "": one rank */
    const char *dtype;     /* of parameters and gradients: "fp32" */
    int64_t updates;       /* Adam's, before this one */
    double lr, beta1, beta2, eps, weight_decay;
    double clip;       /* 0: none */
    double loss_scale; /* of the gradients that were summed */

    /* Of steps of this program, which repeats them bit for bit; else zeros. */
    int64_t step; /* from 0 */
    int64_t seed;
    double dropout;
    const char *activations; /* "": as --dtype decides */
    int64_t slices;          /* --tp-slices */
    bool reproducible;
} zero_step_facts;

typedef struct {
    zero_file file;
    zero_safetensors table;
    json_t *root;           /* "step", whose texts the facts borrow; owned */
    const json_t *no_decay; /* names of tensors without weight decay */
    zero_step_facts facts;
    zero_type type;   /* facts.dtype */
    zero_shape shape; /* of "config"; seq is the tokens' */
    int64_t ranks, microbatches, batch, seq;
    int64_t counted;           /* targets that are not -1 */
    int32_t *tokens, *targets; /* [ranks * microbatches * batch * seq] owned */
    double loss, norm;         /* NAN: not in the file */
    zero_hugging_face parts[ZERO_STEP_PARTS]; /* once it is matched */
    bool has[ZERO_STEP_PARTS];                /* false: zeros, or no gradient */
    bool *decays;                             /* [n_tensors] owned */
    int n_tensors;
} zero_step_file;

/* Reads all but the weights. */
zero_status zero_step_open(const char *path, zero_step_file *file);
/* Compares the tensors with the model, and sets which of the model's decay. The model
 * outlives the file. */
zero_status zero_step_match(zero_step_file *file, zero_model *model);
void zero_step_close(zero_step_file *file); /* accepts a zeroed one */

/* Sequences of the step. */
int64_t zero_step_samples(const zero_step_file *file);
/* The facts in which matched files differ: a new array of {name, x, y}. *alike: none of
 * them has a part in the numbers. */
json_t *zero_step_compare_facts(const zero_step_file *a, const zero_step_file *b,
                                bool *alike);
/* The values of a part; zeros if the file has none. */
zero_weights zero_step_weights(zero_step_file *file, zero_step_part part);
/* A zero_source's: `arg` is a zero_step_file. After the last sequence come copies of the
 * first, none of whose positions counts. */
void zero_step_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                      void *targets);

/* The header of a new file, in which tensors stand in this order: tokens, targets, each
 * part but the gradient, loss, norm. */
typedef struct {
    const zero_model *model; /* the whole one */
    const zero_step_facts *facts;
    zero_type type;
    int64_t ranks, microbatches, batch;
} zero_step_outline;
zero_status zero_step_write_header(const zero_step_outline *outline, zero_bytes *header);
