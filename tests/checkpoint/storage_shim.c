/* storage_shim.c - wraps the calls by which a program writes checkpoints.
 *
 *     SHIM_DIR=DIR LD_PRELOAD=storage_shim.so zero train ...
 *
 * Calls on DIR and paths below it are numbered from 1 in each process; all others, also MPI's, pass
 * untouched. One of them can be made to fail:
 *
 *     SHIM_AT=N      the N-th call; without it none
 *     SHIM_RANK=R    only on this rank of mpirun's job; without it on every rank
 *     SHIM_KIND=     die-before, die-after: the process kills itself
 *                    eio, enospc: the call fails        gone: it and all later ones fail (EIO)
 *                    eintr: it fails once, if a signal may interrupt it
 *                    short: a write writes half
 *                    slow: it takes 9 s
 *                    swap: what a mkdir has made is moved away, and a link to SHIM_SWAP takes its place
 *
 *     SHIM_REFUSED=NAME   all calls of this name in the log fail with errno SHIM_ERRNO
 *     SHIM_MODES=1        a mount with modes of its own: all that is made has 0777, and chmod is
 *                         refused with EPERM
 *
 * Calls that cannot fail in that way succeed: close() after reading, for example, may die but not
 * fail. SHIM_LOG=FILE gets one line per call, in the order in which the calls of all ranks
 * returned:
 *
 *     rank number call path other a b at error fault
 *
 * Paths are relative to DIR, "-" is no path; `error` is the errno that the caller saw, `fault` the
 * SHIM_KIND that struck. open: a = flags. mkdir: a = mode. write: a = bytes, b = their offset in
 * the file, at = where they are in FILE.data. allocate: a = offset, b = bytes. rename: other = the
 * new path. unlink: a = flags. announce (not a call, number 0): a = step; it is logged just before
 * a line that begins "checkpoint: step " goes to standard output. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define ANNOUNCED  "checkpoint: step "

static struct {
    char root[PATH_MAX]; /* "" before start(): then everything passes */
    int rank;
    long at;                    /* 0: never */
    const char *kind, *refused; /* NULL: none */
    int refused_error;
    bool has_modes;
    int log, data; /* -1: no log */
    atomic_long calls;
} shim = {.kind = "", .log = -1, .data = -1};

typedef struct {
    const char *name;
    char path[PATH_MAX], other[PATH_MAX];
    long number, a, b, at;
    bool is_hit;       /* the call that is to fail */
    bool is_refused;   /* as all of its name are */
    const char *fault; /* how it failed; "-": it did not */
} shim_call;

/* ---- paths below the directory ---- */

static bool relative_to_root(const char *full, char path[PATH_MAX])
{
    size_t n = strlen(shim.root);
    if (n == 0 || strncmp(full, shim.root, n) != 0) return false;
    if (full[n] != '\0' && full[n] != '/') return false;
    snprintf(path, PATH_MAX, "%s", full[n] == '\0' ? "." : full + n + 1);
    return true;
}

/* The kernel's name of an open file, which follows renames. */
static bool path_of(int fd, char path[PATH_MAX])
{
    char link[64], full[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, full, sizeof full - 1);
    if (n < 0) return false;
    full[n] = '\0';
    return relative_to_root(full, path);
}

static bool path_at(int at, const char *name, char path[PATH_MAX])
{
    char base[PATH_MAX], full[PATH_MAX + NAME_MAX];
    while (strncmp(name, "./", 2) == 0) name += 2;
    if (name[0] == '/') return relative_to_root(name, path);
    if (at != AT_FDCWD) {
        if (!path_of(at, base)) return false;
        if (strcmp(name, ".") == 0) return strcpy(path, base) != NULL;
        const char *below = strcmp(base, ".") == 0 ? "" : base;
        int n = snprintf(path, PATH_MAX, "%s%s%s", below, *below ? "/" : "", name);
        return n < PATH_MAX;
    }
    if (!getcwd(base, sizeof base)) return false;
    snprintf(full, sizeof full, "%s/%s", base, name);
    return relative_to_root(full, path);
}

/* ---- faults ---- */

static bool kind_is(const char *kind)
{
    return strcmp(shim.kind, kind) == 0;
}

static void begin(shim_call *c, const char *name)
{
    c->name = name;
    c->fault = "-";
    c->is_refused = shim.refused && strcmp(name, shim.refused) == 0;
    c->number = atomic_fetch_add(&shim.calls, 1) + 1;
    c->is_hit =
        shim.at > 0 && (c->number == shim.at || (c->number > shim.at && kind_is("gone")));
    if (c->is_hit && kind_is("die-before")) kill(getpid(), SIGKILL);
    if (c->is_hit && kind_is("slow")) {
        c->fault = shim.kind;
        sleep(9);
    }
}

static bool begin_fd(shim_call *c, const char *name, int fd)
{
    int kept = errno;
    *c = (shim_call){.other = "-"};
    bool is_below = path_of(fd, c->path);
    errno = kept;
    if (is_below) begin(c, name);
    return is_below;
}

