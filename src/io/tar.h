/* tar.h - files in one, as tar reads them: POSIX.1-1988's ustar, in memory. Owners, modes
 * and times are the same for all, so equal files give equal bytes. */
#pragma once

#include "io/bytes.h"

/* Adds a file; its name has at most 99 bytes. ZERO_ERR_INVALID if the file has 8 GiB or
 * more, ZERO_ERR_NOMEM. */
zero_status zero_tar_add(zero_bytes *tar, const char *name, const void *data, size_t len);
/* After the last file. ZERO_ERR_NOMEM. */
zero_status zero_tar_end(zero_bytes *tar);
