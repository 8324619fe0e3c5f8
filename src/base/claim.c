#define _GNU_SOURCE /* F_OFD_SETLK */
#include "base/claim.h"

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_TURNS 10000 /* of a millisecond */

/* Namespaces that are seldom divided, and the number that the kernel gives the first of
 * each kind. Linux before 5.6 has no time namespaces. */
static const struct {
    const char *path;
    ino_t first;
} spaces[] = {{"/proc/self/ns/time", 0xeffffffa}, {"/proc/self/ns/user", 0xeffffffd}};

/* A process that is stopped during its turn must not stop all others. */
static bool await_turn(int claims)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int turns = 0; flock(claims, LOCK_EX | LOCK_NB) != 0; turns++) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || turns == MOST_TURNS) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

int zero_claims_open(void)
{
    struct stat info;
    int space = 0, fd = open(spaces[0].path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) fd = open(spaces[++space].path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    if (fstat(fd, &info) == 0 && info.st_ino == spaces[space].first && await_turn(fd))
        return fd;
    close(fd);
    return -1;
}

/* Such a file can only be read, so it takes no locks that exclude others. But a process may
 * ask whether it would get one, and then take a shared one, which tells all that ask after
 * it. */
bool zero_claims_take(int claims, int number)
{
    struct flock byte = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    const struct flock shared = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
    if (fcntl(claims, F_OFD_GETLK, &byte) != 0 || byte.l_type != F_UNLCK) return false;
    return fcntl(claims, F_OFD_SETLK, &shared) == 0;
}

void zero_claims_settle(int claims)
{
    flock(claims, LOCK_UN);
}
#else
int zero_claims_open(void)
{
    return -1;
}

bool zero_claims_take(ZERO_UNUSED int claims, ZERO_UNUSED int number)
{
    return false;
}

void zero_claims_settle(ZERO_UNUSED int claims)
{
}
#endif
