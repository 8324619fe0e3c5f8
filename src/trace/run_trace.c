#include "trace/run_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/number.h"
#include "comm/comm.h"
#include "comm/deliver.h"
#include "sharding/schedule_memory.h"
#include "trace/trace_name.h"

#define AHEAD "updates that ran ahead"
/* Rows of transfers: ranks have them and AHEAD. */
#define LANES (ZERO_TRACE_ROWS - 2)

/* ---- counting ---- */

/* More are refused, whatever they have: so products with them do not overflow. */
#define MOST_STEPS (1 << 20)

zero_status zero_run_trace_count(const zero_schedule *s, const zero_trace_window *window,
                                 zero_trace_counts *counts)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    zero_trace_size size = zero_trace_measure(s, window);
    size_t(*live)[ZERO_CLASSES] = calloc((size_t)p->length + 1, sizeof *live);
    if (!live)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the classes of %d instructions",
                         p->length);
    zero_schedule_live(s, ZERO_PROGRAM_STEP, live);
    int64_t keeps = zero_min(window->keeps, MOST_STEPS), samples = 1;
    for (int at = 1; at < p->length; at++)
        samples += memcmp(live[at], live[at - 1], sizeof *live) != 0;
    *counts = (zero_trace_counts){.spans = keeps * (p->length + 2 + size.transfers),
                                  .flights = keeps * size.flights,
                                  .samples = keeps * samples};
    free(live);
    return ZERO_OK;
}

/* ---- one rank ---- */

/* The file while rank 0 takes parcels, one after the other. */
typedef struct {
    zero_trace_file *file;
    double origin;
    int64_t left_out; /* transfers */
    int rank;         /* whose parcel is being written */
    const zero_parcel *parcel;
    int64_t step;
    double lane_end[LANES];
} desk;

static void fill_gap(desk *d, double begin, double end)
{
    if (end <= begin) return;
    zero_trace_span span = {.rank = d->rank,
                            .step = d->step,
                            .name = ZERO_TRACE_OUTSIDE,
                            .category = "other",
                            .group = -1,
                            .bytes = -1,
                            .begin = begin - d->origin,
                            .end = end - d->origin};
    zero_trace_file_span(d->file, &span);
}

static const zero_parcel_row *row_of(const zero_parcel *p, zero_program_kind program,
                                     int at)
{
    return &p->rows[program == ZERO_PROGRAM_STEP ? at : p->head.n_rows[0] + at];
}

static void put_span(desk *d, const zero_run_span *s)
{
    const zero_program_kind program = (zero_program_kind)s->program;
    const zero_parcel *p = d->parcel;
    const zero_parcel_row *row = row_of(p, program, s->at);
    char name[ZERO_TRACE_NAME];
    snprintf(name, sizeof name, "%s%s%s",
             program == ZERO_PROGRAM_STEP ? "" : "epilogue: ", row->name,
             s->is_open ? ", not ended" : "");
    zero_trace_span span = {.rank = d->rank,
                            .step = d->step,
                            .name = name,
                            .category = zero_trace_category((zero_op)row->op),
                            .at = s->at + 1,
                            .group = (int)row->group,
                            .bytes = row->bytes,
                            .live_bytes = row->live_bytes,
                            .begin = s->begin - d->origin,
                            .end = s->end - d->origin};
    if (s->is_ahead) {
        zero_trace_file_queue(d->file, d->rank, AHEAD, &span);
        return;
    }
    zero_trace_file_memory(d->file, d->rank, s->begin - d->origin, row->live);
    zero_trace_file_span(d->file, &span);
}

/* The traced step in which something began, or NULL. */
static const zero_traced_step *step_at(const zero_parcel *p, double begun)
{
    for (int64_t k = 0; k < p->head.n_steps; k++)
        if (p->steps[k].begin <= begun && begun <= p->steps[k].end) return &p->steps[k];
    return NULL;
}

static const zero_parcel_row *labelled(const zero_parcel *p, int64_t label)
{
    return row_of(p, zero_label_program(label), zero_label_at(label));
}

/* ---- collectives in flight ---- */

