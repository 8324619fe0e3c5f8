/* text.h - a growing run of bytes, and files read into it.
 *
 * Files are read with read(), never mapped: a file that shrinks under a map kills the
 * process. Lengths count bytes. */
#pragma once

#include <stddef.h>

#include "zero/status.h"

typedef struct {
    unsigned char *bytes; /* owned; NULL while empty */
    size_t len, room;
} zero_bytes;

/* Makes room for `more` bytes behind the text. */
ZERO_NODISCARD zero_status zero_bytes_reserve(zero_bytes *text, size_t more);
ZERO_NODISCARD zero_status zero_bytes_append(zero_bytes *text, const void *bytes,
                                             size_t len);

/* Appends a whole regular file. On failure `text` is as long as before. ZERO_ERR_IO names
 * the file, and the offset if it is known. */
ZERO_NODISCARD zero_status zero_bytes_read(zero_bytes *text, const char *path);

/* The same; a file of more than `most` bytes is ZERO_ERR_FORMAT. */
ZERO_NODISCARD zero_status zero_bytes_read_at_most(zero_bytes *text, const char *path,
                                                   size_t most);

void zero_bytes_destroy(zero_bytes *text);
