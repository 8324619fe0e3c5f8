#include "io/checksum.h"

#include "base/fail.h"
#include "base/hash.h"

void zero_checksum(const void *bytes, size_t len, char hex[ZERO_CHECKSUM])
{
    XXH128_hash_t h = XXH3_128bits(bytes, len);
    snprintf(hex, ZERO_CHECKSUM, "%016" PRIx64 "%016" PRIx64, h.high64, h.low64);
}
