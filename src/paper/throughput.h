/* throughput.h - how fast a machine trains a model in the ZeRO paper's terms: a model of
 * time.
 *
 * N_m ranks share a replica of the model, N_d replicas share model states (memory.h). A
 * replica computes b samples of s positions per step, in 16 bits.
 *
 *     flops      F = 96 b s L h^2 (1 + s / 6h + V / 16 L h), recomputed products included;
 *                without checkpointing 72 b s L h^2 (1 + s / 6h + V / 12 L h). A replica's;
 *                / N_m each
 *     computing  F / (N_m R), R = peak * SHARE * b s / (b s + TOKENS): short products fill
 *                a device badly. Attention products of unaligned heads take longer.
 *     tensor     12 b s h elements sent per block (8 without checkpointing), P_a one b s h
 *                more, each times (N_m - 1) / N_m; they are awaited. On the link inside a
 *                node, or if N_m exceeds its devices on the node's link to the others.
 *     data       a reduce-scatter and an all-gather of Psi / N_m elements, each times
 *                (N_d - 1) / N_d; stage 3 gathers twice. min(N_m, devices) groups share a
 *                  node's
 *                link. With overlap the reduction hides under the backward pass, and stage
 *                  3's
 *                gathers under the pass that they serve; stages 1 and 2 gather after the
 *                  update.
 *     host       P_a+cpu: a rank's pieces of the checkpoints to the host and back, not
 *                hidden
 *     update     28 bytes of memory traffic per parameter that a device updates
 *
 * The parts follow each other. Every link is full duplex; elements have 2 bytes; a
 * message's latency is counted for tensor parallelism alone, where messages are many.
 * Sources: flops, Narayanan et al., arXiv:2104.04473, eq. 3; volumes, Rajbhandari et al.,
 * ZeRO, arXiv:1910.02054, sections 7 and 8. Form and numbers of R are a fit of ours
 * (machines/): a factor w / (w + COLUMNS) with the width per rank, w = h / N_m, explained
 * no more, so R has none. */
#pragma once

#include "paper/memory.h"
#include "report/machine_file.h"

typedef struct {
    double flops;                         /* of a device in a step */
    double compute, tensor, host, update; /* seconds */
    double data;                          /* seconds that are not hidden */
    double data_all;                      /* seconds of its links */
    double step;                          /* compute + tensor + data + host + update */
    double rate;                          /* flops / step, of a device */
} zero_throughput;

/* F: flops of a replica in a step. */
double zero_throughput_flops(const zero_paper_setup *setup);

/* A step in fp16, which the machine has; `overlaps`: of data-parallel messages with the
 * backward pass. */
zero_throughput zero_throughput_of(const zero_paper_setup *setup, bool overlaps,
                                   const zero_machine_file *machine);
