/* train.h - training a model, under any stage of ZeRO.
 *
 *     stage   what is sharded over the N ranks     bytes of model states per parameter and
 *                                                  rank
 *     0       nothing                              16
 *     1       optimizer states                     4 + 12/N   (fp32: 8 + 8/N)
 *     2       and gradients                        2 + 14/N   (fp32: 4 + 12/N)
 *     3       and parameters                       16/N
 *
 * Where the ranks of a node share memory ("shm", "hier"), the node holds the parameters of
 * stages 1 and 2 once, and each of its n ranks 1/n of them: 2/n in place of 2 (fp32: 4/n in
 * place of 4).
 *
 * With one microbatch per rank, or with `reproducible`, the stage, the bucket, the
 * partition, overlap, recompute and the collectives (except "mpi") change no bit of losses
 * and parameters; nor do threads, machines and their CPUs, but for the products in bf16
 * (`bits`).
 *
 * Functions are collective over the trainer's group and block, unless they say otherwise.
 * All ranks call them in the same order with equal arguments and get the same status. NULL,
 * a number out of range, and arguments that differ between ranks give ZERO_ERR_INVALID, on
 * all ranks even if one alone was called so; only with a trainer of NULL, before MPI_Init,
 * after MPI_Finalize, after the group was closed or the model destroyed, a rank answers for
 * itself. Messages name a field by the program's option of that name (--micro-batch:
 * micro_batch). After ZERO_ERR_MPI and ZERO_ERR_STALLED the program can only abort all
 * ranks.
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

ZERO_API_BEGIN

typedef struct zero_trainer zero_trainer;

/* 0 or NULL stands for the default in brackets. */
typedef struct {
    const zero_model *model; /* borrowed until the trainer is closed */
    int stage;               /* 0 to 3 */
    zero_type type;          /* of parameters and gradients [fp32] */
    int64_t micro_batch;     /* samples per rank and microbatch [1] */
    int64_t seq;             /* positions per sample [the model's] */
    int accumulation;        /* microbatches per rank and step, at most 2^16 [1] */
    const char *partition;   /* "slice", "owner": the paper's [slice] */
    const char *optimizer;   /* "adamw", "muon", "lion", "sgd" [adamw] */
    const char *muon_scale;  /* "rms", "original" [rms] */
    const char *collectives; /* "auto", "p2p", "shm", "hier", "mpi" [auto] */
    const char *backend;     /* "cpu", "naive" [cpu] */
    /* Where it computes: "cpu", which is the host, or "cuda", the machine's GPUs,
     * "cuda:0,2" some of them; ranks of a machine take them in turn and may share one.
     * "fake" and "cuda-emulated" are for tests, in builds with them; "fake" has the bits of
     * "cpu". Others than "cpu" need units that compute by layers (zero/model.h), and no
     * `backend`; with `offload` the host's CPU updates. Samples, results, and the tensors
     * that the program reads or writes stay in the host's memory [cpu]. */
    const char *device;
    bool reproducible;    /* the same bits on 1, 2, 4, ... ranks with accumulation */
    bool recompute;       /* computes activations twice instead of keeping them */
    bool serial;          /* waits for every collective at once */
    int64_t bucket;       /* elements that a collective stages at most, 64 to 2^28 [2^20] */
    int64_t prefetch;     /* stage 3: uses of parameters gathered ahead */
    int64_t persist;      /* stage 3: groups of up to that many parameters stay whole */
    int64_t seed;         /* of the initial parameters, not negative */
    int64_t eval_batches; /* global batches that an evaluation averages over [1] */
    /* Bytes for this rank, with a device of the host's memory; ranks may differ [no
     * limit]. */
    size_t memory_limit;

    /* Flipped bits: 16-bit parameters are compared with their masters in each step, copies
     * that ranks hold of parameters and states within that many steps, and all before each
     * save and digest; below 0: never [100]. */
    int check_replicas;
    bool check_memory; /* hashes states after each update, verifies them before the next */
    int check_compute; /* N: forward and backward run twice in every N-th step [0: never] */

    /* A directory, on a local disk, for a scratch file in which optimizer states lie. It
     * may differ between ranks. The file has no name, and its space is reserved at once.
     * With a device also "host": they lie in the host's memory ("./host" is a directory).
     * Equal bits, unless updates are delayed [NULL: states lie in memory, the device's if
     * there is one]. */
    const char *offload;
    /* The place of updates: "end" of the step; "lazy": in the next step, while it computes;
     * "backward": in the backward pass, only without clip and not with fp16 [lazy]. */
    const char *offload_when;
    bool offload_parameters; /* stage 3, no device: this rank's parameters lie there, too */
    bool offload_activations; /* so does what recompute keeps; no device */
    int offload_depth; /* blocks of 2^18 parameters' states in memory at once, to 64 [4] */
    /* From this step on, counted from 1, a gradient's update runs beside the whole next
     * step and is seen by the one after it: other numbers. Whatever reads or saves states
     * makes it before, which changes later numbers once more [0: never]. */
    int64_t delayed_update;

    /* Threads that compute in each rank, if `backend` is "cpu" and `device` the host: equal
     * bits, so it may differ only in time and memory, but it is the same on all ranks. They
     * run where the process may, unless OpenMP's variables bind them (OMP_PLACES), and
     * sleep while they wait for long. Leave BLAS one thread. Units are called by the
     * calling thread alone, within a parallel region: their own ones have one thread
     * [1]. */
    int threads;
    /* Of the products of `backend` "cpu": "auto": in fp32 every CPU has the same bits, in
     * bf16 the fastest kernels decide; "portable": also in bf16; "fastest": BLAS multiplies
     * in fp32 where it is faster [auto]. */
    const char *bits;
} zero_trainer_spec;

