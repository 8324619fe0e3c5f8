/* The memory of a run: it is there at once, and its pages when they are touched. */

#include <sys/mman.h>
#include <unistd.h>

#include "support/test.h"

#include "base/arena.h"

#define MIB ((size_t)1 << 20)

/* Pages of [p, p + bytes) that are in memory. */
static size_t count_pages(char *p, size_t bytes)
{
    static unsigned char in_memory[64 * MIB / 4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = bytes / page, pages = 0;
    assert_true(n <= sizeof in_memory);
    assert_int_equal(mincore(p, bytes, in_memory), 0);
    for (size_t i = 0; i < n; i++) pages += in_memory[i] & 1;
    return pages;
}

/* A pass over gigabytes would stand between a run's start and its first step. */
TEST(pages_come_when_they_are_touched)
{
    zero_arena arena;
    const size_t bytes = 64 * MIB;
    assert_ok(zero_arena_init(&arena, bytes));
    zero_arena_release(arena.base, arena.bytes);
    assert_int_equal(count_pages(arena.base, bytes), 0);
    arena.base[bytes / 2] = 1;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_in_range(count_pages(arena.base, bytes), 1, 2 * MIB / page);
    assert_int_equal(arena.base[bytes / 2 + page], 0);
    zero_arena_destroy(&arena);
}

TEST(an_arena_begins_at_a_huge_page)
{
    zero_arena arena;
    assert_ok(zero_arena_init(&arena, 3 * MIB + 1));
    assert_int_equal((uintptr_t)arena.base % (2 * MIB), 0);
    zero_arena_destroy(&arena);
    assert_null(arena.base);
    zero_arena_destroy(&arena); /* zeroed */
}
