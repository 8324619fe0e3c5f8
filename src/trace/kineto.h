/* kineto.h - a trace as PyTorch's profiler writes it, a file per rank, for
 * HolisticTraceAnalysis: kernels on streams, each with the call that launched it, and steps.
 *
 * That program knows what a kernel does by its name alone, so collectives in flight begin
 * with "ncclKernel" (they are messages of MPI), and reads and writes of files with "Memcpy".
 * What is left out are waits, in which nothing runs. Nothing here is collective. */
#pragma once

#include "trace/traced.h"

/* DIRECTORY/rank-R.json of each rank of the trace; the directory is made if it is not there.
 * ZERO_ERR_ENV, ZERO_ERR_IO, ZERO_ERR_NOMEM. */
zero_status zero_kineto_write(const zero_traced *trace, const char *directory);