/* The source of samples. Writes sample i of a step: T positions of inputs and of targets,
 * each with as many bytes as the model says. i counts over the global batch: microbatch m
 * of a step is the micro_batch samples from m * micro_batch on. The rank that computes with
 * the sample makes the call, so the sample must depend on i and step alone. `arg` is the
 * caller's. */
typedef struct {
    void (*sample)(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                   void *targets);
    const void *arg;
    /* Positions of a step, over all samples, whose target counts: the loss is the mean over
     * them. A target of the library's models counts unless it is negative. The same on all
     * ranks [0: all positions]. */
    int64_t counted;
} zero_source;

/* lr, weight_decay, clip >= 0; 0 <= beta1, beta2 < 1; eps > 0. */
typedef struct {
    /* From 0 to 2^62 / (samples of a step), for the source and for dropout. */
    int64_t step;
    double lr, beta1, beta2, eps, weight_decay;
    double clip; /* largest norm of the gradient; 0: no clipping */
} zero_step_input;

typedef struct {
    double loss;       /* mean over the positions of the global batch */
    double grad_norm;  /* before clipping, without the loss scale */
    double loss_scale; /* of this gradient; 1 unless fp16 */
    bool skipped;      /* fp16: the gradient overflowed, nothing was updated */
} zero_step_result;

/* Takes all memory and initializes the parameters. The caller closes *trainer, which keeps
 * the group from ending. ZERO_ERR_INVALID if the spec is out of range, or the spec or the
 * model's tables differ from rank 0's; ZERO_ERR_NOMEM; ZERO_ERR_ENV if "shm" or "hier"
 * finds no shared memory ("auto" then takes "p2p"), or the directory for offload cannot be
 * used or is full; ZERO_ERR_UNSUPPORTED if this build lacks the device, or OpenMP for
 * threads; ZERO_ERR_ENV if the machine has no such device, if that cannot compute with the
 * type, or if CUDA's libraries are missing.
 *
 * With offload or a device all functions below may fail with ZERO_ERR_ENV, if a rank's
 * scratch file cannot be read or written or its device fails, ZERO_ERR_INTERNAL, if a
 * kernel of ours fails there, or ZERO_ERR_FORMAT, if the file has other bits than were
 * written. The states are undefined then: the trainer can only be closed. */
zero_status zero_trainer_open(const zero_trainer_spec *spec, zero_comm *comm,
                              zero_trainer **trainer);
/* Sets *trainer to NULL. Accepts NULL and the address of a NULL. To be called before
 * MPI_Finalize; later it frees memory alone. */
void zero_trainer_close(zero_trainer **trainer);

/* One update from the global batch: group size * accumulation * micro_batch
 * samples. A gradient or a loss that is not finite changes nothing and gives
 * ZERO_ERR_DIVERGED; the message says where it began. With fp16 it lowers the loss scale
 * and skips the step instead, unless the scale is at its minimum. ZERO_ERR_CORRUPTED,
 * before the update, if a check that is due finds a flipped bit: the message names rank,
 * tensor and elements.
 *
 * In a trainer's first step, units that leave results undefined (zero/model.h) are found:
 * ZERO_ERR_INVALID, naming unit and tensor. Nothing is updated after ZERO_ERR_INVALID;
 * units of a rank that was called wrongly see samples of zeros in such a step. */
