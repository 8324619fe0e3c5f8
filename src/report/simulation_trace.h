/* simulation_trace.h - the reported step of a simulation, instruction by instruction.
 *
 * A file in the format of Chrome's trace viewer, which Perfetto (ui.perfetto.dev) reads, too: a
 * process per node, a thread per rank, a slice per instruction. Categories are `compute`,
 * `communication`, `disk` and `other`. Within an instruction that waited lies a slice `waiting` of
 * the category `wait`: the sum of its waits, drawn from its beginning on. */
#pragma once

#include "report/simulation_report.h"

typedef struct zero_simulation_trace zero_simulation_trace;

/* The file is there after _end(), or not at all. Borrows the report. ZERO_ERR_NOMEM, or a status of
 * io/whole_file.h. */
ZERO_NODISCARD zero_status zero_simulation_trace_begin(zero_simulation_trace **trace,
                                                       const zero_simulation_report *r);
/* Takes a span of any rank: a zero_simulate_input's `span`, whose `arg` is the trace. */
void zero_simulation_trace_span(void *trace, const zero_simulated_span *span);
/* Ends the file if `st` and all that was written are ZERO_OK, removes it otherwise, and frees the
 * trace. Returns the first failure. */
ZERO_NODISCARD zero_status zero_simulation_trace_end(zero_simulation_trace *trace,
                                                     zero_status st);
