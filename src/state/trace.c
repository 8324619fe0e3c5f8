#include "state/trace.h"

#include "base/clock.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"

/* ---- sizes ---- */

static int64_t count_flights(const zero_schedule *s, const zero_instruction *i)
{
    if (zero_ops[i->op].kind != ZERO_WORK_EXCHANGE) return 0;
    return zero_exchange_collectives(s, i->op, zero_exchange_number(i));
}

static void add_program(const zero_schedule *s, zero_program_kind kind,
                        zero_trace_size *size)
{
    const zero_program *p = &s->programs[kind];
    size->spans += p->length;
    for (int at = 0; at < p->length; at++) {
        size->flights += count_flights(s, &p->code[at]);
        zero_file_traffic moved = zero_offload_moved(s, &p->code[at]);
        size->transfers += (int64_t)(moved.reads + moved.writes);
    }
}

/* Slots of the rings: what was in flight when the oldest step began ends in it, and
 * takes the room of one more step. */
static int64_t slots(const zero_trace_window *w)
{
    return w->keeps + 2;
}

zero_trace_size zero_trace_measure(const zero_schedule *s, const zero_trace_window *window)
{
    zero_trace_size size = {0};
    add_program(s, ZERO_PROGRAM_STEP, &size);
    add_program(s, ZERO_PROGRAM_EPILOGUE, &size);
    size.bytes = (size_t)(window->keeps + 1) *
                 ((size_t)size.spans * sizeof(zero_run_span) + sizeof(zero_traced_step));
    size.bytes += (size_t)(slots(window) * size.flights) * sizeof(zero_comm_span);
    size.bytes += (size_t)(slots(window) * size.transfers) * sizeof(zero_transfer_span);
    return size;
}

/* ---- opening and closing ---- */

zero_status zero_trace_init(zero_trace *t, const zero_schedule *s,
                            const zero_trace_window *window)
{
    zero_trace_size size = zero_trace_measure(s, window);
    size_t n = (size_t)window->keeps + 1;
    int64_t flights = zero_max(slots(window) * size.flights, 1);
    int64_t transfers = slots(window) * size.transfers;
    *t = (zero_trace){.window = *window, .room = (int)size.spans};
    ZERO_TRY(zero_new(&t->spans, n * (size_t)size.spans, "spans of a trace"));
    ZERO_TRY(zero_new(&t->steps, n, "steps of a trace"));
    ZERO_TRY(zero_comm_spans_init(&t->flights, flights));
    if (transfers == 0) return ZERO_OK;
    t->transfers.capacity = transfers;
    return zero_new(&t->transfers.ring, transfers, "transfers of a trace");
}

void zero_trace_destroy(zero_trace *t)
{
    zero_free(t->spans, t->steps, t->transfers.ring);
    zero_comm_spans_destroy(&t->flights);
    *t = (zero_trace){.room = 0};
}

/* ---- steps ---- */

static int64_t slot_of(const zero_trace *t, int64_t step)
{
    return step % (t->window.keeps + 1);
}

static void record_others(zero_trace *t, bool is_on)
{
    t->transfers.is_on = is_on && t->transfers.ring;
    if (t->comm) zero_comm_spans_switch(t->comm, is_on);
}

void zero_trace_step_begin(zero_trace *t, int64_t step, double now)
{
    if (step > t->window.last) return;
    int64_t slot = slot_of(t, step);
    t->now = &t->steps[slot];
    *t->now = (zero_traced_step){.step = step, .begin = now};
    t->next = &t->spans[slot * t->room];
    t->until = t->next + t->room;
    record_others(t, true);
}

static void end_step(zero_trace *t, double now, bool is_whole)
{
    t->now->n = (int32_t)(t->next - (t->until - t->room));
    if (is_whole || t->now->n > 0) t->now->end = is_whole ? now : t->next[-1].end;
    t->now->is_whole = is_whole;
    t->now = NULL;
    t->next = t->until = NULL;
    record_others(t, false);
}

void zero_trace_step_end(zero_trace *t, double now)
{
    if (t->now) end_step(t, now, true);
}

void zero_trace_note_failure(zero_trace *t, zero_program_kind program, int at, double begin)
{
    if (!t || t->next == t->until) return;
    zero_trace_note(t, program, at, false, begin, zero_clock_seconds());
    t->next[-1].is_open = true;
    t->now->end = t->next[-1].end;
}

void zero_trace_stop(zero_trace *t)
{
    if (t->now) end_step(t, 0.0, false);
}

/* ---- reading ---- */

int zero_trace_list(const zero_trace *t, const zero_traced_step **list)
{
    int n = 0;
    int64_t newest = 0, n_slots = t->window.keeps + 1;
    for (int64_t k = 0; k < n_slots; k++) newest = zero_max(newest, t->steps[k].step);
    int64_t whole = newest > 0 && t->steps[slot_of(t, newest)].is_whole;
    int64_t first = zero_max(newest - n_slots + 1 + whole, 1);
    for (int64_t step = first; step <= newest; step++) {
        const zero_traced_step *s = &t->steps[slot_of(t, step)];
        if (s->step == step && (s->is_whole || s->n > 0)) list[n++] = s;
    }
    return n;
}

const zero_run_span *zero_trace_spans(const zero_trace *t, const zero_traced_step *step)
{
    return &t->spans[(step - t->steps) * t->room];
}
