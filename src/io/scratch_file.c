#define _GNU_SOURCE /* O_TMPFILE, O_DIRECT, fallocate, sync_file_range, statx */
#include "io/scratch_file.h"

#include <sys/statfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "base/number.h"
#include "io/system_call.h"
#include "io/write_back.h"

#define MAX_BYTES (UINT64_C(1) << 62)
#define AT_ONCE   ((size_t)1 << 20) /* bytes of one request; longer ones gain nothing */
#define ZEROS     ((size_t)1 << 20) /* bytes written at once where space cannot be reserved */
#define RAMFS     0x858458f6L
#define NO_STATUS (-1)

/* What the directory cannot be, if a call there does not return. */
#define RESERVED "given space for a scratch file"
#define USED     "used for a scratch file"
#define READ     "read (its scratch file)"
#define WRITTEN  "written (its scratch file)"

static bool is_aligned(uint64_t n)
{
    return n % ZERO_SCRATCH_ALIGN == 0;
}

/* ---- opening ---- */

static int make_with_name(const char *directory)
{
    char path[ZERO_SCRATCH_PATH + 32];
    zero_print(path, "%s/.zero-scratch-XXXXXX", directory);
    int fd, failed = 0;
    ZERO_FILE_CALL(fd, path, "created", mkostemp(path, O_CLOEXEC));
    if (fd >= 0) ZERO_FILE_CALL(failed, path, "removed", unlink(path));
    if (!failed) return fd;
    close(fd);
    return NO_STATUS;
}

/* ---- reserving space ---- */

static bool ask(const zero_scratch_file *file, struct statfs *fs)
{
    int failed;
    ZERO_FILE_CALL(failed, file->directory, "asked for its free space",
                   fstatfs(file->fd, fs));
    return !failed;
}

static zero_status no_space(const zero_scratch_file *file, int error)
{
    struct statfs fs;
    double free_bytes = ask(file, &fs) ? (double)fs.f_bavail * (double)fs.f_bsize : 0.0;
    return zero_fail(
        ZERO_ERR_ENV,
        "%s: a scratch file of %.1f MiB cannot be reserved: %s; %.1f MiB are free there",
        file->directory, (double)file->bytes / 0x1p20, strerror(error),
        free_bytes / 0x1p20);
}

/* Through the page cache, before O_DIRECT is set. */
static int write_zeros(const zero_scratch_file *file)
{
    char *zeros = calloc(1, ZEROS);
    if (!zeros) return ENOMEM;
    int error = 0, failed = 0;
    for (uint64_t at = 0, begun = 0; at < file->bytes && error == 0;) {
        size_t n = (size_t)(file->bytes - at < ZEROS ? file->bytes - at : ZEROS);
        ssize_t written;
        ZERO_FILE_CALL(written, file->directory, RESERVED,
                       pwrite(file->fd, zeros, n, (off_t)at));
        if (written < 0) error = errno;
        if (written > 0) at += (uint64_t)written;
        if (error == 0) error = zero_write_back(file->directory, file->fd, &begun, at);
    }
    free(zeros);
    if (error == 0) ZERO_FILE_CALL(failed, file->directory, RESERVED, fdatasync(file->fd));
    if (failed) error = errno;
    posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
    return error;
}

static zero_status reserve(const zero_scratch_file *file)
{
    int failed, error = 0;
    /* Otherwise a disk would be filled to its end before it shows that the file does
     * not fit. */
    struct statfs fs;
    if (ask(file, &fs) && (double)fs.f_bavail * (double)fs.f_bsize < (double)file->bytes)
        return no_space(file, ENOSPC);
    ZERO_SPACE_CALL(failed, file->directory, RESERVED,
                    fallocate(file->fd, 0, 0, (off_t)file->bytes));
    if (failed) error = errno;
    if (error == EOPNOTSUPP || error == ENOSYS) error = write_zeros(file);
    return error == 0 ? ZERO_OK : no_space(file, error);
}

/* ---- around the page cache ---- */

static int set_direct(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0) return NO_STATUS;
    return fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

/* False if the kernel does not say what O_DIRECT needs. */
#ifdef STATX_DIOALIGN
static bool read_alignment(zero_scratch_file *file)
{
    struct statx info;
    if (statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0) return false;
    if (!(info.stx_mask & STATX_DIOALIGN)) return false;
    file->memory_align = info.stx_dio_mem_align;
    file->offset_align = info.stx_dio_offset_align;
    return true;
}
#else
static bool read_alignment(ZERO_UNUSED zero_scratch_file *file)
{
    return false;
}
#endif

/* Some file systems accept the flag and refuse the transfer. */
static bool trial_succeeds(const zero_scratch_file *file)
{
    void *page = NULL;
    if (posix_memalign(&page, ZERO_SCRATCH_ALIGN, ZERO_SCRATCH_ALIGN) != 0) return false;
    memset(page, 0, ZERO_SCRATCH_ALIGN);
    ssize_t written, read;
    ZERO_FILE_CALL(written, file->directory, USED,
                   pwrite(file->fd, page, ZERO_SCRATCH_ALIGN, 0));
    ZERO_FILE_CALL(read, file->directory, USED,
                   pread(file->fd, page, ZERO_SCRATCH_ALIGN, 0));
    free(page);
    return written == ZERO_SCRATCH_ALIGN && read == ZERO_SCRATCH_ALIGN;
}

