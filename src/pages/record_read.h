/* record_read.h - the metrics of a run, read strictly into a record. */
#pragma once

#include "pages/record.h"

/* Reads the metrics at `path`, which outlives the record; "-" is no special name. ZERO_ERR_IO,
 * ZERO_ERR_FORMAT, ZERO_ERR_NOMEM. Release it with _destroy. */
ZERO_NODISCARD zero_status zero_record_read(zero_record *record, const char *path);
/* The same from bytes in memory, which are copied. */
ZERO_NODISCARD zero_status zero_record_parse(zero_record *record, const char *path,
                                             const void *text, size_t len);
