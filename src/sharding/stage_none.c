/* Stage 0: plain data parallelism, the baseline that the other stages must equal bit by bit.
 *
 * Every rank holds all parameters, gradients and optimizer states: 16 Psi bytes. The gradient
 * of a group is all-reduced, as a reduce-scatter to its owners and an all-gather, as soon as
 * its last contribution is there: 2 (N-1)/N Psi elements per rank and step. Then every rank
 * makes the same update.
 *
 *     ... BACKWARD 2, REDUCE 2, BACKWARD 1, REDUCE_WAIT 2, GATHER 2, REDUCE 1, BACKWARD 0, ...
 *     GATHER_WAIT of all, LOSS, NORM, OVERFLOW, UPDATE */
#include "sharding/compile.h"

/* The reduced pieces go back to everyone while the next group is computed. */
static void gather_sum(zero_writer *w)
{
    int g = w->reducing.group;
    zero_write_round_sum(w);
    zero_write_gather(w, g, w->s->groups[g].grad, w->s->groups[g].grad);
}

static void write_microbatch(zero_writer *w, int m)
{
    const zero_model *model = w->s->input.model;
    zero_write_load(w, m);
    for (int u = 0; u < model->n_units; u++) zero_write_forward(w, u);
    for (int u = model->n_units - 1; u >= 0; u--) {
        zero_write_backward(w, u);
        for (int k = 0; k < model->units[u].n_groups; k++) {
            int g = zero_write_completes(w, u, k);
            if (g >= 0) zero_write_sum_whole(w, g);
        }
    }
}

static void write_step(zero_schedule *s)
{
    zero_writer w;
    if (!zero_writer_open(&w, s, ZERO_PROGRAM_STEP, ZERO_DEAL_BLOCKS)) return;
    w.after_reduce = gather_sum;
    for (int m = 0; m < s->input.accumulation; m++) write_microbatch(&w, m);
    zero_write_finish_reduce(&w);
    for (int g = s->input.model->n_groups - 1; g >= 0 && !s->input.no_overlap; g--)
        zero_write_gather_wait(&w, g, s->groups[g].grad);
    zero_write_update(&w);
    zero_writer_close(&w);
}

void zero_stage_none_compile(zero_schedule *s)
{
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_compile_own_parameters(s, g);
        zero_compile_gradients(s, g, ZERO_HOLD_WHOLE, true);
        zero_compile_optimizer(s, g, ZERO_HOLD_WHOLE);
    }
    write_step(s);
    zero_compile_forward_programs(s);
    zero_compile_ends(s);
}