static void choose_direct(zero_scratch_file *file)
{
    /* Without the kernel's word the trial will tell. */
    if (read_alignment(file) && (file->memory_align - 1 >= ZERO_SCRATCH_ALIGN ||
                                 file->offset_align - 1 >= ZERO_SCRATCH_ALIGN))
        return; /* 0, or more than transfers have */
    if (set_direct(file->fd, true) != 0) return;
    file->is_direct = trial_succeeds(file);
    if (!file->is_direct) set_direct(file->fd, false);
}

zero_status zero_scratch_file_open(const char *directory, uint64_t bytes,
                                   zero_scratch_file *file)
{
    ZERO_AT_END(zero_scratch_file_close) zero_scratch_file new = {.bytes = bytes};
    ZERO_INVALID_IF(bytes == 0 || bytes > MAX_BYTES || !is_aligned(bytes),
                    "%s: a scratch file of %" PRIu64
                    " bytes: expected a multiple of %d from %d to 2^62",
                    directory, bytes, ZERO_SCRATCH_ALIGN, ZERO_SCRATCH_ALIGN);
    struct statfs fs;
    int failed;
    ZERO_FILE_CALL(failed, directory, USED, statfs(directory, &fs));
    if (failed) return zero_cannot(ZERO_ERR_ENV, directory, USED);
    ZERO_INVALID_IF(
        fs.f_type == TMPFS_MAGIC || (long)fs.f_type == RAMFS,
        "%s lies in memory (tmpfs): a scratch file there saves none; expected a "
        "directory on a disk",
        directory);
    ZERO_INVALID_IF(strlen(directory) >= sizeof new.directory,
                    "%.100s...: expected a path of less than %zu bytes", directory,
                    sizeof new.directory);
    strcpy(new.directory, directory);
    ZERO_FILE_CALL(new.fd, new.directory, USED,
                   open(new.directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    new.had_no_name = new.fd >= 0;
    /* Old kernels take O_TMPFILE for a wish to write to a directory (EISDIR). */
    if (new.fd < 0 &&
        (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOENT))
        new.fd = make_with_name(new.directory);
    new.is_open = new.fd >= 0;
    if (!new.is_open) ZERO_TRY(zero_cannot(ZERO_ERR_ENV, new.directory, USED));
    ZERO_TRY(reserve(&new));
    choose_direct(&new);
    ZERO_GIVE(file, new);
    return ZERO_OK;
}

void zero_scratch_file_close(zero_scratch_file *file)
{
    if (file->is_open)
        ZERO_WATCHED_FOR(ZERO_FILE_PATIENCE, file->directory, "freed of its scratch file",
                         close(file->fd));
    *file = (zero_scratch_file){0};
}

/* ---- transfers ---- */

static zero_status failed(const zero_scratch_file *file, const char *what, uint64_t at,
                          int error)
{
    return zero_fail(ZERO_ERR_ENV,
                     "%s: the scratch file cannot be %s at byte %" PRIu64 ": %s",
                     file->directory, what, at,
                     error ? strerror(error) : "the file ends there; it was cut");
}

/* Writes from `data`, or reads into it. */
static zero_status move(const zero_scratch_file *file, uint64_t at, char *data,
                        size_t bytes, bool writes)
{
    const char *word = writes ? "written" : "read";
    ZERO_INVALID_IF(!is_aligned(at) || !is_aligned(bytes) || at > file->bytes ||
                        bytes > file->bytes - at,
                    "%s: a transfer of %zu bytes at %" PRIu64
                    " of a scratch file of %" PRIu64 ": expected multiples of %d within it",
                    file->directory, bytes, at, file->bytes, ZERO_SCRATCH_ALIGN);
    for (size_t done = 0; done < bytes;) {
        ssize_t n;
        size_t most = zero_min_size(bytes - done, AT_ONCE);
        off_t from = (off_t)(at + done);
        ZERO_FILE_CALL(n, file->directory, writes ? WRITTEN : READ,
                       writes ? pwrite(file->fd, data + done, most, from)
                              : pread(file->fd, data + done, most, from));
        if (n <= 0)
            return failed(file, word, at + done, n < 0 ? errno : writes ? ENOSPC : 0);
        done += (size_t)n;
    }
    if (file->is_direct) return ZERO_OK;
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    int result = 0;
    if (writes) /* only clean pages can be dropped */
        ZERO_FILE_CALL(result, file->directory, WRITTEN,
                       sync_file_range(file->fd, (off_t)at, (off_t)bytes, all));
    if (result != 0 && errno != ENOSYS && errno != EINVAL)
        return failed(file, word, at, errno);
    posix_fadvise(file->fd, (off_t)at, (off_t)bytes, POSIX_FADV_DONTNEED);
    return ZERO_OK;
}

zero_status zero_scratch_file_read(const zero_scratch_file *file, uint64_t at, void *data,
                                   size_t bytes)
{
    return move(file, at, data, bytes, false);
}

zero_status zero_scratch_file_write(const zero_scratch_file *file, uint64_t at,
                                    const void *data, size_t bytes)
{
    return move(file, at, (char *)(uintptr_t)data, bytes, true);
}
