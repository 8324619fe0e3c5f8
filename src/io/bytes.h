/* bytes.h - a growing array of bytes, and whole files read into one. Lengths count
 * bytes. */
#pragma once

#include "io/file.h"

typedef struct {
    unsigned char *bytes; /* owned; NULL while empty */
    size_t len, room;
    size_t most; /* the limit of `room`, where memory is scarce; 0: none */
} zero_bytes;

/* Makes `more` bytes fit after the last one. ZERO_ERR_NOMEM also if that is more than
 * `most`. */
zero_status zero_bytes_reserve(zero_bytes *text, size_t more);
zero_status zero_bytes_append(zero_bytes *text, const void *bytes, size_t len);

/* Appends a whole file. On failure `text` is as long as before. Errors are file.h's; a file
 * of more than `most` bytes is ZERO_ERR_FORMAT. */
zero_status zero_bytes_read_file(zero_bytes *text, const zero_file *file, size_t most);
zero_status zero_bytes_read_at_most(zero_bytes *text, const char *path, size_t most);
zero_status zero_bytes_read(zero_bytes *text, const char *path);

void zero_bytes_destroy(zero_bytes *text);
