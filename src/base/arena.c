#include "base/arena.h"

#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_POISON 1
#endif
#endif

#ifdef HAVE_POISON
#include <sanitizer/asan_interface.h>

void zero_arena_poison(const void *p, size_t bytes)
{
    ASAN_POISON_MEMORY_REGION(p, bytes);
}

void zero_arena_unpoison(void *p, size_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
    memset(p, 0xff, bytes);
}

void zero_arena_release(const void *p, size_t bytes)
{
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
}
#else
void zero_arena_poison(ZERO_UNUSED const void *p, ZERO_UNUSED size_t bytes)
{
}

void zero_arena_unpoison(ZERO_UNUSED void *p, ZERO_UNUSED size_t bytes)
{
}

void zero_arena_release(ZERO_UNUSED const void *p, ZERO_UNUSED size_t bytes)
{
}
#endif

zero_status zero_arena_init(zero_arena *arena, size_t bytes)
{
    size_t mapped = bytes <= SIZE_MAX - HUGE_PAGE ? bytes + HUGE_PAGE : SIZE_MAX;
    void *mapping =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ZERO_FAIL_IF(mapping == MAP_FAILED, ZERO_ERR_NOMEM,
                 "no memory for the %.1f MiB that this rank's plan needs (%s): use more "
                 "ranks, a smaller --micro-batch, a shorter --seq or a smaller model",
                 (double)bytes / 0x1p20, strerror(errno));
    uintptr_t base = ((uintptr_t)mapping + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
    /* Advice only: if it fails, the run is slower. */
    (void)madvise((void *)base, bytes, MADV_HUGEPAGE);
    *arena = (zero_arena){
        .base = (char *)base, .bytes = bytes, .mapping = mapping, .mapped = mapped};
    return ZERO_OK;
}

void zero_arena_destroy(zero_arena *arena)
{
    if (!arena->mapping) return;
    zero_arena_release(arena->base, arena->bytes);
    munmap(arena->mapping, arena->mapped);
    *arena = (zero_arena){0};
}
