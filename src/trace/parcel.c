#include "trace/parcel.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/number.h"
#include "report/plan_program.h"
#include "sharding/schedule_memory.h"

static const zero_program_kind traced[2] = {ZERO_PROGRAM_STEP, ZERO_PROGRAM_EPILOGUE};

/* ---- where the parts lie ---- */

static size_t bytes_of(const zero_parcel_head *h)
{
    return sizeof *h + (size_t)(h->n_rows[0] + h->n_rows[1]) * sizeof(zero_parcel_row) +
           (size_t)h->n_steps * sizeof(zero_traced_step) +
           (size_t)h->n_spans * sizeof(zero_run_span) +
           (size_t)h->n_flights * sizeof(zero_comm_span) +
           (size_t)h->n_transfers * sizeof(zero_parcel_transfer);
}

/* All records are of whole words of 8 bytes. */
void zero_parcel_open(void *data, zero_parcel *p)
{
    char *at = data;
    memcpy(&p->head, at, sizeof p->head);
    const zero_parcel_head *h = &p->head;
    p->rows = (void *)(at += sizeof p->head);
    p->steps = (void *)(at += (size_t)(h->n_rows[0] + h->n_rows[1]) * sizeof *p->rows);
    p->spans = (void *)(at += (size_t)h->n_steps * sizeof *p->steps);
    p->flights = (void *)(at += (size_t)h->n_spans * sizeof *p->spans);
    p->transfers = (void *)(at + (size_t)h->n_flights * sizeof *p->flights);
}

/* ---- instructions ---- */

static void fill_row(const zero_schedule *s, const zero_instruction *i,
                     const size_t live[ZERO_CLASSES], zero_parcel_row *row)
{
    const zero_model *model = s->input.model;
    memset(row, 0, sizeof *row);
    zero_text_instruction(model, i, row->name);
    zero_text_part(model, i, row->operand);
    row->op = (int64_t)i->op;
    row->group = i->group;
    row->bytes = zero_plan_instruction_bytes(s, i);
    row->live_bytes = i->live_bytes;
    memcpy(row->live, live, sizeof row->live);
}

static zero_status fill_rows(const zero_schedule *s, zero_parcel_row *rows)
{
    for (int k = 0; k < 2; k++) {
        const zero_program *p = &s->programs[traced[k]];
        size_t(*live)[ZERO_CLASSES] = calloc((size_t)p->length + 1, sizeof *live);
        if (!live)
            return zero_fail(ZERO_ERR_NOMEM, "no memory for the classes of %d instructions",
                             p->length);
        zero_schedule_live(s, traced[k], live);
        for (int at = 0; at < p->length; at++) fill_row(s, &p->code[at], live[at], rows++);
        free(live);
    }
    return ZERO_OK;
}

/* ---- times ---- */

static double align(const zero_run_trace *mine, double t)
{
    return zero_clock_offset_align(&mine->clocks[0], &mine->clocks[1], t);
}

static void fill_transfers(const zero_run_trace *mine, zero_parcel *p)
{
    const zero_transfer_ring *ring = &mine->trace->transfers;
    int64_t first = ring->n - p->head.n_transfers;
    for (int64_t k = 0; k < p->head.n_transfers; k++) {
        const zero_transfer_span *t = &ring->ring[(first + k) % ring->capacity];
        size_t bytes = mine->schedule->buffers[t->file].bytes;
        p->transfers[k] = (zero_parcel_transfer){.begin = align(mine, t->begun),
                                                 .end = align(mine, t->ended),
                                                 .label = t->label,
                                                 .bytes = (int64_t)bytes,
                                                 .is_write = t->is_write};
    }
}

/* ---- the parcel ---- */

static int64_t room_for_flights(const zero_run_trace *mine)
{
    return 2 * mine->trace->flights.capacity;
}

static zero_status pack(const zero_run_trace *mine, int n_steps,
                        const zero_traced_step **list, zero_comm_span *flights, void **data,
                        size_t *bytes)
{
    zero_parcel p;
    const zero_comm *comm = mine->comm;
    memset(&p.head, 0, sizeof p.head);
    for (int k = 0; k < 2; k++)
        p.head.n_rows[k] = mine->schedule->programs[traced[k]].length;
    p.head.n_steps = n_steps;
    for (int k = 0; k < n_steps; k++) p.head.n_spans += list[k]->n;
    p.head.n_transfers =
        zero_min(mine->trace->transfers.n, mine->trace->transfers.capacity);
    p.head.members[ZERO_WHOLE] = comm->member;
    for (int i = 0; i < comm->n_parts; i++)
        p.head.members[comm->parts[i].member.part] = comm->parts[i].member;
    p.head.n_flights = zero_comm_spans_copy(
        mine->comm, zero_clock_seconds(), room_for_flights(mine), flights, &p.head.n_open);
    *bytes = bytes_of(&p.head);
    *data = malloc(*bytes);
    if (!*data)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a trace: %zu bytes", *bytes);
    memcpy(*data, &p.head, sizeof p.head);
    zero_parcel_open(*data, &p);
    memcpy(p.flights, flights, (size_t)p.head.n_flights * sizeof *flights);
    zero_run_span *to = p.spans;
    for (int64_t k = 0; k < p.head.n_steps; k++) {
        const zero_run_span *spans = zero_trace_spans(mine->trace, list[k]);
        p.steps[k] = *list[k];
        p.steps[k].begin = align(mine, list[k]->begin);
        p.steps[k].end = align(mine, list[k]->end);
        for (int i = 0; i < list[k]->n; i++, to++) {
            *to = spans[i];
            to->begin = align(mine, spans[i].begin);
            to->end = align(mine, spans[i].end);
        }
    }
    for (int64_t k = 0; k < p.head.n_flights; k++) {
        p.flights[k].begun = align(mine, p.flights[k].begun);
        p.flights[k].ended = align(mine, p.flights[k].ended);
    }
    fill_transfers(mine, &p);
    return fill_rows(mine->schedule, p.rows);
}

zero_status zero_parcel_pack(const zero_run_trace *mine, void **data, size_t *bytes)
{
    const zero_trace *t = mine->trace;
    const zero_traced_step **list = calloc((size_t)t->window.keeps + 1, sizeof *list);
    zero_comm_span *flights = calloc((size_t)room_for_flights(mine), sizeof *flights);
    *data = NULL;
    zero_status st = ZERO_ERR_NOMEM;
    if (list && flights)
        st = pack(mine, zero_trace_list(t, list), list, flights, data, bytes);
    else
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for the steps of a trace");
    free(list);
    free(flights);
    if (st == ZERO_OK) return ZERO_OK;
    free(*data);
    *data = NULL;
    return st;
}
