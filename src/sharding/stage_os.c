/* Stage 1, P_os: each rank keeps the optimizer states of its own pieces only.
 *
 *     16-bit types   4 Psi + 12 Psi/N_d bytes          fp32   8 Psi + 8 Psi/N_d
 *
 * Gradients are reduce-scattered: a rank needs the sum of its own pieces only. It updates
 * those, and the parameters are gathered while the next step's forward pass runs: again 2
 * (N-1)/N Psi elements per rank and step. Section 5.1 of the paper.
 *
 *     GATHER_WAIT 0, FORWARD 0, GATHER_WAIT 1, FORWARD 1, ...
 *     ... BACKWARD 2, REDUCE 2, BACKWARD 1, REDUCE_WAIT 2, REDUCE 1, NORM 2, ...
 *     LOSS, OVERFLOW, UPDATE 0, GATHER 0, UPDATE 1, GATHER 1, ... */
#include "sharding/writer.h"

static void finish_sum(zero_writer *w)
{
    zero_write_round_sum(w);
    zero_write_gradient_is_final(w, w->ended.group);
}

static const zero_gradient_path reduced_once = {
    .deal = ZERO_DEAL_BLOCKS, .completed = zero_write_sum_whole, .reduced = finish_sum};

const zero_stage zero_stage_os = {.name = "P_os",
                                  .words = "optimizer states",
                                  .parameters = ZERO_HOLD_WHOLE,
                                  .gradients = ZERO_HOLD_WHOLE,
                                  .optimizer = ZERO_HOLD_PIECE,
                                  .path = &reduced_once};