zero_status zero_trainer_step(zero_trainer *trainer, const zero_source *source,
                              const zero_step_input *input, zero_step_result *result);

/* The same step without its update: the loss, with dropout, and the gradient's norm.
 * Parameters, moments and the loss scale stay. With fp16 a gradient that overflows sets
 * result->skipped. */
zero_status zero_trainer_compute(zero_trainer *trainer, const zero_source *source,
                                 int64_t step, zero_step_result *result);

/* Copies the gradient of a tensor, by name, to values[rows*cols] on every rank, fp32: of
 * the mean loss of the last step or compute, before clipping, without the loss scale,
 * rounded to the trainer's type. ZERO_ERR_INVALID if there is no such tensor, or no
 * gradient: before the first step, and after one that failed or was skipped.
 *
 * A model is checked by perturbation: compute, gradient; write w + h, compute; write w - h,
 * compute; write w. The losses' difference by 2 h is near the gradient, in every stage. */
zero_status zero_trainer_gradient(zero_trainer *trainer, const char *tensor, float *values);

/* Mean loss over samples 0, 1, ... of the source's step 0. Changes nothing. */
zero_status zero_trainer_evaluate(zero_trainer *trainer, const zero_source *source,
                                  double *loss);

/* Saves the state as `dir`/step-X, X being the next step, in the format of the program's
 * checkpoints: written by all ranks in parallel, synced, published by one rename. After
 * ZERO_OK the checkpoint survives any crash. All nodes must see the same `dir`, which is
 * created if missing; leftovers of crashed saves are removed, if they can be. If another
 * process is saving there, this waits for it, for 30 s at most. ZERO_ERR_ENV if that is not
 * enough, if something cannot be written, and then nothing of it stays, or if a rank sees
 * another `dir`; ZERO_ERR_INVALID if `dir` cannot be opened or created, or has this step
 * already; ZERO_ERR_CORRUPTED, before anything is written, if a check finds a flipped bit.
 * Older checkpoints are the caller's to remove, as whole directories. */
zero_status zero_trainer_save(zero_trainer *trainer, const char *dir, int64_t step);

/* Loads the newest checkpoint in `dir`, whatever stage, number of ranks or partition wrote
 * it, and checks every byte; *step is the next one. ZERO_ERR_IO if there is none or it
 * cannot be read, ZERO_ERR_FORMAT if it was changed since, ZERO_ERR_INVALID if it is of
 * another model: the trainer's state is then undefined. */
zero_status zero_trainer_resume(zero_trainer *trainer, const char *dir, int64_t *step);

/* 32 hexadecimal digits and a zero: XXH3-128 of all parameters (fp32 masters) and both
 * moments. Equal states have equal digests, in any stage and on any number of ranks. */
zero_status zero_trainer_digest(zero_trainer *trainer, char hex[33]);

/* Copies a tensor, by name, to values[rows*cols] on every rank: fp32, masters of 16-bit
 * types. ZERO_ERR_INVALID if there is no such tensor. */
zero_status zero_trainer_read(zero_trainer *trainer, const char *tensor, float *values);

/* Sets elements [begin, end) of a tensor, by name and row-major, to values[end - begin],
 * finite and equal on all ranks. Masters and the parameters made from them, in all places,
 * are consistent from the next call on; moments stay as they are, zeros before the first
 * step. So initial or pretrained weights are written right after opening. ZERO_ERR_INVALID
 * if there is no such tensor or range. */
zero_status zero_trainer_write(zero_trainer *trainer, const char *tensor, int64_t begin,
                               int64_t end, const float *values);

/* This rank's bytes, as planned before the first step and as counted since. */
typedef struct {
    /* Memory alive at once, so far: the device's, if there is one, else the host's. */
    size_t planned_peak, measured_peak;
    size_t states;                       /* model states in it, with padding: the table */
    int64_t planned_sent, measured_sent; /* gradients and parameters, since open */
    int64_t planned_received, measured_received;
} zero_trainer_ledger;

zero_status zero_trainer_count(zero_trainer *trainer, zero_trainer_ledger *ledger);

ZERO_API_END
