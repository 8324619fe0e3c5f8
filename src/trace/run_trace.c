#include "trace/run_trace.h"

#include "base/clock.h"
#include "comm/deliver.h"

#define AHEAD "updates that ran ahead"
/* Rows of transfers: ranks have them and AHEAD. */
#define LANES (ZERO_TRACE_ROWS - 2)

/* ---- counting ---- */

/* More are refused, whatever they have: so products with them do not overflow. */
#define MOST_STEPS (1 << 20)

zero_status zero_run_trace_count(const zero_schedule *s, const zero_trace_window *window,
                                 zero_trace_counts *counts)
{
    const int length = s->programs[ZERO_PROGRAM_STEP].length;
    zero_trace_size size = zero_trace_measure(s, window);
    ZERO_FREED size_t(*live)[ZERO_CLASSES] = NULL;
    ZERO_TRY(zero_trace_live(s, ZERO_PROGRAM_STEP, &live));
    int64_t keeps = zero_min(window->keeps, MOST_STEPS), samples = 1;
    for (int at = 1; at < length; at++)
        samples += memcmp(live[at], live[at - 1], sizeof *live) != 0;
    *counts = (zero_trace_counts){.spans = keeps * (length + 2 + size.transfers),
                                  .flights = keeps * size.flights,
                                  .samples = keeps * samples};
    return ZERO_OK;
}

/* ---- one rank ---- */

/* This rank's events while it writes them. */
typedef struct {
    const zero_run_trace *mine;
    zero_trace_file *file;                       /* of the text */
    const zero_traced_step **steps;              /* [n_steps], owned, as all below */
    size_t (*live[ZERO_PROGRAMS])[ZERO_CLASSES]; /* of STEP and EPILOGUE */
    zero_comm_span *flights;
    zero_transfer_span *transfers;
    int n_steps;
    double origin;
    int64_t left_out; /* transfers */
} writer;

static double align(const writer *w, double t)
{
    return zero_clock_offset_align(&w->mine->clocks[0], &w->mine->clocks[1], t);
}

static const zero_instruction *labelled(const writer *w, int64_t label)
{
    const zero_schedule *s = w->mine->schedule;
    return &s->programs[zero_label_program(label)].code[zero_label_at(label)];
}

static zero_trace_span span_of(const writer *w, int64_t label, int64_t step,
                               const char *name, double begin, double end)
{
    const zero_instruction *i = labelled(w, label);
    return (zero_trace_span){.rank = w->mine->comm->rank,
                             .step = step,
                             .name = name,
                             .category = zero_trace_category(i->op),
                             .at = zero_label_at(label) + 1,
                             .group = i->group,
                             .bytes = zero_plan_instruction_bytes(w->mine->schedule, i),
                             .live_bytes = i->live_bytes,
                             .begin = align(w, begin) - w->origin,
                             .end = align(w, end) - w->origin};
}

static void fill_gap(const writer *w, int64_t step, double begin, double end)
{
    if (end <= begin) return;
    zero_trace_span span = {.rank = w->mine->comm->rank,
                            .step = step,
                            .name = ZERO_TRACE_OUTSIDE,
                            .category = "other",
                            .group = -1,
                            .bytes = -1,
                            .begin = align(w, begin) - w->origin,
                            .end = align(w, end) - w->origin};
    zero_trace_file_span(w->file, &span);
}

static void put_span(const writer *w, int64_t step, const zero_run_span *s)
{
    const zero_program_kind program = (zero_program_kind)s->program;
    const int64_t label = zero_label(program, s->at);
    const int rank = w->mine->comm->rank;
    char name[ZERO_TRACE_NAME], text[ZERO_PLAN_TEXT];
    zero_text_instruction(w->mine->schedule->input.model, labelled(w, label), text);
    zero_print(name, "%s%s%s", program == ZERO_PROGRAM_STEP ? "" : "epilogue: ", text,
               s->is_open ? ", not ended" : "");
    zero_trace_span span = span_of(w, label, step, name, s->begin, s->end);
    if (s->is_ahead) {
        zero_trace_file_queue(w->file, rank, AHEAD, &span);
        return;
    }
    zero_trace_file_memory(w->file, rank, span.begin, w->live[program][s->at]);
    zero_trace_file_span(w->file, &span);
}

/* The traced step in which something began; 0: none. */
static int64_t step_at(const writer *w, double begun)
{
    for (int k = 0; k < w->n_steps; k++)
        if (w->steps[k]->begin <= begun && begun <= w->steps[k]->end)
            return w->steps[k]->step;
    return 0;
}

