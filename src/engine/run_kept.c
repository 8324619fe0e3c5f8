/* KEEP, COLLECT and COLLECT_WAIT: all ranks of a TP group have the same output. Each keeps a piece of
 * it, and they gather the pieces before the output is read again (writer_kept.c).
 *
 * A COLLECT is in flight while the pass of another unit computes, and beside that pass's JOINs. No
 * JOIN is in flight where it begins, so all ranks of the group begin their collectives in the same
 * order. */
#include "base/fail.h"
#include "engine/walk.h"

zero_status zero_run_keep(zero_walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    const float *own = zero_use_element(w, i->in, i->range.begin);
    float *kept = zero_use_element(w, i->buffer, i->range.begin);
    r->backend->round(&r->math, ZERO_FP32, zero_range_len(i->range), own, kept);
    return ZERO_OK;
}

static zero_collective *op_of(const zero_walk *w, const zero_instruction *i)
{
    return &w->r->joins[i->join].ops[0];
}

zero_status zero_run_collect(zero_walk *w, const zero_instruction *i)
{
    ZERO_TRY(w->r->backend->sync(&w->r->math)); /* other ranks read what it wrote */
    op_of(w, i)->label = zero_walk_label(w, i);
    return zero_collective_begin(op_of(w, i), zero_use_element(w, i->in, i->range.begin),
                                 zero_use(w, i->buffer), zero_use(w, i->staging));
}

zero_status zero_run_collect_wait(zero_walk *w, const zero_instruction *i)
{
    ZERO_TRY(w->r->poll_status);
    ZERO_TRY(zero_collective_wait(op_of(w, i)));
    zero_use(w, i->in);
    zero_use(w, i->buffer);
    zero_use(w, i->staging);
    return ZERO_OK;
}