/* Named as zero_trace_collective() does it. */
static void put_flight(desk *d, const zero_comm_span *s, bool is_open)
{
    const zero_parcel *p = d->parcel;
    const zero_traced_step *step = step_at(p, s->begun);
    char name[ZERO_TRACE_NAME];
    if (!step) return;
    snprintf(name, sizeof name, "%s %s%s",
             zero_collective_kind_name((zero_collective_kind)s->kind),
             labelled(p, s->label)->operand, is_open ? ", not ended" : "");
    zero_family_part part = (zero_family_part)s->part;
    zero_trace_file_flight(
        d->file, &(zero_trace_flight){.rank = d->rank,
                                      .step = step->step,
                                      .sequence = zero_trace_sequence(part, s->sequence),
                                      .first = p->head.members[part].first,
                                      .name = name,
                                      .sent = s->sent,
                                      .begin = s->begun - d->origin,
                                      .end = s->ended - d->origin});
}

/* ---- transfers ---- */

static void put_transfer(desk *d, const zero_parcel_transfer *t)
{
    const zero_parcel_row *row = labelled(d->parcel, t->label);
    const zero_traced_step *step = step_at(d->parcel, t->begin);
    char name[ZERO_TRACE_NAME], lane[32];
    int k = 0; /* the first row in which nothing is in flight any more */
    if (!step) return;
    while (k < LANES && d->lane_end[k] > t->begin) k++;
    if (k == LANES) {
        d->left_out++;
        return;
    }
    d->lane_end[k] = t->end;
    snprintf(lane, sizeof lane, "file %d", k + 1);
    snprintf(name, sizeof name, "%s %.60s", t->is_write ? "write" : "read", row->operand);
    zero_trace_file_queue(d->file, d->rank, lane,
                          &(zero_trace_span){.rank = d->rank,
                                             .step = step->step,
                                             .name = name,
                                             .category = "disk",
                                             .at = zero_label_at(t->label) + 1,
                                             .group = (int)row->group,
                                             .bytes = t->bytes,
                                             .live_bytes = row->live_bytes,
                                             .begin = t->begin - d->origin,
                                             .end = t->end - d->origin});
}

static int by_begin(const void *a, const void *b)
{
    const zero_parcel_transfer *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* ---- all of it ---- */

static void put_rank(desk *d, int rank, zero_parcel *p)
{
    const zero_run_span *spans = p->spans;
    d->rank = rank;
    d->parcel = p;
    for (int k = 0; k < LANES; k++) d->lane_end[k] = -INFINITY;
    zero_trace_file_rank(d->file, rank);
    for (int64_t k = 0; k < p->head.n_steps; k++) {
        /* Gaps are filled, so that spans add up to the step. */
        const zero_traced_step *step = &p->steps[k];
        double at = step->begin;
        d->step = step->step;
        for (int i = 0; i < step->n; i++) {
            if (!spans[i].is_ahead) fill_gap(d, at, spans[i].begin);
            put_span(d, &spans[i]);
            if (!spans[i].is_ahead) at = spans[i].end;
        }
        fill_gap(d, at, step->end);
        spans += p->steps[k].n;
    }
    for (int64_t k = 0; k < p->head.n_flights; k++)
        put_flight(d, &p->flights[k], k >= p->head.n_flights - p->head.n_open);
    qsort(p->transfers, (size_t)p->head.n_transfers, sizeof *p->transfers, by_begin);
    for (int64_t k = 0; k < p->head.n_transfers; k++) put_transfer(d, &p->transfers[k]);
}

static zero_status take(void *arg, int rank, const void *data, size_t bytes)
{
    desk *d = arg;
    zero_parcel p;
    if (bytes == 0) return ZERO_OK;
    void *copy = malloc(bytes); /* transfers are sorted in place */
    if (!copy)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the trace of rank %d: %zu bytes",
                         rank, bytes);
    memcpy(copy, data, bytes);
    zero_parcel_open(copy, &p);
    put_rank(d, rank, &p);
    free(copy);
    return ZERO_OK;
}

/* The begin of the first step and both ends of the steps, as doubles, which ranks exchange;
 * a rank without steps changes nothing of a minimum. */
typedef struct {
    double origin, first, minus_last;
} extent;

