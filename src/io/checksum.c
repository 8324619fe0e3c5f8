#include "io/checksum.h"

#include <stdio.h>

#include <xxhash.h>

void zero_checksum(const void *bytes, size_t len, char hex[ZERO_CHECKSUM])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, len));
    for (int i = 0; i < 16; i++) snprintf(hex + 2 * i, 3, "%02x", canonical.digest[i]);
}
