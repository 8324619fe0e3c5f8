/* trace_read.h - a trace (trace_file.h), read again: strictly, since it may come from
 * anywhere.
 *
 * A file of which the end is missing, because its run was killed or its disk was full, is
 * read up to its last whole line, and `is_cut` says so. Times are nanoseconds from the
 * start of the trace. */
#pragma once

#include "trace/traced.h"

/* ZERO_ERR_IO; ZERO_ERR_FORMAT with path, line, what was expected and what was found;
 * ZERO_ERR_NOMEM. Release it with _destroy. */
zero_status zero_traced_read(zero_traced *trace, const char *path);
/* The same of a file's bytes. Borrows the path. */
zero_status zero_traced_parse(zero_traced *trace, const char *path, const void *text,
                              size_t len);
void zero_traced_destroy(zero_traced *trace); /* accepts all zeros */