static bool begin_at(shim_call *c, const char *name, int at, const char *path)
{
    int kept = errno;
    *c = (shim_call){.other = "-"};
    bool is_below = path_at(at, path, c->path);
    errno = kept;
    if (is_below) begin(c, name);
    return is_below;
}

/* The errno with which the call must fail, or 0. */
static int fails(shim_call *c, bool may_be_interrupted)
{
    int error = 0;
    if (c->is_refused) c->fault = "refused";
    if (c->is_refused) return shim.refused_error;
    if (!c->is_hit) return 0;
    if (kind_is("eio") || kind_is("gone")) error = EIO;
    if (kind_is("enospc")) error = ENOSPC;
    if (kind_is("eintr") && may_be_interrupted) error = EINTR;
    if (error != 0) c->fault = shim.kind;
    return error;
}

static bool fails_here(shim_call *c, bool may_be_interrupted)
{
    int error = fails(c, may_be_interrupted);
    if (error != 0) errno = error;
    return error != 0;
}

/* ---- the log ---- */

/* Bypasses the functions below, and writes in one piece: several ranks append to the file. */
static void append(int fd, const void *bytes, size_t n)
{
    if (syscall(SYS_write, fd, bytes, n) != (long)n) abort();
}

static void log_call(const shim_call *c, int error)
{
    char line[2 * PATH_MAX + 256];
    if (shim.log < 0) return;
    int n =
        snprintf(line, sizeof line, "%d %ld %s %s %s %ld %ld %ld %d %s\n", shim.rank,
                 c->number, c->name, c->path, c->other, c->a, c->b, c->at, error, c->fault);
    append(shim.log, line, (size_t)n);
}

/* Logs, then dies if it must. Leaves errno as the call set it. */
static int end(shim_call *c, int result)
{
    int kept = errno;
    log_call(c, result < 0 ? kept : 0);
    if (c->is_hit && kind_is("die-after")) kill(getpid(), SIGKILL);
    errno = kept;
    return result;
}

static void announce(const char *text, size_t n)
{
    const size_t len = strlen(ANNOUNCED);
    for (const char *line = text; line && line < text + n;) {
        size_t left = (size_t)(text + n - line);
        if (left > len && memcmp(line, ANNOUNCED, len) == 0) {
            shim_call c = {.name = "announce", .path = "-", .other = "-", .fault = "-"};
            c.a = strtol(line + len, NULL, 10);
            log_call(&c, 0);
        }
        line = memchr(line, '\n', left);
        if (line) line++;
    }
}

static ssize_t write_stdout(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    announce(text, n);
    return syscall(SYS_write, STDOUT_FILENO, text, n);
}

static int open_log(const char *path, const char *suffix)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, name,
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) abort();
    return fd;
}

/* stdio does not call our write(), so stdout becomes a stream of ours, which sees announcements. */
static void watch_stdout(void)
{
    FILE *out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_stdout});
    if (!out) abort();
    stdout = out;
}

__attribute__((constructor)) static void start(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *only = getenv("SHIM_RANK");
    const char *at = getenv("SHIM_AT"), *log = getenv("SHIM_LOG"),
               *dir = getenv("SHIM_DIR");
    shim.rank = rank ? atoi(rank) : 0;
    if (at && (!only || atoi(only) == shim.rank)) shim.at = atol(at);
    shim.kind = getenv("SHIM_KIND") ? getenv("SHIM_KIND") : "";
    bool is_here = !only || atoi(only) == shim.rank;
    shim.has_modes = getenv("SHIM_MODES") != NULL;
    shim.refused = shim.has_modes ? "chmod" : is_here ? getenv("SHIM_REFUSED") : NULL;
    shim.refused_error =
        shim.has_modes || !getenv("SHIM_ERRNO") ? EPERM : atoi(getenv("SHIM_ERRNO"));
    if (dir && log) {
        shim.log = open_log(log, "");
        shim.data = open_log(log, ".data");
        if (shim.rank == 0) watch_stdout();
    }
    if (dir && !realpath(dir, shim.root)) abort();
}

/* ---- the calls ---- */

static mode_t mode_of(int flags, va_list more)
{
    return flags & O_CREAT ? va_arg(more, mode_t) : 0;
}

int openat(int at, const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    shim_call c;
    if (!begin_at(&c, "open", at, path)) return REAL(openat)(at, path, flags, mode);
    c.a = flags;
    int fd = fails_here(&c, true) ? -1 : REAL(openat)(at, path, flags, mode);
    if (fd >= 0 && shim.has_modes && (flags & O_CREAT)) REAL(fchmod)(fd, 0777);
    return end(&c, fd);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    shim_call c;
    if (!begin_at(&c, "open", AT_FDCWD, path)) return REAL(open)(path, flags, mode);
    c.a = flags;
    return end(&c, fails_here(&c, true) ? -1 : REAL(open)(path, flags, mode));
}

/* As another user who owns the directory may do at any moment. */
static void swap(shim_call *c, int at, const char *path)
{
    char away[PATH_MAX];
    snprintf(away, sizeof away, "%s.away", path);
    if (REAL(renameat)(at, path, at, away) != 0 ||
        symlinkat(getenv("SHIM_SWAP"), at, path) != 0)
        abort();
    c->fault = shim.kind;
}

