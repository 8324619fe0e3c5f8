#include "io/line_file.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "io/file.h"
#include "io/system_call.h"

#define READER_SECONDS 1.0 /* for a reader that is started at the same time */

/* ---- opening ---- */

static bool is_pipe(const char *path)
{
    struct stat info;
    return zero_examine(path, &info) && S_ISFIFO(info.st_mode);
}

/* Without O_NONBLOCK this would wait for a pipe's reader. */
static int open_at_once(const char *path)
{
    return zero_file_open_to_append(path, O_WRONLY | O_NONBLOCK);
}

static int open_patiently(const char *path)
{
    const struct timespec turn = {.tv_nsec = 20000000};
    double start = zero_clock_seconds();
    for (;;) {
        int fd = open_at_once(path);
        bool lacks_reader = fd < 0 && errno == ENXIO && is_pipe(path);
        if (!lacks_reader || zero_clock_seconds() - start > READER_SECONDS) return fd;
        nanosleep(&turn, NULL);
    }
}

zero_status zero_line_file_open(zero_line_file *file, const char *option, const char *path)
{
    struct stat info;
    *file = (zero_line_file){.path = path, .fd = open_patiently(path)};
    ZERO_INVALID_IF(file->fd < 0 && errno == ENXIO && is_pipe(path),
                    "%s %s: nobody reads this pipe: start its reader first", option, path);
    ZERO_INVALID_IF(file->fd < 0, "%s %s: cannot be opened for writing: %s", option, path,
                    errno == ELOOP ? ZERO_FILE_IS_LINK : strerror(errno));
    file->is_open = true;
    file->is_regular = zero_examine_open(file->fd, path, &info) && S_ISREG(info.st_mode);
    return ZERO_OK;
}

/* ---- writing ---- */

/* A reader that has closed a pipe would end the process by a signal. The signal is sent to
 * this thread, so it can be taken away here. */
static ssize_t write_quietly(const zero_line_file *file, const char *bytes, size_t n)
{
    sigset_t pipe, old, pending;
    int taken;
    ssize_t done;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    ZERO_FILE_CALL(done, file->path, "written", write(file->fd, bytes, n));
    int error = errno;
    sigpending(&pending);
    if (done < 0 && error == EPIPE && sigismember(&pending, SIGPIPE))
        sigwait(&pipe, &taken);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = error;
    return done;
}

/* 0, or the error after which not all of it is written. */
static int write_all(const zero_line_file *file, const char *bytes, size_t n,
                     size_t *written)
{
    for (*written = 0; *written < n;) {
        ssize_t done = write_quietly(file, bytes + *written, n - *written);
        if (done <= 0) return done < 0 ? errno : ENOSPC;
        *written += (size_t)done;
    }
    return 0;
}

static void lose(zero_line_file *file, int error)
{
    if (file->error == 0) file->error = error;
    file->lost++;
}

static int cut(const zero_line_file *file, off_t length)
{
    int failed;
    ZERO_FILE_CALL(failed, file->path, "cut", ftruncate(file->fd, length));
    return failed;
}

/* 0: the whole line is there. Otherwise nothing of it is. */
static int write_regular(zero_line_file *file, const char *line, size_t len)
{
    size_t written;
    int error = file->is_torn ? write_all(file, "\n", 1, &written) : 0;
    if (error != 0) return error;
    file->is_torn = false;
    off_t end = lseek(file->fd, 0, SEEK_END);
    error = write_all(file, line, len, &written);
    if (error != 0 && written > 0) file->is_torn = end < 0 || cut(file, end) != 0;
    return error;
}

/* Waits until the pipe has room; false after the deadline. */
static bool await_room(const zero_line_file *file, double deadline)
{
    struct pollfd room = {.fd = file->fd, .events = POLLOUT};
    double left = deadline - zero_clock_seconds();
    return left > 0.0 && poll(&room, 1, 1 + (int)(1e3 * left)) > 0;
}

static void drop_rest(zero_line_file *file)
{
    free(file->rest);
    file->rest = NULL;
}

/* 0: the line that was begun is complete. The rest is kept while the pipe is full, and
 * dropped after any other error. */
static int write_rest(zero_line_file *file, double deadline)
{
    while (file->rest) {
        size_t written, left = file->rest_len - file->at;
        int error = write_all(file, file->rest + file->at, left, &written);
        bool is_full = error == EAGAIN || error == EWOULDBLOCK;
        file->at += written;
        if (!is_full) drop_rest(file);
        if (error == EPIPE) {
            /* A pipe keeps what it has as long as it is open. A new reader must not get the
             * half of a line. */
            close(file->fd);
            file->fd = -1;
        }
        if (error != 0 && !(is_full && await_room(file, deadline))) return error;
    }
    return 0;
}

/* 0: the line is there, or its beginning is and the rest is kept. Takes the text over. */
static int write_pipe(zero_line_file *file, char *text, size_t len, double patience)
{
    double deadline = zero_clock_seconds() + patience;
    int error = write_rest(file, deadline); /* of the last line */
    if (error != 0 && !file->rest) lose(file, error);
    if (error == 0 && file->fd < 0) file->fd = open_at_once(file->path);
    if (error == 0 && file->fd < 0) error = EPIPE; /* nobody reads it */
    if (error != 0) {
        free(text);
        return error;
    }
    file->rest = text;
    file->rest_len = len;
    file->at = 0;
    error = write_rest(file, deadline);
    if (error != 0 && file->rest && file->at > 0) return 0;
    drop_rest(file);
    return error;
}

void zero_line_file_write(zero_line_file *file, char *text, size_t len, double patience)
{
    int error = ENOMEM;
    if (text && file->is_regular) {
        error = write_regular(file, text, len);
        free(text);
    } else if (text) {
        error = write_pipe(file, text, len, patience);
    }
    if (error == 0)
        file->lost = 0;
    else
        lose(file, error);
}

/* True if the file ends in half a line, which a run that was killed may have left, or may
 * do so. */
static bool ends_in_half(const char *path)
{
    char last = '\n';
    int fd;
    ZERO_FILE_CALL(fd, path, "opened for reading",
                   open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd < 0) return true;
    off_t size = lseek(fd, 0, SEEK_END);
    ssize_t n = 0;
    if (size > 0) ZERO_FILE_CALL(n, path, "read", pread(fd, &last, 1, size - 1));
    close(fd);
    return n < (size != 0) || last != '\n';
}

void zero_line_file_begin(zero_line_file *file, bool append)
{
    if (!file->is_regular) return;
    if (append)
        file->is_torn = ends_in_half(file->path);
    else if (cut(file, 0) != 0)
        file->error = errno;
}

void zero_line_file_close(zero_line_file *file)
{
    drop_rest(file);
    if (file->is_open && file->fd >= 0) ZERO_WATCHED(file->path, "closed", close(file->fd));
    *file = (zero_line_file){0};
}
