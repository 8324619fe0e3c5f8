#include "io/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define READ_AT_ONCE ((size_t)1 << 24)

zero_status zero_bytes_reserve(zero_bytes *text, size_t more)
{
    if (more <= text->room - text->len) return ZERO_OK;
    size_t room = text->len + text->room / 2 + 64;
    if (room < text->len + more) room = text->len + more;
    unsigned char *bytes = realloc(text->bytes, room);
    if (!bytes) return zero_fail(ZERO_ERR_NOMEM, "no room for %zu bytes of data", room);
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

static zero_status too_long(const char *path, size_t most, size_t found)
{
    return zero_fail(ZERO_ERR_FORMAT,
                     "%s: expected a file of at most %zu bytes, found %zu or more", path,
                     most, found);
}

/* The file may grow or shrink while it is read: what read() returns decides. */
static zero_status read_all(zero_bytes *text, int fd, const char *path, size_t most)
{
    size_t begin = text->len;
    for (;;) {
        size_t free_room = text->room - text->len;
        if (free_room == 0) {
            ZERO_TRY(zero_bytes_reserve(text, 1));
            free_room = text->room - text->len;
        }
        ssize_t n = read(fd, text->bytes + text->len,
                         free_room < READ_AT_ONCE ? free_room : READ_AT_ONCE);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return zero_fail(ZERO_ERR_IO, "%s: cannot be read at byte %zu: %s", path,
                             text->len - begin, strerror(errno));
        if (n == 0) return ZERO_OK;
        text->len += (size_t)n;
        if (text->len - begin > most) return too_long(path, most, text->len - begin);
    }
}

static zero_status read_open_file(zero_bytes *text, int fd, const char *path, size_t most)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return zero_fail(ZERO_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return zero_fail(ZERO_ERR_IO, "%s: expected a regular file, found a %s", path,
                         S_ISDIR(info.st_mode) ? "directory" : "device, pipe or socket");
    size_t size = (size_t)info.st_size;
    if (size > most) return too_long(path, most, size);
    /* One byte more, so that the read that finds the end needs no further room. */
    if (zero_bytes_reserve(text, size + 1) != ZERO_OK)
        return zero_fail(ZERO_ERR_NOMEM, "%s: no room for its %zu bytes", path, size);
    return read_all(text, fd, path, most);
}

zero_status zero_bytes_read_at_most(zero_bytes *text, const char *path, size_t most)
{
    /* Without O_NONBLOCK the open of a pipe would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return zero_fail(ZERO_ERR_IO, "%s: cannot be opened for reading: %s", path,
                         strerror(errno));
    size_t begin = text->len;
    zero_status st = read_open_file(text, fd, path, most);
    if (st != ZERO_OK) text->len = begin;
    close(fd);
    return st;
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
