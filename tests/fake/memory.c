/* memory.c - memory of the fake device, mapped twice; and which host memory is pinned. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/number.h"
#include "fake/device.h"

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- ranges ---- */

static bool holds(const zero_fake_block *b, const void *memory, size_t bytes)
{
    const uintptr_t begin = (uintptr_t)b->seen, at = (uintptr_t)memory;
    return at >= begin && at - begin <= b->bytes && bytes <= b->bytes - (at - begin);
}

static const zero_fake_block *find(const zero_fake_block *blocks, int n, const void *memory,
                                   size_t bytes)
{
    for (int i = 0; i < n; i++)
        if (holds(&blocks[i], memory, bytes)) return &blocks[i];
    return NULL;
}

static bool overlaps(const zero_fake_block *blocks, int n, const char *memory, size_t bytes)
{
    for (int i = 0; i < n; i++)
        if (memory < blocks[i].seen + blocks[i].bytes && blocks[i].seen < memory + bytes)
            return true;
    return false;
}

const zero_fake_block *zero_fake_block_of(const zero_fake *f, const void *memory,
                                          size_t bytes)
{
    return find(f->taken, f->n_taken, memory, bytes);
}

bool zero_fake_is_pinned(const zero_fake *f, const void *host, size_t bytes)
{
    return find(f->pinned, f->n_pinned, host, bytes) != NULL;
}

/* Says why a call cannot use a pointer. */
static const char *describe(const zero_fake *f, const void *memory)
{
    if (!memory) return "NULL";
    if (zero_fake_block_of(f, memory, 1)) return "device memory, but ends earlier";
    if (zero_fake_is_pinned(f, memory, 1)) return "pinned host memory";
    return "not memory of the device";
}

void *zero_fake_at(zero_fake *f, const char *call, const void *memory, size_t bytes)
{
    const zero_fake_block *b = zero_fake_block_of(f, memory, bytes);
    if (bytes == 0) return (void *)memory;
    if (b) return b->own + ((const char *)memory - b->seen);
    zero_fake_fail(f, zero_fail(ZERO_ERR_INVALID,
                                "%s of the fake device was given %p, which is %s: it needs "
                                "%zu bytes that take() has given",
                                call, memory, describe(f, memory), bytes));
    return NULL;
}

/* Removes the block that begins at `memory` from a list, which keeps no order. */
static zero_fake_block remove_block(zero_fake_block *blocks, int *n, const void *memory)
{
    for (int i = 0; i < *n; i++) {
        if (blocks[i].seen != memory) continue;
        zero_fake_block removed = blocks[i];
        blocks[i] = blocks[--*n];
        return removed;
    }
    return (zero_fake_block){0};
}

static zero_status check_room(zero_fake *f, int n)
{
    ZERO_TRY(zero_fake_verdict(f));
    if (n < ZERO_FAKE_BLOCKS) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "the fake device has room for %d pieces of memory",
                     ZERO_FAKE_BLOCKS);
}

/* ---- taken ---- */

static void unmap(zero_fake_block b)
{
    if (b.seen) munmap(b.seen, b.bytes);
    if (b.own) munmap(b.own, b.bytes);
}

/* NULL on failure. */
static char *map(int file, size_t bytes, int access)
{
    void *at = mmap(NULL, bytes, access, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

zero_status zero_fake_take(zero_math *math, size_t bytes, void **memory)
{
    zero_fake *f = zero_fake_of(math);
    ZERO_TRY(check_room(f, f->n_taken));
    zero_fake_block b = {.bytes = zero_round_up_size(zero_max_size(bytes, 1), page_size())};
    int file = memfd_create("zero-fake-device", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)b.bytes) == 0) {
        b.seen = map(file, b.bytes, PROT_NONE);
        b.own = map(file, b.bytes, PROT_READ | PROT_WRITE);
    }
    int reason = errno;
    if (file >= 0) close(file); /* the mappings keep the pages */
    if (!b.seen || !b.own) {
        unmap(b);
        return zero_fail(ZERO_ERR_NOMEM, "the fake device cannot map %zu bytes twice: %s",
                         b.bytes, strerror(reason));
    }
    f->taken[f->n_taken++] = b;
    *memory = b.seen;
    return ZERO_OK;
}

/* Queued calls may use the memory, so they are executed first. */
void zero_fake_give_back(zero_math *math, void *memory)
{
    zero_fake *f = zero_fake_of(math);
    zero_fake_drain(f);
    unmap(remove_block(f->taken, &f->n_taken, memory));
}

void zero_fake_release(zero_fake *f)
{
    while (f->n_taken > 0) unmap(f->taken[--f->n_taken]);
}

/* ---- pinned ---- */

zero_status zero_fake_pin(zero_math *math, void *host, size_t bytes)
{
    zero_fake *f = zero_fake_of(math);
    const size_t page = page_size();
    ZERO_TRY(check_room(f, f->n_pinned));
    if (!host || bytes == 0 || (uintptr_t)host % page != 0 || bytes % page != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "pin() of the fake device takes whole pages of %zu bytes; it was "
                         "given %zu bytes at %p",
                         page, bytes, host);
    if (overlaps(f->pinned, f->n_pinned, host, bytes) ||
        overlaps(f->taken, f->n_taken, host, bytes))
        return zero_fail(ZERO_ERR_INVALID,
                         "pin() of the fake device was given %zu bytes at %p, of which "
                         "some are pinned already or memory of the device",
                         bytes, host);
    f->pinned[f->n_pinned++] = (zero_fake_block){.seen = host, .bytes = bytes};
    return ZERO_OK;
}

void zero_fake_unpin(zero_math *math, void *host)
{
    zero_fake *f = zero_fake_of(math);
    zero_fake_drain(f);
    remove_block(f->pinned, &f->n_pinned, host);
}
