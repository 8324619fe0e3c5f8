/* Outputs in pieces: of w->rank, whose TP group does the same. */
#include "support/shadow_ops.h"

/* This rank's piece of an output; and the output, once all have brought theirs. */
static const term cut = 0x5bd1e995a3c59ac2u;

static const zero_buffer *buffer_of(const shadow *w, int id)
{
    return &shadow_plan(w)->buffers[id];
}

static int64_t floats_of(const shadow *w, int u)
{
    const zero_plan_input *in = &shadow_plan(w)->input;
    const zero_unit *unit = &in->model->units[u];
    return unit->sizes(unit, in->micro_batch, in->seq).out;
}

void shadow_keep(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_share *share = &shadow_plan(w)->input.model->share;
    const zero_buffer *kept = buffer_of(w, i->buffer);
    int64_t all = floats_of(w, i->unit), n = all / share->ranks;
    shadow_expect(w, i->range.begin == n * share->rank && zero_range_len(i->range) == n);
    shadow_expect(w, kept->begin == 0 || kept->begin == i->range.begin);
    shadow_expect(w, (size_t)(i->range.end - kept->begin) * sizeof(float) <= kept->bytes);
    term whole = shadow_read(w, i->in, (size_t)all * sizeof(float));
    shadow_write(w, i->buffer, kept->bytes, whole ^ cut);
}

void shadow_collect(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_schedule *s = shadow_plan(w);
    shadow_joining *collecting = &w->collecting[w->rank];
    shadow_expect(w, collecting->begun.join < 0 && w->joining[w->rank].begun.join < 0);
    shadow_expect(w, i->join >= 0 && i->join < s->n_joins && s->joins[i->join].collects);
    *collecting = (shadow_joining){*i, shadow_lock_plain(w, i->in) ^ cut};
    if (i->in != i->buffer)
        shadow_lock_staging(w, i->buffer, buffer_of(w, i->buffer)->bytes);
    if (i->staging != ZERO_NO_BUFFER)
        shadow_lock_staging(w, i->staging, buffer_of(w, i->staging)->bytes);
}

void shadow_collect_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_joining *collecting = &w->collecting[w->rank];
    const zero_instruction *begun = &collecting->begun;
    shadow_expect(w, begun->join >= 0 && begun->join == i->join);
    shadow_expect(w, begun->in == i->in && begun->buffer == i->buffer &&
                         begun->staging == i->staging);
    shadow_unlock_plain(w, i->in);
    if (i->in != i->buffer) shadow_unlock_staging(w, i->buffer);
    shadow_unlock_staging(w, i->staging);
    shadow_write(w, i->buffer, (size_t)floats_of(w, i->unit) * sizeof(float),
                 collecting->value);
    collecting->begun.join = -1;
}
