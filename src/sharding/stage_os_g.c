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
#include "sharding/compile.h"

static void write_microbatch(zero_writer *w, int m)
{
    const zero_model *model = w->s->input.model;
    zero_write_load(w, m);
    for (int u = 0; u < model->n_units; u++) zero_write_forward(w, u);
    for (int u = model->n_units - 1; u >= 0; u--) {
        zero_write_backward(w, u);
        for (int k = 0; k < model->units[u].n_groups; k++) {
            int g = zero_write_completes(w, u, k);
            if (g >= 0) zero_write_reduce_leaf(w, g);
        }
    }
}

static void write_step(zero_schedule *s)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_STEP, ZERO_DEAL_ROUND)) return;
    w.after_reduce = zero_write_sum_pieces;
    for (int m = 0; m < s->input.accumulation; m++) write_microbatch(&w, m);
    zero_write_finish_reduce(&w);
    zero_write_update(&w);
    zero_writer_close(&w);
}

void zero_stage_os_g_compile(zero_schedule *s)
{
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_compile_parameters(s, g, ZERO_HOLD_WHOLE);
        zero_compile_gradients(s, g, ZERO_HOLD_PIECE, false);
        zero_compile_optimizer(s, g, ZERO_HOLD_PIECE);
    }
    write_step(s);
    zero_compile_forward_programs(s);
    zero_compile_ends(s);
}
