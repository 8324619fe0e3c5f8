/* simulation_trace.h - the reported step of a simulation, as a trace (trace_file.h).
 *
 * Each rank has its instructions with their waits, its collectives in flight, and its bytes
 * by class as its own plan has them. A collective that was begun before that step is drawn
 * from its beginning on. */
#pragma once

#include "report/simulation_report.h"
#include "trace/trace_ranks.h"

/* All borrowed. */
typedef struct {
    const char *path;
    zero_trace_ranks ranks;
    const char *command, *commit;
} zero_simulation_trace_input;

/* Makes the report of a simulation, and the trace of its first stage. Fails, leaving
 * nothing, as zero_simulation_report_make() does, and with ZERO_ERR_INVALID if the file
 * would be too large or cannot be written. */
zero_status zero_simulation_trace_make(const zero_simulation_trace_input *input,
                                       const zero_simulation_request *request,
                                       zero_simulation_report *report);
