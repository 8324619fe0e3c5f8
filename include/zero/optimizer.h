/* optimizer.h - the sharded optimizer alone, for programs with a training loop of their own.
 *
 * The program has all parameters and its own gradients in two flat arrays on every rank, as in
 * plain data parallelism; AdamW's states are cut over the N ranks (stage 1, P_os). A step is
 *
 *     grads   --reduce-scatter-->   own part of the sum   --norm, clip, AdamW-->
 *     own part of params   --all-gather-->   params
 *
 * and moves 2 (N-1)/N n elements per rank, in place: no copy of either array is made. For equal
 * gradients it has the bits of the trainer (zero/train.h) with a model of one group.
 *
 *     0               S              2S     ...      N*S              n
 *     |    rank 0     |    rank 1    |      ...       | the rest: up to 64 elements per rank |
 *
 * Memory of this rank besides the program's arrays, S = 64 floor(n / 64N): 8 (S + 64) bytes of
 * moments, with 16-bit types 4 (S + 64) more of fp32 masters, so 12 n/N (8 n/N) and a little;
 * some 4 MiB that messages stage (up to 8192 ranks; "mpi": S elements); and 128 N elements for
 * the rest.
 *
 * Functions are collective over the optimizer's group and block, unless they say otherwise; all
 * ranks call them in the same order with equal arguments but for the arrays, and get the same
 * status. Lengths count elements.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5.1; Loshchilov & Hutter 2019,
 * arXiv:1711.05101, algorithm 2 (AdamW), eps outside the square root, after bias correction. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "zero/comm.h"
#include "zero/range.h"
#include "zero/status.h"
#include "zero/type.h"

typedef struct zero_optimizer zero_optimizer;

/* What is 0 or NULL takes the value in brackets. */
typedef struct {
    int64_t n_params;           /* n, at least 1 */
    zero_type type;             /* of both arrays [fp32] */
    const zero_range *no_decay; /* [n_no_decay]: where weight decay does not act (gains and
                                  biases), sorted, apart from each other; copied */
    int n_no_decay;
    const char
        *collectives; /* "p2p", "mpi"; those that need shared memory cannot work on the
                                program's arrays [p2p] */
    int64_t updates;  /* made before, by an optimizer whose state will be restored */
} zero_optimizer_spec;

/* lr, weight_decay, clip >= 0; 0 <= beta1, beta2 < 1; eps > 0. The sum of the gradients over
 * ranks is divided by `divisor` > 0: by the loss scale that they were computed with, and by N
 * if each rank's are a mean over samples of its own. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    double clip; /* largest norm of the gradient; 0: no clipping */
    double divisor;
} zero_optimizer_input;

typedef struct {
    double grad_norm; /* over all ranks, divided, before clipping */
    bool overflow;    /* a sum was not finite: nothing was updated, on any rank */
} zero_optimizer_result;

/* params[n]: the initial parameters, equal on all ranks; 16-bit types' masters are made from
 * them. *optimizer is the caller's, to be closed; the group is borrowed until then.
 * ZERO_ERR_INVALID for a spec that is out of range or not that of rank 0; ZERO_ERR_UNSUPPORTED
 * for collectives that cannot; ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_optimizer_open(const zero_optimizer_spec *spec,
                                               zero_comm *comm, const void *params,
                                               zero_optimizer **optimizer);
/* Accepts NULL. Local. */
void zero_optimizer_close(zero_optimizer *optimizer);

/* params[n] are updated, unless there is an overflow. grads[n], of any place in memory, serve
 * as workspace: afterwards their contents are undefined. The arrays do not overlap. */
ZERO_NODISCARD zero_status zero_optimizer_step(zero_optimizer *optimizer, void *params,
                                               void *grads,
                                               const zero_optimizer_input *input,
                                               zero_optimizer_result *result);

/* What this rank holds, for the program's checkpoints: two parts, one of which may be empty,
 * each with elements [begin, end) of the flat space. Writing there restores a state; parameters
 * are the program's to restore. In fp32 they are the masters, and `master` is NULL. The optimizer
 * owns all. Local. */
typedef struct {
    zero_range span;
    float *master, *momentum, *variance;
} zero_optimizer_part;

void zero_optimizer_parts(const zero_optimizer *optimizer, zero_optimizer_part parts[2]);
/* Updates made, those before it among them: Adam's t. Local. */
int64_t zero_optimizer_count(const zero_optimizer *optimizer);
