#include "bench_block.h"

#include <string.h>

#include "base/fail.h"
#include "base/number.h"

#define CHUNK ((size_t)4 << 20)

static bool is_on_device(const bench_block *m)
{
    return m->backend && m->backend->memory;
}

static zero_status take_device(bench_block *m, size_t bytes)
{
    const zero_memory *device = m->backend->memory;
    ZERO_TRY(zero_arena_init(&m->arena, CHUNK));
    zero_status st = device->pin(m->math, m->arena.base, m->arena.bytes);
    if (st == ZERO_OK) st = device->take(m->math, bytes, &m->base);
    return st;
}

zero_status bench_block_init(bench_block *m, const zero_backend *backend, zero_math *math,
                             size_t bytes)
{
    *m = (bench_block){.backend = backend, .math = math};
    if (is_on_device(m)) return take_device(m, bytes);
    ZERO_TRY(zero_arena_init(&m->arena, bytes));
    m->base = m->arena.base;
    return ZERO_OK;
}

void bench_block_destroy(bench_block *m)
{
    if (is_on_device(m)) {
        if (m->base) m->backend->memory->give_back(m->math, m->base);
        if (m->arena.base) m->backend->memory->unpin(m->math, m->arena.base);
    }
    zero_arena_destroy(&m->arena);
    *m = (bench_block){0};
}

size_t bench_block_bytes(int64_t n, size_t size)
{
    const size_t align = ZERO_MEMORY_ALIGN;
    return ((size_t)n * size + align - 1) / align * align;
}

void *bench_block_part(bench_block *m, int64_t n, size_t size)
{
    char *part = (char *)m->base + m->taken;
    m->taken += bench_block_bytes(n, size);
    return part;
}

static void repeat(char *to, size_t bytes, const char *pattern, size_t pattern_bytes)
{
    for (size_t at = 0; at < bytes; at += pattern_bytes)
        memcpy(to + at, pattern, at + pattern_bytes > bytes ? bytes - at : pattern_bytes);
}

/* Stores of one direction end in their order, so the last one is waited for. */
static zero_status store(bench_block *m, char *to, size_t bytes, size_t chunk)
{
    const zero_memory *device = m->backend->memory;
    zero_ticket last = 0;
    for (size_t at = 0; at < bytes; at += chunk)
        ZERO_TRY(device->store(m->math, to + at, m->arena.base,
                               at + chunk > bytes ? bytes - at : chunk, &last));
    for (bool ended = false; !ended;) ZERO_TRY(device->ended(m->math, last, &ended));
    return ZERO_OK;
}

zero_status bench_block_fill(bench_block *m, void *to, size_t bytes, const void *pattern,
                             size_t pattern_bytes)
{
    if (!is_on_device(m)) {
        repeat(to, bytes, pattern, pattern_bytes);
        return ZERO_OK;
    }
    size_t chunk = CHUNK / pattern_bytes * pattern_bytes;
    repeat(m->arena.base, chunk, pattern, pattern_bytes);
    return store(m, to, bytes, chunk);
}
