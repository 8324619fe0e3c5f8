/* memory.h - bytes that a configuration takes on a device, in the ZeRO paper's terms.
 *
 * The paper trains with 16-bit activations and Adam in mixed precision (K = 12), cuts the
 * model among N_m model-parallel ranks (Megatron), and shares model states among N_d
 * data-parallel ones. b samples of s positions go through a replica at a time; h hidden, L
 * layers, a heads, V words, Psi = zero_shape_count() parameters. A device then holds
 *
 *     states        zero_formula_state_bytes(Psi, N_d, stage) / N_m
 *     checkpoints   2 b s h L; P_a: / N_m; P_a+cpu: 0. Without checkpointing: 0
 *     activations   b s h (10 + 24 / N_m + 5 a s / (h N_m)): one block's, which is
 *                   recomputed; without checkpointing L times that
 *     logits        6 b s V / N_m: in 16 bits, and in fp32 for the loss
 *     buffers       C_B: 5e8 elements of 2 bytes; else a fused fp32 buffer, 4 Psi / N_m
 *
 * The whole input that P_a gathers before a block is recomputed is one of the block's
 * activations: 2 of the 10.
 *
 * They are added as if all were alive at once. Logits and a block's activations are not, so
 * the sum is too large by the smaller of them: 0.3 GB for the paper's 40 billions. What a
 * framework's allocator keeps beyond what is alive is not in these figures, so M_D, which
 * only saves that, has no counterpart in them.
 *
 * A GB is 1e9 bytes. Nothing here allocates, communicates or fails; the caller gives every
 * size >= 1 and an existing stage.
 * Sources: Rajbhandari et al., ZeRO, arXiv:1910.02054, sections 3, 5, 6 and table 3;
 * activations of a block: Korthikanti et al., arXiv:2205.05198, table 2; the size of the
 * constant buffer is not in the paper: 5e8 elements are DeepSpeed's standard bucket. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "zero/shape.h"

/* How the blocks' inputs are kept until backward needs them. */
typedef enum {
    ZERO_PAPER_KEEP_WHOLE,  /* every model-parallel rank keeps all of it */
    ZERO_PAPER_KEEP_PIECE,  /* P_a: a piece */
    ZERO_PAPER_KEEP_IN_CPU, /* P_a+cpu: a piece, in the host's memory */
} zero_paper_keep;

typedef struct {
    zero_shape shape;     /* layers, hidden, heads, seq and vocab are read */
    int model_parallel;   /* N_m */
    int n_ranks;          /* N_d; devices = N_m N_d */
    int64_t batch;        /* samples that a replica of the model computes at a time */
    int stage;            /* 0 to 3, as in sharding/stages.h */
    bool checkpoints;     /* blocks are recomputed from their inputs */
    zero_paper_keep keep; /* with checkpoints */
    bool fused_buffer;    /* false: C_B, a buffer of constant size */
} zero_paper_setup;

#define ZERO_PAPER_DEVICE 32e9 /* bytes of a V100, of which the paper had 400 */

/* Bytes that are taken of a device. */
typedef struct {
    double states, checkpoints, activations, logits, buffers, all;
} zero_paper_memory;

zero_paper_memory zero_paper_memory_of(const zero_paper_setup *setup);

/* The most samples, or layers, with which the setup needs no more than `bytes`;
 * setup->batch, or setup->shape.layers, is not read. 0 if not even one fits; at most
 * 2^20. */
int64_t zero_paper_largest_batch(const zero_paper_setup *setup, double bytes);
int64_t zero_paper_most_layers(const zero_paper_setup *setup, double bytes);
