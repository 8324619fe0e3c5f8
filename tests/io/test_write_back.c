/* Long files go to their disk while they are written, so that the sync at their end has little left, and
 * no call moves more than a slow disk can move in a minute. The kernel's calls are replaced. */
#define _GNU_SOURCE /* sync_file_range */
#include "support/test.h"

#include "io/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fail.h"
#include "io/system_call.h"

#define MIB ((int64_t)1 << 20)

/* A disk that takes whatever is written. */
static struct {
    int64_t written, begun, safe; /* bytes: so far, on their way, there */
    int64_t largest;              /* call */
    int64_t left;                 /* when it was synced */
    int calls, error;
} disk;

ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n)
{
    (void)fd;
    (void)from;
    if ((int64_t)n > disk.largest) disk.largest = (int64_t)n;
    if (n > 12345) n -= 12345; /* short */
    disk.written += (int64_t)n;
    return (ssize_t)n;
}

int __wrap_sync_file_range(int fd, off_t at, off_t n, unsigned flags);
int __wrap_sync_file_range(int fd, off_t at, off_t n, unsigned flags)
{
    const unsigned waits = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
    (void)fd;
    disk.calls++;
    errno = disk.error;
    if (disk.error) return -1;
    assert_true(n > 0 && at + n <= disk.written);
    assert_true(flags & SYNC_FILE_RANGE_WRITE);
    if (flags & waits) {
        assert_true(at <= disk.safe && at + n <= disk.begun);
        disk.safe = at + n;
    } else {
        assert_true(at == disk.begun);
        disk.begun = at + n;
    }
    return 0;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    disk.left = disk.written - disk.safe;
    return 0;
}

/* Writes pieces of these bytes, and finishes. */
static zero_status write_file(int64_t bytes, int64_t piece, int error)
{
    char place[] = "/tmp/zero_write_back_XXXXXX";
    zero_storage_dir dir;
    zero_storage_file file;
    void *data = calloc(1, (size_t)piece);
    assert_true(data && mkdtemp(place));
    assert_ok(zero_storage_open(place, &dir));
    assert_ok(zero_storage_create(&dir, "f", 0, &file));
    memset(&disk, 0, sizeof disk);
    disk.error = error;
    zero_status st = ZERO_OK;
    for (int64_t at = 0; st == ZERO_OK && at < bytes; at += piece)
        st = zero_storage_write(&file, data, (size_t)piece);
    if (st == ZERO_OK)
        st = zero_storage_finish(&file);
    else
        zero_storage_close_file(&file);
    unlinkat(dir.fd, "f", 0);
    zero_storage_close(&dir);
    rmdir(place);
    free(data);
    return st;
}

TEST(a_sync_has_two_pieces_left_at_most)
{
    static const int64_t pieces[] = {100000, MIB, 31 * MIB, 200 * MIB};
    for (size_t i = 0; i < COUNT(pieces); i++) {
        assert_ok(write_file(1000 * MIB, pieces[i], 0));
        assert_true(disk.written >= 1000 * MIB);
        assert_true(disk.largest <= (int64_t)ZERO_FILE_CALL_BYTES);
        assert_true(disk.left < 3 * (int64_t)ZERO_FILE_CALL_BYTES);
        assert_in_range(disk.calls, 2, 2 * 1000 / 32 + 2);
    }
}

TEST(a_short_file_is_left_to_its_sync)
{
    assert_ok(write_file(31 * MIB, MIB, 0));
    assert_int_equal(disk.calls, 0);
    assert_int_equal(disk.left, 31 * MIB);
}

TEST(what_the_disk_says_is_heard)
{
    static const int harmless[] = {ENOSYS, EINVAL, ESPIPE, EOPNOTSUPP};
    for (size_t i = 0; i < COUNT(harmless); i++)
        assert_ok(write_file(100 * MIB, MIB, harmless[i]));
    assert_fails(write_file(100 * MIB, MIB, EIO), ZERO_ERR_ENV,
                 "/f: cannot be written back: Input/output");
}
