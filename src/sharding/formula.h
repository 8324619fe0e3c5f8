/* formula.h - the paper's arithmetic: what a stage keeps and what it moves, in closed form.
 *
 * Bytes of model states per rank under Adam; Psi parameters, N ranks. What a stage holds in
 * pieces (stages.h) is divided by N:
 *
 *     stage          0        1 (P_os)           2 (P_os+g)         3 (P_os+g+p)
 *     bf16, fp16     16 Psi   4 Psi + 12 Psi/N   2 Psi + 14 Psi/N   16 Psi/N
 *     fp32           16 Psi   8 Psi +  8 Psi/N   4 Psi + 12 Psi/N   16 Psi/N
 *
 * With 16 bits a parameter costs 2 bytes, its gradient 2, and the optimizer 12 (the paper's
 * K): fp32 master weight, momentum and variance. In fp32 the parameter is its own master:
 * 4, 4 and 8. Padding, buckets, accumulators and activations come on top; a schedule's
 * ledger has them all.
 *
 * Elements that a rank sends, and the same number that it receives, per optimizer step with
 * M microbatches per rank; a ring, pairs or shared memory move the same:
 *
 *     stage 0, 1     2 (N-1)/N Psi       reduce-scatter once, all-gather once
 *     stage 2        (M+1) (N-1)/N Psi   reduces every microbatch
 *     stage 3        3 M (N-1)/N Psi     gathers for each forward and each backward as well
 *
 * The paper says 2 Psi and 3 Psi, its limit for many ranks and M = 1. Parameters that stay
 * between forward and backward need not be gathered again: for stage 3 the formula is a
 * bound. With parameters that stay in node memory for the whole step it is (M+1) (N-1)/N
 * Psi, exactly.
 *
 * With hybrid sharding over R of N ranks, R stands for N in all of the above. K = N/R
 * replicas add their sums, as often as groups are reduced: 2 (K-1)/K Psi/R elements each
 * time, always fp32.
 *
 * With tensor parallelism over T ranks (the paper's N_m) psi is a rank's part of the model:
 * Psi/T, if one counts what all ranks have as cut. Its exchanges are sums and gathers of
 * activations; b*s*h elements are the output of a block of h channels for b samples of s
 * positions. All-reduces of them, per block and microbatch:
 *
 *                          forward   again       backward   elements sent by each rank
 *     ours, once           2         -           2          8 b*s*h (T-1)/T
 *     ours, again          2         1           2          10 b*s*h (T-1)/T
 *     Megatron, the paper  2         2           2          12 b*s*h (T-1)/T
 *
 * Ours leaves out the recomputation of the last product: its result is known. Beside the
 * blocks, the embedding is one such sum and the head another one, of d(its input), in all
 * the same bytes however it is cut in chunks of rows; the head also gathers a few floats
 * per row (zero_formula_tp_gathered). Through a node's memory the same bytes are read by
 * neighbours, as in GATHER and REDUCE, although the sum lies once on the node and is not
 * copied.
 *
 * With P_a each rank keeps 1/T of a block's input. One more all-gather per block makes it
 * whole again: half an all-reduce, so 1/10 of our volume and 1/12 of the paper's.
 *
 * Results are correct to a few roundings of a double. Nothing here fails; the caller gives
 * n_ranks >= 1, psi >= 0, microbatches >= 1 and an existing stage.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5, figure 1 (states),
 * section 7 (volume) and section 8 (all-reduces of model parallelism); Shoeybi et al.,
 * Megatron-LM, arXiv:1909.08053, section 3. */
#pragma once

#include <stdbool.h>

#include "base/half.h"

double zero_formula_state_bytes(int64_t psi, int n_ranks, int stage, zero_type type);
/* The same of an optimizer that keeps that many fp32 numbers per parameter, on average,
 * beside the master: Adam 2. */
double zero_formula_bytes_of(int64_t psi, int n_ranks, int stage, zero_type type,
                             double states);

/* Bytes of the parameters alone: all that a model keeps that only evaluates and
 * generates. */
double zero_formula_parameter_bytes(int64_t psi, int n_ranks, int stage, zero_type type);

/* The most parameters whose model states fit `bytes` >= 0 on every rank; at most 2^62, as
 * many as a partition holds. */
int64_t zero_formula_largest_model(double bytes, int n_ranks, int stage, zero_type type);

/* The number of times that a step reduces and gathers each group. */
double zero_formula_reductions(int stage, int64_t microbatches);
double zero_formula_gathers(int stage, int64_t microbatches);

/* Elements sent per rank and step. For what our own collectives move, psi is the sum of the
 * groups with their padding. */
double zero_formula_volume(int64_t psi, int n_ranks, int stage, int64_t microbatches);

/* Elements sent per rank by one reduce-scatter, or one all-gather, of psi elements. With
 * P_a one all-gather makes an output whole again, for each block and microbatch. */
double zero_formula_exchanged(int64_t psi, int n_ranks);
/* Elements sent per rank when replicas add their sums of psi elements, once. Each sum is
 * cut over shard_ranks. */
double zero_formula_all_reduced(int64_t psi, int shard_ranks, int replicas);

/* The all-reduces of a block per microbatch: ours, and Megatron's. */
int zero_formula_tp_sums(bool again);
int zero_formula_tp_sums_of_paper(bool again);
/* Elements sent per rank by `sums` all-reduces of that many elements among n_ranks of a TP
 * group, by messages. elements, sums >= 0, n_ranks >= 1. */
double zero_formula_tp_volume(int64_t elements, int64_t sums, int n_ranks);
/* Elements sent per rank by a gather to which each rank gives that many. */
double zero_formula_tp_gathered(int64_t elements, int n_ranks);
