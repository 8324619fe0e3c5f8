/* Stage 2, P_os+g: each rank keeps the gradients of its own pieces only, too.
 *
 *     16-bit types   2 Psi + 14 Psi/N_d bytes          fp32   4 Psi + 12 Psi/N_d
 *
 * A group's whole gradient lives from its BACKWARD until it has been reduced to its owners.
 * With M microbatches that happens M times: (M+1) (N-1)/N Psi elements per rank and step,
 * for M = 1 as many as in stage 1. Sections 5.2 and 7.2.1 of the paper.
 *
 *     ... BACKWARD 2, REDUCE 2, BACKWARD 1, REDUCE_WAIT 2, REDUCE 1, NORM 2, ...   the gradient
 *     LOSS, OVERFLOW, UPDATE 0, GATHER 0, ...                          of 2 ends with its
 * wait */
#include "sharding/writer.h"

const zero_stage zero_stage_os_g = {.name = "P_os+g",
                                    .words = "+ gradients",
                                    .parameters = ZERO_HOLD_WHOLE,
                                    .gradients = ZERO_HOLD_PIECE,
                                    .optimizer = ZERO_HOLD_PIECE,
                                    .path = &zero_gradient_in_pieces};
