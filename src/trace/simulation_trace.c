#include "trace/simulation_trace.h"

#include "report/plan_program.h"
#include "report/text.h"
#include "sharding/schedule_exchange.h"
#include "trace/trace_file.h"
#include "zero/version.h"

/* A rank's step program: what the file says of each instruction. Ranks of a TP group have
 * equal ones, as in the simulation. */
typedef struct {
    size_t (*live)[ZERO_CLASSES]; /* [length], owned */
    int64_t *bytes;               /* [length], owned */
} program;

typedef struct {
    const zero_simulation_trace_input *input;
    zero_simulation_report *report;
    zero_trace_file *file;
    program *programs; /* [ranks / tp], owned; of those that are traced */
    int n_programs, tp;
} tracing;

static const zero_schedule *schedule_of(const tracing *t)
{
    return &t->report->plan.stages[0].schedule;
}

static bool is_traced(const tracing *t, int rank)
{
    return zero_trace_ranks_have(&t->input->ranks, rank);
}

/* ---- programs of ranks ---- */

static zero_status take_program(const zero_schedule *s, program *to)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    ZERO_TRY(zero_new(&to->bytes, p->length + 1, "instructions of a trace"));
    for (int at = 0; at < p->length; at++)
        to->bytes[at] = zero_plan_instruction_bytes(s, &p->code[at]);
    return zero_trace_live(s, ZERO_PROGRAM_STEP, &to->live);
}

static zero_status compile_program(tracing *t, int rank)
{
    ZERO_AT_END(zero_plan_rank_close) zero_plan_rank of = {0};
    program *to = &t->programs[rank / t->tp];
    if (to->live) return ZERO_OK;
    ZERO_TRY(zero_plan_rank_open(&t->report->plan, schedule_of(t)->input.stage, rank, &of));
    return take_program(&of.schedule, to);
}

/* ---- size ---- */

/* Counts one rank's events; memory changes at about three of four instructions. Collectives
 * are begun at once unless their arithmetic takes time. */
static zero_trace_counts count_events(const tracing *t)
{
    const zero_program *p = &schedule_of(t)->programs[ZERO_PROGRAM_STEP];
    zero_trace_counts n = {.samples = p->length * 3 / 4};
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        zero_work_kind kind = zero_ops[i->op].kind;
        bool begins = kind == ZERO_WORK_EXCHANGE, waits = kind == ZERO_WORK_EXCHANGE_WAIT ||
                                                          kind == ZERO_WORK_AGREE ||
                                                          kind == ZERO_WORK_TRANSFER_WAIT;
        n.waits += waits;
        n.spans += waits || kind == ZERO_WORK_COMPUTE ||
                   (begins && isfinite(t->report->input.memory_bandwidth));
        if (begins)
            n.flights +=
                zero_exchange_collectives(schedule_of(t), i->op, zero_exchange_number(i));
    }
    return n;
}

/* ---- events ---- */

static void take_span(void *trace, const zero_simulated_span *span)
{
    tracing *t = trace;
    char name[ZERO_PLAN_TEXT];
    if (!is_traced(t, span->rank)) return;
    const program *p = &t->programs[span->rank / t->tp];
    size_t live = 0;
    for (int c = 0; c < ZERO_CLASSES; c++) live += p->live[span->at][c];
    zero_text_instruction(&t->report->plan.model, span->instruction, name);
    zero_trace_span out = {.rank = span->rank,
                           .step = t->report->input.steps,
                           .name = name,
                           .category = zero_trace_category(span->instruction->op),
                           .at = span->at + 1,
                           .group = span->instruction->group,
                           .bytes = p->bytes[span->at],
                           .live_bytes = live,
                           .begin = span->begin,
                           .end = span->end,
                           .waited = span->waited};
    zero_trace_file_memory(t->file, span->rank, span->begin, p->live[span->at]);
    /* In whole nanoseconds, as the file has them. Viewers draw a span of no length
     * inside the one that begins with it. */
    if (llround(1e9 * span->begin) < llround(1e9 * span->end))
        zero_trace_file_span(t->file, &out);
}