static void put_flight(const writer *w, const zero_comm_span *s, bool is_open)
{
    const zero_comm *comm = w->mine->comm;
    const zero_member *member = &comm->member;
    zero_family_part part = (zero_family_part)s->part;
    char kind[ZERO_TRACE_NAME], name[ZERO_TRACE_NAME + 16];
    const int64_t step = step_at(w, s->begun);
    if (step == 0) return;
    for (int i = 0; part != ZERO_WHOLE && i < comm->n_parts; i++)
        if ((zero_family_part)comm->parts[i].member.part == part)
            member = &comm->parts[i].member;
    zero_trace_collective(w->mine->schedule->input.model, labelled(w, s->label),
                          (zero_collective_kind)s->kind, kind);
    zero_print(name, "%s%s", kind, is_open ? ", not ended" : "");
    zero_trace_file_flight(
        w->file, &(zero_trace_flight){.rank = comm->rank,
                                      .step = step,
                                      .sequence = zero_trace_sequence(part, s->sequence),
                                      .first = member->first,
                                      .name = name,
                                      .sent = s->sent,
                                      .begin = align(w, s->begun) - w->origin,
                                      .end = align(w, s->ended) - w->origin});
}

/* In the order of their begins, each in the first row in which nothing is in flight any
 * more. */
static void put_transfers(writer *w, int64_t n)
{
    double lane_end[LANES];
    for (int k = 0; k < LANES; k++) lane_end[k] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const zero_transfer_span *t = &w->transfers[i];
        const int64_t step = step_at(w, t->begun);
        char name[ZERO_TRACE_NAME], lane[32], operand[ZERO_PLAN_TEXT];
        int k = 0;
        if (step == 0) continue;
        while (k < LANES && lane_end[k] > t->begun) k++;
        if (k == LANES) {
            w->left_out++;
            continue;
        }
        lane_end[k] = t->ended;
        zero_print(lane, "file %d", k + 1);
        zero_text_part(w->mine->schedule->input.model, labelled(w, t->label), operand);
        zero_print(name, "%s %.60s", t->is_write ? "write" : "read", operand);
        zero_trace_span span = span_of(w, t->label, step, name, t->begun, t->ended);
        span.category = "disk";
        span.bytes = (int64_t)w->mine->schedule->buffers[t->file].bytes;
        zero_trace_file_queue(w->file, w->mine->comm->rank, lane, &span);
    }
}

static int by_begin(const void *a, const void *b)
{
    const zero_transfer_span *x = a, *y = b;
    return zero_order(x->begun, y->begun);
}

static int64_t room_for_flights(const zero_run_trace *mine)
{
    return 2 * mine->trace->flights.capacity;
}

static zero_status open_writer(writer *w, const zero_run_trace *mine)
{
    const zero_trace *t = mine->trace;
    w->mine = mine;
    if (!t) return ZERO_OK;
    ZERO_TRY(zero_new(&w->steps, t->window.keeps + 1, "steps of a trace"));
    ZERO_TRY(zero_new(&w->flights, room_for_flights(mine), "flights of a trace"));
    ZERO_TRY(zero_new(&w->transfers, t->transfers.capacity, "transfers of a trace"));
    ZERO_TRY(
        zero_trace_live(mine->schedule, ZERO_PROGRAM_STEP, &w->live[ZERO_PROGRAM_STEP]));
    ZERO_TRY(zero_trace_live(mine->schedule, ZERO_PROGRAM_EPILOGUE,
                             &w->live[ZERO_PROGRAM_EPILOGUE]));
    w->n_steps = zero_trace_list(t, w->steps);
    return ZERO_OK;
}

