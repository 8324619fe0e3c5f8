#define _GNU_SOURCE /* sync_file_range */
#include "io/write_back.h"

#include "io/system_call.h"

int zero_write_back(const char *path, int fd, uint64_t *begun, uint64_t end)
{
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    const off_t before = (off_t)*begun, piece = (off_t)(end - *begun);
    int failed;
    if (end - *begun < ZERO_FILE_CALL_BYTES) return 0;
    *begun = end;
    ZERO_FILE_CALL(failed, path, "written",
                   sync_file_range(fd, before, piece, SYNC_FILE_RANGE_WRITE));
    if (!failed && before > 0) /* 0 bytes would mean all */
        ZERO_FILE_CALL(failed, path, "written", sync_file_range(fd, 0, before, all));
    bool cannot = failed && (errno == ENOSYS || errno == EINVAL || errno == ESPIPE ||
                             errno == EOPNOTSUPP);
    return failed && !cannot ? errno : 0;
}
