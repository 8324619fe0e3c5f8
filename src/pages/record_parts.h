/* record_parts.h - the parts of record.c: what the three kinds of lines say. */
#pragma once

#include "pages/record.h"

/* Enough for a path, and the number of a line. */
typedef struct {
    char text[600];
} zero_record_where;

void zero_record_line_name(const zero_record *record, int64_t line,
                           zero_record_where *where);

/* From record->file; each part allocates its own arrays, which _destroy frees also if it fails. */
ZERO_NODISCARD zero_status zero_record_read_run(zero_record *record);
ZERO_NODISCARD zero_status zero_record_read_schedule(zero_record *record, const char *where,
                                                     const json_t *schedule);
ZERO_NODISCARD zero_status zero_record_read_steps(zero_record *record);
ZERO_NODISCARD zero_status zero_record_read_final(zero_record *record);
/* "peers" and "rank_seconds", where the last line has them. */
ZERO_NODISCARD zero_status zero_record_read_ranks(zero_record *record, const char *where);
