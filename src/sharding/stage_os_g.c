/* Stage 2, P_os+g: of gradients, too, each rank keeps its own pieces alone.
 *
 *     16-bit types   2 Psi + 14 Psi/N_d bytes          fp32   4 Psi + 12 Psi/N_d
 *
 * A group's whole gradient lives from its BACKWARD until it has been reduced to its owners;
 * with M microbatches that happens M times, so (M+1) (N-1)/N Psi elements move per rank and
 * step, as many as in stage 1 for M = 1. Sections 5.2 and 7.2.1 of the paper.
 *
 *     ... BACKWARD 2, REDUCE 2, BACKWARD 1, REDUCE_WAIT 2, REDUCE 1, ...     the gradient of
 *     LOSS, NORM, OVERFLOW, UPDATE 0, GATHER 0, ...                     2 ends with its wait */
#include "sharding/writer.h"

void zero_stage_os_g_compile(zero_schedule *s)
{
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_hold_parameters(s, g, ZERO_HOLD_WHOLE);
        zero_hold_gradients(s, g, ZERO_HOLD_PIECE, false);
        zero_hold_optimizer(s, g, ZERO_HOLD_PIECE);
    }
    zero_write_programs(s, &zero_gradient_in_pieces);
}
