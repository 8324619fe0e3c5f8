#include "base/claim.h"

#ifdef __linux__
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The first byte of an address without a file is 0. */
int zero_claim_take(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t n = strnlen(name, sizeof address.sun_path - 1);
    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return ZERO_CLAIM_CANNOT;
    memcpy(address.sun_path + 1, name, n);
    if (bind(fd, (const struct sockaddr *)&address, length) == 0) return fd;
    const int why = errno;
    close(fd);
    return why == EADDRINUSE ? ZERO_CLAIM_TAKEN : ZERO_CLAIM_CANNOT;
}
#else
int zero_claim_take(const char *name)
{
    (void)name;
    return ZERO_CLAIM_CANNOT;
}
#endif
