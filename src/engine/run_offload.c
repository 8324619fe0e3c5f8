/* Transfers between memory and the file, and the stream of optimizer states, which runs
 * ahead. Beside a device UPDATE and STORE_PARAM of states in the host's memory are a
 * stream, too.
 *
 * The stream's instructions depend on each other, on one instruction of the walk
 * (`after`), and on nothing else: slots and parameters live for the whole run, and
 * UPDATE stands before the first use of its group. So they need not wait until the walk
 * arrives. Polls during arithmetic execute them, in their order, as far as transfers
 * have ended. The walk waits only for what is still missing when it arrives. This moves
 * work in time and changes no number. */
#include <time.h>

#include "base/clock.h"
#include "engine/walk.h"
#include "state/host_copies.h"

/* ---- transfers ---- */

/* States move only for an update. */
zero_status zero_run_transfer(zero_walk *w, const zero_instruction *i)
{
    const zero_op_row *row = &zero_ops[i->op];
    zero_file_part part;
    if (row->moves == ZERO_MOVES_STATES && !w->update.is_due) return ZERO_OK;
    char *memory = zero_use(w, i->buffer);
    w->r->tier.label = zero_walk_label(w, i);
    for (int k = 0; zero_offload_part(w->r->schedule, i, k, &part); k++)
        zero_tier_begin(&w->r->tier, row->moves, part.file, row->writes, memory + part.at);
    return ZERO_OK;
}

/* Collectives progress while the disk works: other ranks may need them to get on. */
static void rest(const zero_walk *w)
{
    const struct timespec moment = {.tv_nsec = 20000};
    zero_math_poll(&w->r->math);
    nanosleep(&moment, NULL);
}

zero_status zero_run_transfer_wait(zero_walk *w, const zero_instruction *i)
{
    zero_file_part part;
    zero_use(w, i->buffer);
    for (int k = 0; zero_offload_part(w->r->schedule, i, k, &part); k++) {
        zero_tier *t = &w->r->tier;
        while (!zero_tier_has_ended(t, part.file)) rest(w);
        zero_tier_end(t, part.file);
    }
    return ZERO_OK;
}

/* False while a thread has yet to read the group's states, which UPDATE changes. */
static bool zero_run_may_change(const zero_walk *w, int group)
{
    const zero_states_reader *reader = &w->r->reader;
    return !reader->has_read || reader->has_read(reader->arg, group);
}

void zero_run_await_reader(zero_walk *w, int group)
{
    if (zero_run_may_change(w, group)) return;
    double start = zero_clock_seconds();
    while (!zero_run_may_change(w, group)) rest(w);
    w->r->profile.held += zero_clock_seconds() - start;
}

/* ---- ahead of the walk ---- */

/* The stream's next instruction, at w->ahead; NULL if there is none. */
static const zero_instruction *find_next(zero_walk *w)
{
    const zero_program *p = &w->r->schedule->programs[w->in->program];
    for (; w->ahead < p->length; w->ahead++)
        if (zero_offload_is_of_stream(&p->code[w->ahead])) return &p->code[w->ahead];
    return NULL;
}

static bool is_ready(const zero_walk *w, const zero_instruction *i)
{
    zero_file_part part;
    if (i->after >= w->r->at) return false;
    switch (i->op) {
        /* With `lazy` the walk itself updates while a device executes what was queued
         * before. Its calls poll as they are queued: an update there would keep the next
         * call from the device. */
    case ZERO_OP_UPDATE:
        if (!zero_run_may_change(w, i->group)) return false;
        return !i->on_host || (w->plan->offload != ZERO_OFFLOAD_LAZY &&
                               zero_host_may_update(w->r, i->group));
    case ZERO_OP_FETCH_WAIT:
    case ZERO_OP_STORE_WAIT:
        for (int k = 0; zero_offload_part(w->r->schedule, i, k, &part); k++)
            if (!zero_tier_has_ended(&w->r->tier, part.file)) return false;
        return true;
    default: return true;
    }
}

/* One update at a time, so that collectives are polled in between. */
void zero_run_ahead(zero_walk *w)
{
    zero_runner *r = w->r;
    bool has_updated = false;
    if (w->is_in_stream || !w->update.is_due || w->plan->offload == ZERO_OFFLOAD_OFF)
        return;
    if (r->told) return; /* events are told in the order of the program */
    w->is_in_stream = true;
    double start = zero_clock_seconds(), begun = start;
    while (!has_updated && r->poll_status == ZERO_OK) {
        const zero_instruction *i = find_next(w);
        if (!i || !is_ready(w, i)) break;
        r->poll_status = zero_executes[i->op](w, i);
        has_updated = i->op == ZERO_OP_UPDATE;
        w->ahead++;
        double end = zero_clock_seconds();
        zero_profile_add(&r->profile, w->in->program, i,
                         (zero_profile_entry){
                             .count = 1, .seconds = r->times.watch ? 0.0 : end - start});
        zero_trace_note(r->trace, w->in->program, w->ahead - 1, true, start, end);
        start = end;
    }
    r->streamed += start - begun;
    w->is_in_stream = false;
}

bool zero_run_was_ahead(zero_walk *w, const zero_instruction *i)
{
    w->is_in_stream = zero_offload_is_of_stream(i);
    bool is_done = w->is_in_stream && w->r->at < w->ahead;
    if (w->ahead <= w->r->at) w->ahead = w->r->at + 1;
    return is_done;
}

/* ---- beside a device ---- */

/* A gradient comes to the host. */
zero_status zero_run_fetch_grad(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    zero_link_fetch(&r->link, zero_use_range(w, i, i->host), zero_use_range(w, i, i->in),
                    zero_range_bytes(i->range, r->schedule->input.type),
                    &r->grad_copies[i->group]);
    return ZERO_OK;
}

/* New parameters return to the device. Does nothing where UPDATE left the masters as
 * they are. */
zero_status zero_run_store_param(zero_walk *w, const zero_instruction *i)
{
    zero_use(w, i->host);
    zero_use(w, i->buffer);
    if (w->update.is_due) zero_host_store(w->r, i->group, w->begin);
    return ZERO_OK;
}
