/* checksum.h - XXH3-128 as text: the checksums in checkpoints and the digest of a run. */
#pragma once

#include <stddef.h>

#define ZERO_CHECKSUM 33 /* hexadecimal digits and the final zero */

void zero_checksum(const void *bytes, size_t len, char hex[ZERO_CHECKSUM]);
