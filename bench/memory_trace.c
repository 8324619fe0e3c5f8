#include "memory_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"

/* ---- the events ---- */

static zero_status add(memory_trace *t, int event)
{
    if (!zero_grow(t->events, t->n, &t->capacity))
        return zero_fail(ZERO_ERR_NOMEM, "no memory for event %d of a trace", t->n);
    t->events[t->n++] = event;
    return ZERO_OK;
}

/* In the order of the plan's list, each once. */
static int sort(int *list, int n)
{
    int kept = 0;
    for (int k = 1; k < n; k++)
        for (int i = k; i > 0 && list[i - 1] > list[i]; i--) {
            int larger = list[i - 1];
            list[i - 1] = list[i];
            list[i] = larger;
        }
    for (int k = 0; k < n; k++)
        if (kept == 0 || list[kept - 1] != list[k]) list[kept++] = list[k];
    return kept;
}

/* An instruction may name a buffer twice. */
static int keep_first(int *list, int n)
{
    int kept = 0;
    for (int k = 0; k < n; k++) {
        bool is_again = false;
        for (int i = 0; i < kept; i++) is_again = is_again || list[i] == list[k];
        if (!is_again) list[kept++] = list[k];
    }
    return kept;
}

/* The buffers of an instruction that begin to live with it, or end. */
static zero_status add_ends(memory_trace *t, zero_program_kind kind, int at, bool births)
{
    const zero_schedule *s = t->schedule;
    int list[ZERO_OPERANDS], n = ZERO_OPERANDS;
    memcpy(list, s->programs[kind].code[at].operands, sizeof list);
    n = t->order == MEMORY_AS_LISTED ? sort(list, n) : keep_first(list, n);
    for (int k = 0; k < n; k++) {
        if (list[k] == ZERO_NO_BUFFER) continue;
        const zero_buffer *b = &s->buffers[list[k]];
        if (b->program != kind || b->bytes == 0) continue;
        if ((births ? b->first : b->last) == at)
            ZERO_TRY(add(t, births ? list[k] : -list[k] - 1));
    }
    return ZERO_OK;
}

static zero_status add_program(memory_trace *t, zero_program_kind kind)
{
    for (int at = 0; at < t->schedule->programs[kind].length; at++) {
        ZERO_TRY(add_ends(t, kind, at, true));
        ZERO_TRY(add_ends(t, kind, at, false));
    }
    return ZERO_OK;
}

zero_status memory_trace_init(memory_trace *t, const zero_schedule *s, memory_order order)
{
    *t = (memory_trace){.schedule = s, .order = order};
    for (int space = 0; space < ZERO_SPACES; space++)
        if (space != ZERO_SPACE_OWN && s->extent[space] > 0)
            return zero_fail(
                ZERO_ERR_INVALID,
                "a trace of a plan with %zu bytes in space %d: expected the "
                "rank's own memory alone; compile it for p2p, without a device",
                s->extent[space], space);
    for (int b = 0; b < s->n_buffers; b++)
        if (s->buffers[b].program == ZERO_PROGRAM_ALL && s->buffers[b].bytes > 0)
            ZERO_TRY(add(t, b));
    ZERO_TRY(add_program(t, ZERO_PROGRAM_STEP));
    ZERO_TRY(add_program(t, ZERO_PROGRAM_STEP));
    return add_program(t, ZERO_PROGRAM_EVALUATE);
}

void memory_trace_destroy(memory_trace *t)
{
    free(t->events);
    *t = (memory_trace){0};
}

/* ---- a play ---- */

static zero_status play_event(caching_allocator *a, const memory_trace *t, int at,
                              int *blocks, memory_play *p)
{
    int event = t->events[at];
    if (event < 0) return caching_allocator_free(a, blocks[-event - 1]);
    size_t bytes = t->schedule->buffers[event].bytes;
    ZERO_TRY(caching_allocator_take(a, bytes, &blocks[event]));
    p->fits = blocks[event] != CACHING_NONE;
    if (!p->fits) {
        p->failed_at = at;
        p->wanted = bytes;
        p->free = a->limit - a->requested;
    }
    p->alive = zero_max_size(p->alive, a->requested);
    return ZERO_OK;
}

zero_status memory_trace_play(const memory_trace *t, size_t limit, memory_play *play)
{
    caching_allocator a;
    memory_play p = {.fits = true, .limit = limit};
    int *blocks = malloc(((size_t)t->schedule->n_buffers + 1) * sizeof *blocks);
    if (!blocks)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the blocks of %d buffers",
                         t->schedule->n_buffers);
    caching_allocator_init(&a, limit);
    zero_status st = ZERO_OK;
    for (int at = 0; st == ZERO_OK && p.fits && at < t->n; at++)
        st = play_event(&a, t, at, blocks, &p);
    p.reserved = a.most_reserved;
    p.returns = a.returns;
    caching_allocator_destroy(&a);
    free(blocks);
    if (st == ZERO_OK) *play = p;
    return st;
}

zero_status memory_trace_squeeze(const memory_trace *t, memory_squeeze *found)
{
    memory_squeeze q;
    ZERO_TRY(memory_trace_play(t, SIZE_MAX, &q.unlimited));
    q.below = q.least = q.unlimited;
    size_t limit = zero_round_up_size(q.unlimited.alive, CACHING_GRAIN);
    ZERO_TRY(memory_trace_play(t, limit, &q.least));
    while (!q.least.fits) {
        q.below = q.least;
        limit += CACHING_GRAIN;
        ZERO_TRY(memory_trace_play(t, limit, &q.least));
    }
    *found = q;
    return ZERO_OK;
}