static void take_flight(void *trace, const zero_simulated_flight *flight)
{
    tracing *t = trace;
    char name[ZERO_TRACE_NAME];
    zero_traffic traffic;
    if (!is_traced(t, flight->rank)) return;
    zero_status st =
        zero_collective_traffic(flight->spec, flight->layout, flight->member, &traffic);
    if (st != ZERO_OK) {
        zero_trace_file_fail(t->file, st);
        return;
    }
    zero_trace_collective(&t->report->plan.model, flight->instruction, flight->spec->kind,
                          name);
    zero_division division = {t->report->plan.layout.size, t->tp,
                              schedule_of(t)->shard.size, schedule_of(t)->pipe.n_stages};
    zero_trace_flight out = {
        .rank = flight->rank,
        .step = flight->step + 1,
        .sequence = zero_trace_sequence(flight->part, flight->call),
        .first = zero_member_of(flight->part, &division, flight->rank).first,
        .name = name,
        .sent = zero_traffic_sent(&traffic),
        .begin = fmax(flight->begin, 0.0),
        .end = flight->end};
    zero_trace_file_flight(t->file, &out);
}

/* ---- the file ---- */

static zero_status begin(tracing *t)
{
    zero_trace_counts n = count_events(t);
    char remedy[ZERO_PLAN_TEXT];
    int64_t traced = 0;
    for (int rank = 0; rank < t->report->plan.layout.size; rank++)
        traced += is_traced(t, rank);
    n.spans *= traced;
    n.samples *= traced;
    n.waits *= traced;
    n.flights *= traced;
    zero_print(remedy, "give --trace-ranks with fewer than %" PRId64 " ranks", traced);
    ZERO_TRY(zero_trace_file_check(&n, remedy));
    int ranks = t->report->plan.layout.size;
    t->tp = zero_tp_ranks(&t->report->plan.config.tp);
    t->n_programs = ranks / t->tp;
    t->programs = calloc((size_t)t->n_programs, sizeof *t->programs);
    ZERO_FAIL_IF(!t->programs, ZERO_ERR_NOMEM, "no memory for a trace of %d ranks", ranks);
    for (int rank = 0; rank < ranks; rank++)
        if (is_traced(t, rank)) ZERO_TRY(compile_program(t, rank));
    const zero_layout *layout = &t->report->plan.layout;
    int64_t step = t->report->input.steps;
    zero_trace_head head = {.layout = layout,
                            .command = t->input->command,
                            .version = ZERO_VERSION_STRING,
                            .commit = t->input->commit,
                            .first_step = step,
                            .last_step = step,
                            .class_peak =
                                schedule_of(t)->peak_of[ZERO_PROGRAM_STEP].of_class};
    zero_whole_file place;
    zero_lock lock;
    ZERO_TRY(zero_trace_file_place(&place, t->input->path, ZERO_WHOLE_FILE_ALONE, &lock));
    zero_status st = zero_trace_file_begin(&t->file, &place, &head);
    zero_whole_file_abandon(&place);
    ZERO_TRY(st);
    for (int rank = 0; rank < layout->size; rank++)
        if (is_traced(t, rank)) zero_trace_file_rank(t->file, rank);
    t->report->input.span = take_span;
    t->report->input.flight = take_flight;
    t->report->input.arg = t;
    return ZERO_OK;
}

zero_status zero_simulation_trace_make(const zero_simulation_trace_input *input,
                                       const zero_simulation_request *request,
                                       zero_simulation_report *report)
{
    tracing t = {.input = input, .report = report};
    ZERO_TRY(zero_simulation_report_plan(report, request));
    zero_status st = begin(&t);
    if (st == ZERO_OK) st = zero_trace_file_end(t.file, zero_simulation_report_run(report));
    for (int k = 0; k < t.n_programs && t.programs; k++) {
        free(t.programs[k].live);
        free(t.programs[k].bytes);
    }
    free(t.programs);
    if (st != ZERO_OK) zero_simulation_report_destroy(report);
    return st;
}