static extent extent_of(const zero_parcel *p)
{
    extent e = {INFINITY, INFINITY, INFINITY};
    if (!p || p->head.n_steps == 0) return e;
    const zero_traced_step *last = &p->steps[p->head.n_steps - 1];
    return (extent){p->steps[0].begin, (double)p->steps[0].step, -(double)last->step};
}

static zero_status open_file(const zero_run_trace_file *file, const extent *e, desk *d)
{
    zero_trace_head head = file->head;
    head.first_step = (int64_t)e->first;
    head.last_step = (int64_t)-e->minus_last;
    d->origin = e->origin;
    return zero_trace_file_begin(&d->file, file->place, &head);
}

static zero_run_trace_result result_of(const extent *e, const desk *d)
{
    return (zero_run_trace_result){.first_step = (int64_t)e->first,
                                   .last_step = (int64_t)-e->minus_last,
                                   .left_out = d->left_out};
}

static zero_status pack(const zero_run_trace *mine, void **data, size_t *bytes,
                        zero_parcel *p)
{
    *data = NULL;
    *bytes = 0;
    if (!mine->trace) return ZERO_OK;
    ZERO_TRY(zero_parcel_pack(mine, data, bytes));
    zero_parcel_open(*data, p);
    return ZERO_OK;
}

static zero_status find_extent(zero_comm *comm, extent *e)
{
    const int ranks = comm->size;
    extent *all = calloc((size_t)ranks, sizeof *all);
    zero_status st = ZERO_OK;
    if (!all) st = zero_fail(ZERO_ERR_NOMEM, "no memory for the times of %d ranks", ranks);
    st = zero_agree(comm, st);
    if (st == ZERO_OK)
        st = zero_comm_all_gather_doubles(comm, 3, &e->origin, (double *)(void *)all);
    for (int r = 0; st == ZERO_OK && r < ranks; r++) {
        e->origin = fmin(e->origin, all[r].origin);
        e->first = fmin(e->first, all[r].first);
        e->minus_last = fmin(e->minus_last, all[r].minus_last);
    }
    free(all);
    return st;
}

static zero_status write_all(const zero_run_trace *mine, const zero_run_trace_file *file,
                             const void *data, size_t bytes, extent *e,
                             zero_run_trace_result *result)
{
    zero_comm *comm = mine->comm;
    desk d = {.file = NULL};
    ZERO_TRY(find_extent(comm, e));
    if (!isfinite(e->origin)) return ZERO_OK;
    zero_status st = zero_comm_is_root(comm) ? open_file(file, e, &d) : ZERO_OK;
    st = zero_agree(comm, st);
    if (st == ZERO_OK) st = zero_comm_deliver(comm, data, bytes, take, &d);
    *result = result_of(e, &d);
    if (d.file) st = zero_trace_file_end(d.file, st);
    return zero_agree_after_files(comm, st);
}

zero_status zero_run_trace_write(const zero_run_trace *mine,
                                 const zero_run_trace_file *file,
                                 zero_run_trace_result *result)
{
    void *data;
    size_t bytes;
    zero_parcel p;
    *result = (zero_run_trace_result){0};
    zero_status st = zero_agree(mine->comm, pack(mine, &data, &bytes, &p));
    extent e = extent_of(st == ZERO_OK && data ? &p : NULL);
    if (st == ZERO_OK) st = write_all(mine, file, data, bytes, &e, result);
    free(data);
    return st;
}

zero_status zero_run_trace_write_alone(const zero_run_trace *mine,
                                       const zero_run_trace_file *file,
                                       zero_run_trace_result *result)
{
    void *data;
    size_t bytes;
    zero_parcel p;
    desk d = {.file = NULL};
    *result = (zero_run_trace_result){0};
    ZERO_TRY(pack(mine, &data, &bytes, &p));
    extent e = extent_of(data ? &p : NULL);
    zero_status st = ZERO_OK;
    if (isfinite(e.origin)) {
        st = open_file(file, &e, &d);
        if (st == ZERO_OK) put_rank(&d, mine->comm->rank, &p);
        if (st == ZERO_OK) st = zero_trace_file_end(d.file, ZERO_OK);
        *result = result_of(&e, &d);
    }
    free(data);
    return st;
}
