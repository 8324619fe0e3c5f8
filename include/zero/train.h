/* train.h - a model in training, under any stage of ZeRO.
 *
 *     stage   what is sharded over the N ranks     bytes of model states per parameter and rank
 *     0       nothing                              16
 *     1       optimizer states                     4 + 12/N   (fp32: 8 + 8/N)
 *     2       and gradients                        2 + 14/N   (fp32: 4 + 12/N)
 *     3       and parameters                       16/N
 *
 * With one microbatch per rank, or with `reproducible`, the stage, the bucket, the partition,
 * overlap, recompute and the collectives (but "mpi") change no bit of losses and parameters.
 * That needs the same BLAS with the same number of threads on all ranks, which the program
 * decides (OPENBLAS_NUM_THREADS=1). One thread is faster, too, if there is a rank per core, and our
 * own products are taken only then (zero info says which).
 *
 * Functions are collective over the trainer's group and block, unless they say otherwise; all
 * ranks call them in the same order with equal arguments and get the same status. Errors name a
 * field by the program's option of the same name (--micro-batch: micro_batch). After
 * ZERO_ERR_MPI and ZERO_ERR_STALLED only an abort of all ranks is left.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5 and figure 1 (states),
 * section 7 (volume); Loshchilov & Hutter 2019, arXiv:1711.05101, algorithm 2 (AdamW). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/comm.h"
#include "zero/model.h"
#include "zero/status.h"
#include "zero/type.h"

typedef struct zero_trainer zero_trainer;

/* What is 0 or NULL takes the value in brackets. */
typedef struct {
    const zero_model *model; /* borrowed until the trainer is closed */
    int stage;               /* 0 to 3 */
    zero_type type;          /* of parameters and gradients [fp32] */
    int64_t micro_batch;     /* samples per rank and microbatch [1] */
    int64_t seq;             /* positions per sample [the model's] */
    int accumulation;        /* microbatches per rank and step, at most 2^16 [1] */
    const char *partition;   /* "slice", "owner": the paper's [slice] */
    const char *collectives; /* "auto", "p2p", "shm", "hier", "mpi" [auto] */
    const char *backend;     /* "cpu", "naive" [cpu] */
    bool reproducible;       /* the same bits on 1, 2, 4, ... ranks with accumulation */
    bool recompute;          /* activations twice instead of kept */
    bool no_overlap;         /* every collective is waited for at once */
    int64_t bucket;          /* elements that a collective stages at most [2^20] */
    int64_t prefetch;        /* stage 3: uses of parameters gathered ahead */
    int64_t persist;         /* stage 3: groups of up to so many parameters stay whole */
    int64_t seed;            /* of the initial parameters */
    int64_t eval_batches;    /* global batches that an evaluation averages over [1] */
    size_t memory_limit;     /* bytes that this rank may take; may differ [no limit] */
} zero_trainer_spec;

/* Where samples come from: writes sample i of a step, T positions of the model's inputs and
 * targets, each with as many bytes as the model says. Called by the rank that computes with the
 * sample, so it may depend on nothing but i and step. i counts over the global batch: microbatch
 * m of a step is samples m * micro_batch and following. `arg` is the caller's. */
typedef struct {
    void (*sample)(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                   void *targets);
    const void *arg;
} zero_source;

/* lr, weight_decay, clip >= 0; 0 <= beta1, beta2 < 1; eps > 0. */
typedef struct {
    int64_t step; /* from 0: what the source and dropout are asked for */
    double lr, beta1, beta2, eps, weight_decay;
    double clip; /* largest norm of the gradient; 0: no clipping */
} zero_step_input;

typedef struct {
    double loss;       /* mean over the positions of the global batch */
    double grad_norm;  /* before clipping, without the loss scale */
    double loss_scale; /* that the gradient was computed with; 1 unless fp16 */
    bool skipped;      /* fp16: the gradient overflowed, nothing was updated */
} zero_step_result;

/* Takes all memory and initialises the parameters. *trainer is the caller's, to be closed; the
 * group is borrowed until then. ZERO_ERR_INVALID for a spec that is out of range or not that of
 * rank 0; ZERO_ERR_NOMEM; ZERO_ERR_ENV if "shm" or "hier" finds no shared memory ("auto" then
 * takes "p2p"). */
ZERO_NODISCARD zero_status zero_trainer_open(const zero_trainer_spec *spec, zero_comm *comm,
                                             zero_trainer **trainer);
/* Accepts NULL. */
void zero_trainer_close(zero_trainer *trainer);

/* One update with AdamW from the global batch: group size * accumulation * micro_batch samples.
 * A gradient that is not finite is ZERO_ERR_DIVERGED, says where it began and changes nothing;
 * with fp16 it lowers the loss scale and skips the step, as long as there is something to
 * lower. */
ZERO_NODISCARD zero_status zero_trainer_step(zero_trainer *trainer,
                                             const zero_source *source,
                                             const zero_step_input *input,
                                             zero_step_result *result);

/* Mean loss over samples 0, 1, ... of the source's step 0. Changes nothing. */
ZERO_NODISCARD zero_status zero_trainer_evaluate(zero_trainer *trainer,
                                                 const zero_source *source, double *loss);

/* Saves the state as `dir`/step-X, X being the next step, in the format of the program's
 * checkpoints: written by all ranks in parallel, synced, published by one rename. When it
 * returns ZERO_OK the checkpoint survives whatever happens. All nodes need to see the same
 * `dir`. A missing one is made, and leftovers of crashed saves are removed. ZERO_ERR_ENV if
 * something cannot be written, and then nothing of it stays, or if a rank sees another `dir`;
 * ZERO_ERR_INVALID if `dir` cannot be opened or made, has this step already, or another process
 * is saving there. Older checkpoints are the caller's to remove, as whole directories. */
ZERO_NODISCARD zero_status zero_trainer_save(zero_trainer *trainer, const char *dir,
                                             int64_t step);

/* Loads the newest checkpoint in `dir`, whatever stage, number of ranks or partition wrote it;
 * *step is the next one. Every byte is checked. ZERO_ERR_IO if there is none or it cannot be
 * read, ZERO_ERR_FORMAT if it was changed since, ZERO_ERR_INVALID if it is of another model:
 * after these the trainer's state is undefined. */
ZERO_NODISCARD zero_status zero_trainer_resume(zero_trainer *trainer, const char *dir,
                                               int64_t *step);

/* 32 hexadecimal digits and a zero: XXH3-128 of all parameters (fp32 masters) and both moments.
 * Equal states have equal digests, in any stage and on any number of ranks. */
ZERO_NODISCARD zero_status zero_trainer_digest(zero_trainer *trainer, char hex[33]);

/* Copies a tensor, by name, to values[rows*cols] on every rank: fp32, of 16-bit types the
 * masters. ZERO_ERR_INVALID if no tensor is called so. */
ZERO_NODISCARD zero_status zero_trainer_read(zero_trainer *trainer, const char *tensor,
                                             float *values);

/* This rank's bytes, as planned before the first step and as counted since. */
typedef struct {
    size_t planned_peak, measured_peak; /* of memory alive at once, so far */
    size_t states; /* of it the model states, with padding: the table */
    int64_t planned_sent, measured_sent; /* gradients and parameters, since open */
    int64_t planned_received, measured_received;
} zero_trainer_ledger;

ZERO_NODISCARD zero_status zero_trainer_count(zero_trainer *trainer,
                                              zero_trainer_ledger *ledger);
