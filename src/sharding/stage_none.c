/* Stage 0: plain data parallelism, the baseline that the other stages must equal bit by
 * bit.
 *
 * Every rank holds all parameters, gradients and optimizer states: 16 Psi bytes. A group's
 * gradient is all-reduced (reduce-scattered to its owners, then gathered) as soon as its
 * last contribution is there: 2 (N-1)/N Psi elements per rank and step. Then every rank
 * makes the same update.
 *
 *     ... BACKWARD 2, REDUCE 2, BACKWARD 1, REDUCE_WAIT 2, GATHER 2, REDUCE 1, BACKWARD 0,
 *       ...
 *     GATHER_WAIT of all, LOSS, NORM, OVERFLOW, UPDATE */
#include "sharding/writer.h"

/* A sum is whole when its GATHER has ended. An update during backward needs it soon. */
static void await_sum(zero_writer *w)
{
    bool is_early = w->in->offload == ZERO_OFFLOAD_BACKWARD;
    if (!is_early || w->summing < 0) return;
    if (!w->in->serial) zero_write_gather_wait(w, w->summing, w->groups[w->summing].grad);
    zero_write_gradient_is_final(w, w->summing);
    w->summing = -1;
}

/* The reduced pieces return to all ranks while the next group is computed. */
static void gather_sum(zero_writer *w)
{
    int g = w->ended.group;
    zero_write_round_sum(w);
    await_sum(w);
    w->summing = g;
    zero_write_gather(w, g, w->groups[g].grad, w->groups[g].grad);
}

static void wait_for_sums(zero_writer *w)
{
    const zero_schedule *s = w->s;
    bool is_early = s->input.offload == ZERO_OFFLOAD_BACKWARD;
    await_sum(w);
    for (int g = s->model->n_groups - 1; g >= 0 && !is_early; g--) {
        if (!s->groups[g].is_here) continue;
        if (!s->input.serial) zero_write_gather_wait(w, g, s->groups[g].grad);
        zero_write_gradient_is_final(w, g);
    }
}

static const zero_gradient_path all_reduced = {.deal = ZERO_DEAL_BLOCKS,
                                               .completed = zero_write_sum_whole,
                                               .reduced = gather_sum,
                                               .summed = wait_for_sums};

const zero_stage zero_stage_none = {.name = "none",
                                    .words = "nothing",
                                    .parameters = ZERO_HOLD_WHOLE,
                                    .gradients = ZERO_HOLD_WHOLE,
                                    .optimizer = ZERO_HOLD_WHOLE,
                                    .path = &all_reduced};
