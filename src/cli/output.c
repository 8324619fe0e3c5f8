#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

bool zero_output_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        bool is_closed = fcntl(fd, F_GETFD) < 0 && errno == EBADF;
        if (is_closed && open("/dev/null", O_RDWR) != fd) return false;
    }
    return true;
}

zero_status zero_output_check(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return ZERO_OK;
    /* stdio keeps no reason for an error of an earlier write; another write meets it
     * again. */
    return zero_fail(ZERO_ERR_ENV, "the standard output cannot be written: %s",
                     write(STDOUT_FILENO, "\n", 1) < 0
                         ? strerror(errno)
                         : "it failed for a while, and some of it is lost");
}