static zero_status put_rank(writer *w, const zero_trace_head *head)
{
    const zero_trace *t = w->mine->trace;
    const zero_transfer_ring *ring = &t->transfers;
    int64_t open, n = zero_min(ring->n, ring->capacity);
    ZERO_TRY(zero_trace_file_begin(&w->file, NULL, head));
    zero_trace_file_rank(w->file, w->mine->comm->rank);
    for (int k = 0; k < w->n_steps; k++) {
        /* Gaps are filled, so that spans add up to the step. */
        const zero_traced_step *step = w->steps[k];
        const zero_run_span *spans = zero_trace_spans(t, step);
        double at = step->begin;
        for (int i = 0; i < step->n; i++) {
            if (!spans[i].is_ahead) fill_gap(w, step->step, at, spans[i].begin);
            put_span(w, step->step, &spans[i]);
            if (!spans[i].is_ahead) at = spans[i].end;
        }
        fill_gap(w, step->step, at, step->end);
    }
    int64_t flights = zero_comm_spans_copy(w->mine->comm, zero_clock_seconds(),
                                           room_for_flights(w->mine), w->flights, &open);
    for (int64_t k = 0; k < flights; k++)
        put_flight(w, &w->flights[k], k >= flights - open);
    for (int64_t k = 0; k < n; k++)
        w->transfers[k] = ring->ring[(ring->n - n + k) % ring->capacity];
    zero_sort(w->transfers, n, by_begin);
    put_transfers(w, n);
    return ZERO_OK;
}

/* ---- the file ---- */

/* The begin of the first step and both ends of the steps, as doubles, which ranks exchange;
 * a rank without steps changes nothing of a minimum. */
typedef struct {
    double origin, first, minus_last;
} extent;

static zero_status find_extent(const writer *w, extent *e)
{
    zero_comm *comm = w->mine->comm;
    ZERO_FREED extent *all = NULL;
    *e = w->n_steps > 0 ? (extent){align(w, w->steps[0]->begin), (double)w->steps[0]->step,
                                   -(double)w->steps[w->n_steps - 1]->step}
                        : (extent){INFINITY, INFINITY, INFINITY};
    if (w->mine->is_alone) return ZERO_OK;
    ZERO_TRY(zero_agree(comm, zero_new(&all, comm->size, "times of ranks")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, 3, &e->origin, (double *)(void *)all));
    for (int r = 0; r < comm->size; r++) {
        e->origin = fmin(e->origin, all[r].origin);
        e->first = fmin(e->first, all[r].first);
        e->minus_last = fmin(e->minus_last, all[r].minus_last);
    }
    return ZERO_OK;
}

static zero_status take(void *file, int rank, const void *text, size_t bytes)
{
    return bytes > 0 ? zero_trace_file_append(file, rank, text, bytes) : ZERO_OK;
}

/* `whole`: the file, on the rank that writes it. */
static zero_status write_all(writer *w, const zero_trace_head *head, zero_trace_file *whole)
{
    zero_comm *comm = w->mine->comm;
    const char *text = NULL;
    size_t bytes = 0;
    zero_status st = w->mine->trace ? put_rank(w, head) : ZERO_OK;
    if (w->file && st == ZERO_OK) st = zero_trace_file_text(w->file, &text, &bytes);
    if (w->mine->is_alone) {
        if (st == ZERO_OK) st = take(whole, comm->rank, text, bytes);
    } else {
        st = zero_agree(comm, st);
        if (st == ZERO_OK) st = zero_comm_deliver(comm, text, bytes, take, whole);
        if (st == ZERO_OK) st = zero_comm_sum(comm, 1, &w->left_out);
    }
    return w->file ? zero_trace_file_end(w->file, st) : st;
}

zero_status zero_run_trace_write(const zero_run_trace *mine,
                                 const zero_run_trace_file *file,
                                 zero_run_trace_result *result)
{
    zero_comm *comm = mine->comm;
    const bool writes = mine->is_alone || zero_comm_is_root(comm);
    writer w = {.n_steps = 0};
    extent e;
    zero_trace_file *whole = NULL;
    *result = (zero_run_trace_result){0};
    zero_status st = open_writer(&w, mine);
    if (!mine->is_alone) st = zero_agree(comm, st);
    if (st == ZERO_OK) st = find_extent(&w, &e);
    if (st == ZERO_OK && isfinite(e.origin)) {
        zero_trace_head head = file->head;
        head.first_step = (int64_t)e.first;
        head.last_step = (int64_t)-e.minus_last;
        w.origin = e.origin;
        if (writes) st = zero_trace_file_begin(&whole, file->place, &head);
        if (!mine->is_alone) st = zero_agree(comm, st);
        if (st == ZERO_OK) st = write_all(&w, &head, whole);
        *result = (zero_run_trace_result){head.first_step, head.last_step, w.left_out};
        if (whole) st = zero_trace_file_end(whole, st);
        if (!mine->is_alone) st = zero_agree_after_files(comm, st);
    }
    for (int p = 0; p < ZERO_PROGRAMS; p++) free(w.live[p]);
    zero_free(w.transfers, w.flights, w.steps);
    return st;
}
