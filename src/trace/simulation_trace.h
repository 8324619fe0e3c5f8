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

typedef struct zero_simulation_trace zero_simulation_trace;

/* ZERO_ERR_NOMEM. Release it with _close, after the simulation. */
ZERO_NODISCARD zero_status zero_simulation_trace_open(
    zero_simulation_trace **trace, const zero_simulation_trace_input *input);
void zero_simulation_trace_close(zero_simulation_trace *trace); /* accepts NULL */

/* The watcher of a simulation's request. Its begin() fails with ZERO_ERR_INVALID if the
 * file would be too large or cannot be written. The file is there after an end() with
 * ZERO_OK, or not at all. */
zero_simulation_watcher zero_simulation_trace_watcher(zero_simulation_trace *trace);
