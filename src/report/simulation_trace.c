#include "report/simulation_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "io/whole_file.h"
#include "report/text.h"

#define MICRO   1e6
#define BUFFER  65536
#define LONGEST 512 /* bytes of a line */

struct zero_simulation_trace {
    const zero_simulation_report *report;
    zero_whole_file file;
    zero_failure failure;
    bool has_lines;
    size_t n;
    char buffer[BUFFER];
};

/* ---- lines ---- */

static void flush(zero_simulation_trace *t)
{
    if (t->failure.status != ZERO_OK) return;
    zero_status st = zero_whole_file_write(&t->file, t->buffer, t->n);
    if (st != ZERO_OK) t->failure = zero_failure_keep(st);
    t->n = 0;
}

/* A line of at most LONGEST bytes. */
static __attribute__((format(printf, 2, 3))) void put(zero_simulation_trace *t,
                                                      const char *format, ...)
{
    va_list args;
    if (t->failure.status != ZERO_OK) return;
    if (t->n + LONGEST > BUFFER) flush(t);
    va_start(args, format);
    t->n += (size_t)vsnprintf(t->buffer + t->n, LONGEST, format, args);
    va_end(args);
}

static const char *separator(zero_simulation_trace *t)
{
    const char *before = t->has_lines ? ",\n" : "\n";
    t->has_lines = true;
    return before;
}

/* ---- ranks ---- */

static bool is_traced(const zero_trace_ranks *ranks, int rank)
{
    for (int k = 0; k < ranks->n; k++)
        if (rank >= ranks->range[k].first && rank <= ranks->range[k].last) return true;
    return false;
}

static void put_names(zero_simulation_trace *t)
{
    const zero_layout *l = &t->report->plan.layout;
    int named = -1; /* the last node that has its name: nodes are blocks of ranks */
    for (int rank = 0; rank < l->size; rank++) {
        int node = l->node_of[rank];
        if (!is_traced(&t->report->request.trace_ranks, rank)) continue;
        if (node != named)
            put(t,
                "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":"
                "{\"name\":\"node %d, simulated\"}}",
                separator(t), node, node);
        named = node;
        put(t,
            "%s{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":"
            "{\"name\":\"rank %d\"}}",
            separator(t), node, rank, rank);
    }
}

/* ---- spans ---- */

static const char *category(zero_op op)
{
    switch (op) {
    case ZERO_OP_FORWARD:
    case ZERO_OP_RECOMPUTE:
    case ZERO_OP_BACKWARD: return "compute";
    case ZERO_OP_GATHER:
    case ZERO_OP_GATHER_WAIT:
    case ZERO_OP_JOIN:
    case ZERO_OP_JOIN_WAIT:
    case ZERO_OP_COLLECT:
    case ZERO_OP_COLLECT_WAIT:
    case ZERO_OP_REDUCE:
    case ZERO_OP_REDUCE_WAIT:
    case ZERO_OP_ALL_REDUCE:
    case ZERO_OP_ALL_REDUCE_WAIT:
    case ZERO_OP_LOSS:
    case ZERO_OP_OVERFLOW:
    case ZERO_OP_COMPARE: return "communication";
    case ZERO_OP_FETCH:
    case ZERO_OP_FETCH_WAIT:
    case ZERO_OP_STORE:
    case ZERO_OP_STORE_WAIT:
    case ZERO_OP_FETCH_PARAM:
    case ZERO_OP_FETCH_PARAM_WAIT:
    case ZERO_OP_SAVE:
    case ZERO_OP_SAVE_WAIT:
    case ZERO_OP_RESTORE:
    case ZERO_OP_RESTORE_WAIT: return "disk";
    default: return "other";
    }
}

static void put_slice(zero_simulation_trace *t, int rank, const char *name, const char *of,
                      double begin, double seconds)
{
    put(t,
        "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.4f,\"dur\":%.4f,"
        "\"pid\":%d,\"tid\":%d}",
        separator(t), name, of, MICRO * begin, MICRO * seconds,
        t->report->plan.layout.node_of[rank], rank);
}

void zero_simulation_trace_span(void *trace, const zero_simulated_span *span)
{
    zero_simulation_trace *t = trace;
    char name[ZERO_PLAN_TEXT];
    if (!is_traced(&t->report->request.trace_ranks, span->rank)) return;
    zero_text_instruction(&t->report->plan.model, span->instruction, name);
    put_slice(t, span->rank, name, category(span->instruction->op), span->begin,
              span->end - span->begin);
    if (span->waited > 0.0)
        put_slice(t, span->rank, "waiting", "wait", span->begin, span->waited);
}

/* ---- the file ---- */

zero_status zero_simulation_trace_begin(zero_simulation_trace **trace,
                                        const zero_simulation_report *r)
{
    zero_simulation_trace *t = calloc(1, sizeof *t);
    if (!t) return zero_fail(ZERO_ERR_NOMEM, "no memory for a trace");
    t->report = r;
    zero_status st = zero_whole_file_begin(&t->file, r->request.trace);
    if (st != ZERO_OK) {
        free(t);
        return zero_fail(st == ZERO_ERR_NOMEM ? st : ZERO_ERR_INVALID, "--trace %s",
                         zero_last_error());
    }
    put(t, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_names(t);
    *trace = t;
    return ZERO_OK;
}

zero_status zero_simulation_trace_end(zero_simulation_trace *t, zero_status st)
{
    if (st == ZERO_OK) {
        put(t, "\n]}\n");
        flush(t);
        st = zero_failure_restore(&t->failure);
    }
    if (st == ZERO_OK) st = zero_whole_file_end(&t->file);
    zero_whole_file_abandon(&t->file);
    free(t);
    return st;
}
