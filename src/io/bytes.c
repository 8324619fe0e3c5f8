#include "io/bytes.h"

#include "base/number.h"

zero_status zero_bytes_reserve(zero_bytes *text, size_t more)
{
    if (more <= text->room - text->len) return ZERO_OK;
    size_t needed = text->len + more;
    ZERO_FAIL_IF(text->most > 0 && needed > text->most, ZERO_ERR_NOMEM,
                 "no memory for %.1f MiB of data: %.1f MiB are available",
                 (double)needed / 0x1p20, (double)text->most / 0x1p20);
    size_t room = zero_max_size(text->len + text->room / 2 + 64, needed);
    if (text->most > 0) room = zero_min_size(room, text->most);
    unsigned char *bytes = realloc(text->bytes, room);
    ZERO_FAIL_IF(!bytes, ZERO_ERR_NOMEM, "no memory for %zu bytes of data", room);
    text->bytes = bytes;
    text->room = room;
    return ZERO_OK;
}

zero_status zero_bytes_append(zero_bytes *text, const void *bytes, size_t len)
{
    ZERO_TRY(zero_bytes_reserve(text, len));
    if (len > 0) memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
    return ZERO_OK;
}

/* ---- files ---- */

static zero_status too_long(const zero_file *file, size_t most, size_t found)
{
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: expected a file of at most %zu bytes, found %zu or more",
                     file->path, most, found);
}

/* The file may grow or shrink while it is read, and /proc's are said to be empty: where
 * reading ends decides. */
static zero_status read_to_end(zero_bytes *text, const zero_file *file, size_t most)
{
    size_t begin = text->len, read = 0;
    do {
        if (text->room == text->len) ZERO_TRY(zero_bytes_reserve(text, 1));
        ZERO_TRY(zero_file_read_some(file, text->len - begin, text->bytes + text->len,
                                     text->room - text->len, &read));
        text->len += read;
        if (text->len - begin > most) return too_long(file, most, text->len - begin);
    } while (read > 0);
    return ZERO_OK;
}

zero_status zero_bytes_read_file(zero_bytes *text, const zero_file *file, size_t most)
{
    size_t begin = text->len, size = (size_t)file->bytes;
    if (size > most) return too_long(file, most, size);
    /* One byte more, so that the read that finds the end needs no further memory. */
    ZERO_FAIL_IF(zero_bytes_reserve(text, size + 1) != ZERO_OK, ZERO_ERR_NOMEM,
                 "%s, of %zu bytes: %s", file->path, size, zero_last_error());
    zero_status st = read_to_end(text, file, most);
    if (st != ZERO_OK) text->len = begin;
    return st;
}

zero_status zero_bytes_read_at_most(zero_bytes *text, const char *path, size_t most)
{
    ZERO_AT_END(zero_file_close) zero_file file = {0};
    ZERO_TRY(zero_file_open(path, &file));
    return zero_bytes_read_file(text, &file, most);
}

zero_status zero_bytes_read(zero_bytes *text, const char *path)
{
    return zero_bytes_read_at_most(text, path, SIZE_MAX);
}

void zero_bytes_destroy(zero_bytes *text)
{
    free(text->bytes);
    *text = (zero_bytes){0};
}
