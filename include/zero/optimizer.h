/* optimizer.h - the sharded optimizer alone, for programs with a training loop of their
 * own.
 *
 * As in plain data parallelism, every rank has all parameters and its own gradients, in two
 * flat arrays; the optimizer's states are sharded over the N ranks (stage 1, P_os):
 *
 *     grads   --reduce-scatter-->   this rank's part of the sum   --norm, clip, update-->
 *     this rank's part of params   --all-gather-->   params
 *
 * A step moves 2 (N-1)/N n elements per rank, in place: neither array is copied. For equal
 * gradients it has the bits of the trainer (zero/train.h) with a model of one group.
 *
 *     0               S              2S     ...      N*S              n
 *     |    rank 0     |    rank 1    |      ...       | the rest: up to 64 elements per
 *                                                     rank |
 *
 * Memory per rank beyond the program's arrays, with S = 64 floor(n / 64N): 8 (S + 64) bytes
 * of AdamW's states (the others have half of them), with 16-bit types 4 (S + 64) more of
 * fp32 masters, so about 12 n/N (fp32: 8 n/N); some 4 MiB to stage messages (up to 8192
 * ranks; "mpi": S elements); and 128 N elements for the rest.
 *
 * It computes on the host, in the program's arrays: there is no device, unlike in
 * zero/train.h.
 *
 * Functions are collective over the optimizer's group and block, unless they say otherwise.
 * All ranks call them in the same order, with equal arguments except for the arrays, and
 * get the same status. Lengths count elements.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5.1; Loshchilov & Hutter
 * 2019, arXiv:1711.05101, algorithm 2 (AdamW), eps outside the square root, after bias
 * correction. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "zero/comm.h"
#include "zero/range.h"
#include "zero/status.h"
#include "zero/type.h"

ZERO_API_BEGIN

typedef struct zero_optimizer zero_optimizer;

/* 0 or NULL stands for the default in brackets. */
typedef struct {
    int64_t n_params; /* n, at least 1 */
    zero_type type;   /* of both arrays [fp32] */
    /* [n_no_decay] ranges without weight decay (gains and biases): sorted, disjoint;
     * copied */
    const zero_range *no_decay;
    int n_no_decay;
    /* "p2p", "mpi" [p2p]; "shm" and "hier" cannot work in the program's arrays */
    const char *collectives;
    const char *optimizer; /* "adamw", "lion", "sgd" [adamw] */
    /* Updates already made, if an earlier optimizer's state is restored; <= 2^62. */
    int64_t updates;
} zero_optimizer_spec;

/* lr, weight_decay, clip >= 0; 0 <= beta1, beta2 < 1; eps > 0. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    double clip; /* largest norm of the gradient; 0: no clipping */
    /* > 0, divides the sum of the ranks' gradients: their loss scale, times N if each
     * rank's gradients are a mean over its own samples */
    double divisor;
} zero_optimizer_input;

typedef struct {
    double grad_norm; /* over all ranks, divided, before clipping */
    bool overflow;    /* a sum was not finite: no rank updated anything */
} zero_optimizer_result;

/* params[n]: the initial parameters, equal on all ranks; masters of 16-bit types are made
 * from them. The caller closes *optimizer, which keeps the group from ending.
 * ZERO_ERR_INVALID for NULL, and if the spec is out of range, or the spec or params differ
 * from rank 0's; ZERO_ERR_UNSUPPORTED for "shm" and "hier"; ZERO_ERR_NOMEM. */
zero_status zero_optimizer_open(const zero_optimizer_spec *spec, zero_comm *comm,
                                const void *params, zero_optimizer **optimizer);
/* Sets *optimizer to NULL. Collective if its group was closed before, else local. Accepts
 * NULL and the address of a NULL. */
void zero_optimizer_close(zero_optimizer **optimizer);

/* Updates params[n], unless there is an overflow. grads[n] serve as workspace: their
 * contents are undefined afterwards. Either array may lie anywhere in memory, but they do
 * not overlap. ZERO_ERR_INVALID on all ranks, and nothing is touched, if one rank was given
 * NULL, arrays that overlap, a number out of range, or another input than rank 0. */
zero_status zero_optimizer_step(zero_optimizer *optimizer, void *params, void *grads,
                                const zero_optimizer_input *input,
                                zero_optimizer_result *result);

/* This rank's states, for the program's checkpoints: elements `span` of the flat space,
 * owned by the optimizer. In fp32 the parameters are the masters, and `master` is NULL;
 * only AdamW has a variance. */
typedef struct {
    zero_range span;
    float *master, *momentum, *variance;
} zero_optimizer_part;

/* Both parts of this rank, one of which may be empty. Writing there restores a state; the
 * program restores the parameters itself. Of NULL both are empty. Local. */
void zero_optimizer_parts(const zero_optimizer *optimizer, zero_optimizer_part parts[2]);
/* Updates made, including the spec's; of NULL -1. Local. */
int64_t zero_optimizer_count(const zero_optimizer *optimizer);

ZERO_API_END
