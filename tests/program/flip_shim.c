/* A bit flips in a rank's memory: a library to be preloaded. At its FLIP_AT-th hash of a copy, rank
 * FLIP_RANK first flips a bit of what is hashed, as a fault of memory would have done before. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define NAME_OF(function) TEXT_OF(function) /* in the library */
#define TEXT_OF(word)     #word

typedef XXH128_hash_t hash_function(const void *x, size_t bytes, XXH64_hash_t seed);

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : -1;
}

static long rank(void)
{
    long open_mpi = number("OMPI_COMM_WORLD_RANK");
    return open_mpi >= 0 ? open_mpi : number("PMI_RANK");
}

XXH128_hash_t XXH3_128bits_withSeed(const void *x, size_t bytes, XXH64_hash_t seed)
{
    static long calls;
    hash_function *real;
    void *found = dlsym(RTLD_NEXT, NAME_OF(XXH3_128bits_withSeed));
    memcpy(&real, &found, sizeof real);
    if (++calls == number("FLIP_AT") && rank() == number("FLIP_RANK"))
        ((unsigned char *)(uintptr_t)x)[2] ^= 0x10;
    return real(x, bytes, seed);
}
