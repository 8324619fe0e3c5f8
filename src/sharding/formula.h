/* formula.h - the paper's arithmetic: what a stage keeps and what it moves, in closed form.
 *
 * Bytes of model states per rank under Adam; Psi parameters, N ranks. What a stage holds in pieces
 * (stages.h) is divided by N:
 *
 *     stage          0        1 (P_os)           2 (P_os+g)         3 (P_os+g+p)
 *     bf16, fp16     16 Psi   4 Psi + 12 Psi/N   2 Psi + 14 Psi/N   16 Psi/N
 *     fp32           16 Psi   8 Psi +  8 Psi/N   4 Psi + 12 Psi/N   16 Psi/N
 *
 * With 16 bits a parameter costs 2 bytes, its gradient 2, and the optimizer 12 (the paper's
 * K): fp32 master weight, momentum and variance. In fp32 the parameter is its own master: 4,
 * 4 and 8. Padding, buckets, accumulators and activations come on top; a schedule's ledger
 * has them all.
 *
 * Elements that a rank sends, and the same number that it receives, per optimizer step with M
 * microbatches per rank; a ring, pairs or shared memory move the same:
 *
 *     stage 0, 1     2 (N-1)/N Psi       reduce-scatter once, all-gather once
 *     stage 2        (M+1) (N-1)/N Psi   reduces every microbatch
 *     stage 3        3 M (N-1)/N Psi     gathers for each forward and each backward as well
 *
 * The paper says 2 Psi and 3 Psi, its limit for many ranks and M = 1. Parameters that stay between
 * forward and backward need not be gathered again: for stage 3 the formula is a bound.
 *
 * Results are correct to a few roundings of a double. With tensor parallelism over N_m ranks
 * give Psi/N_m. Nothing here fails; the caller gives n_ranks >= 1, psi >= 0, microbatches >= 1 and
 * an existing stage.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5, figure 1 (states) and
 * section 7 (volume). */
#pragma once

#include <stdint.h>

#include "base/half.h"

double zero_formula_state_bytes(int64_t psi, int n_ranks, int stage, zero_type type);

/* Bytes of the parameters alone: all that a model keeps that only evaluates and generates. */
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