int mkdirat(int at, const char *path, mode_t mode)
{
    shim_call c;
    if (!begin_at(&c, "mkdir", at, path)) return REAL(mkdirat)(at, path, mode);
    c.a = (long)mode;
    int failed = fails_here(&c, false) ? -1 : REAL(mkdirat)(at, path, mode);
    if (!failed && shim.has_modes) REAL(fchmodat)(at, path, 0777, 0);
    if (!failed && c.is_hit && kind_is("swap")) swap(&c, at, path);
    return end(&c, failed);
}

int fchmod(int fd, mode_t mode)
{
    shim_call c;
    if (!begin_fd(&c, "chmod", fd)) return REAL(fchmod)(fd, mode);
    c.a = (long)mode;
    return end(&c, fails_here(&c, true) ? -1 : REAL(fchmod)(fd, mode));
}

int fchmodat(int at, const char *path, mode_t mode, int flags)
{
    shim_call c;
    if (!begin_at(&c, "chmod", at, path)) return REAL(fchmodat)(at, path, mode, flags);
    c.a = (long)mode;
    return end(&c, fails_here(&c, true) ? -1 : REAL(fchmodat)(at, path, mode, flags));
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    shim_call c;
    if (!begin_fd(&c, "allocate", fd)) return REAL(posix_fallocate)(fd, offset, bytes);
    c.a = offset;
    c.b = bytes;
    /* Returns its error and leaves errno alone. */
    int error = fails(&c, true), kept = errno;
    if (error == 0) error = REAL(posix_fallocate)(fd, offset, bytes);
    errno = error;
    end(&c, error ? -1 : 0);
    errno = kept;
    return error;
}

/* Half of n for a short write, if it can be halved. */
static size_t shortened(shim_call *c, size_t n)
{
    if (!c->is_hit || !kind_is("short") || n < 2) return n;
    c->fault = shim.kind;
    return n / 2;
}

static void log_data(shim_call *c, int fd, const void *bytes, ssize_t n)
{
    if (n <= 0 || shim.log < 0) return;
    append(shim.data, bytes, (size_t)n);
    c->a = n;
    c->b = lseek(fd, 0, SEEK_CUR) - n;
    c->at = lseek(shim.data, 0, SEEK_CUR) - n;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    shim_call c;
    if (fd == STDOUT_FILENO && shim.log >= 0) announce(bytes, n);
    if (!begin_fd(&c, "write", fd)) return REAL(write)(fd, bytes, n);
    ssize_t done = -1;
    if (!fails_here(&c, true)) done = REAL(write)(fd, bytes, shortened(&c, n));
    log_data(&c, fd, bytes, done);
    end(&c, done < 0 ? -1 : 0);
    return done;
}

int fsync(int fd)
{
    shim_call c;
    if (!begin_fd(&c, "fsync", fd)) return REAL(fsync)(fd);
    return end(&c, fails_here(&c, true) ? -1 : REAL(fsync)(fd));
}

/* The descriptor is closed even if close() fails, as on Linux. */
int close(int fd)
{
    shim_call c;
    if (!begin_fd(&c, "close", fd)) return REAL(close)(fd);
    bool was_written = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    int failed = REAL(close)(fd);
    if (was_written && fails_here(&c, true)) failed = -1;
    return end(&c, failed);
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    shim_call c;
    if (!begin_at(&c, "rename", from_at, from))
        return REAL(renameat)(from_at, from, to_at, to);
    if (!path_at(to_at, to, c.other)) abort();
    return end(&c, fails_here(&c, false) ? -1 : REAL(renameat)(from_at, from, to_at, to));
}

int unlinkat(int at, const char *path, int flags)
{
    shim_call c;
    if (!begin_at(&c, "unlink", at, path)) return REAL(unlinkat)(at, path, flags);
    c.a = flags;
    return end(&c, fails_here(&c, false) ? -1 : REAL(unlinkat)(at, path, flags));
}

int fstatvfs(int fd, struct statvfs *info)
{
    shim_call c;
    if (!begin_fd(&c, "statvfs", fd)) return REAL(fstatvfs)(fd, info);
    return end(&c, fails_here(&c, true) ? -1 : REAL(fstatvfs)(fd, info));
}

int fstat(int fd, struct stat *info)
{
    shim_call c;
    if (!begin_fd(&c, "stat", fd)) return REAL(fstat)(fd, info);
    return end(&c, fails_here(&c, false) ? -1 : REAL(fstat)(fd, info));
}

int stat(const char *path, struct stat *info)
{
    shim_call c;
    if (!begin_at(&c, "stat", AT_FDCWD, path)) return REAL(stat)(path, info);
    return end(&c, fails_here(&c, false) ? -1 : REAL(stat)(path, info));
}

int flock(int fd, int operation)
{
    shim_call c;
    if (!begin_fd(&c, "flock", fd)) return REAL(flock)(fd, operation);
    c.a = operation;
    return end(&c, fails_here(&c, true) ? -1 : REAL(flock)(fd, operation));
}
