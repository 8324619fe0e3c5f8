/* study_read.h - the files of a study, read strictly. */
#pragma once

#include <stddef.h>

#include "pages/study.h"

/* True if the path names a study: a directory, or a file that begins as one. *is is set only on
 * success. ZERO_ERR_IO. */
ZERO_NODISCARD zero_status zero_study_is(const char *path, bool *is);
/* Also takes the memory of its points from their metrics, where they lie beside it. ZERO_ERR_IO,
 * ZERO_ERR_FORMAT, ZERO_ERR_NOMEM. Release it with _destroy. */
ZERO_NODISCARD zero_status zero_study_read(zero_study *study, const char *path);
/* From bytes in memory; without the memory of its points. */
ZERO_NODISCARD zero_status zero_study_parse(zero_study *study, const char *path,
                                            const void *text, size_t len);
