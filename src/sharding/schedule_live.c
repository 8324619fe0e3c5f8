#include "sharding/schedule_live.h"

#include <string.h>

#include "sharding/schedule_memory.h"

bool zero_buffer_lives_at(const zero_buffer *b, zero_program_kind program, int at)
{
    if (zero_buffer_lives_through(b, program)) return true;
    return zero_buffer_is_of(b, program) && b->first <= at && at <= b->last;
}

/* Adds the buffer where its life begins and takes it away after its end: sums wrap
 * around. */
static void add_change(const zero_schedule *s, zero_program_kind program,
                       const zero_buffer *b, size_t (*of_class)[ZERO_CLASSES])
{
    const zero_program *p = &s->programs[program];
    bool lives_always = zero_buffer_lives_through(b, program);
    int first = lives_always ? 0 : b->first, last = lives_always ? p->length : b->last;
    size_t cost = zero_schedule_cost(s, b);
    of_class[first][b->class] += cost;
    if (last + 1 < p->length) of_class[last + 1][b->class] -= cost;
}

static bool counts(const zero_schedule *s, zero_program_kind program, const zero_buffer *b)
{
    bool is_there = zero_buffer_lives_through(b, program) || zero_buffer_is_of(b, program);
    return is_there && !zero_schedule_is_beside(s, b->space);
}

void zero_schedule_live(const zero_schedule *s, zero_program_kind program,
                        size_t (*of_class)[ZERO_CLASSES])
{
    const zero_program *p = &s->programs[program];
    if (p->length == 0) return;
    memset(of_class, 0, (size_t)p->length * sizeof *of_class);
    for (int i = 0; i < s->n_buffers; i++)
        if (counts(s, program, &s->buffers[i]))
            add_change(s, program, &s->buffers[i], of_class);
    for (int at = 1; at < p->length; at++)
        for (int c = 0; c < ZERO_CLASSES; c++) of_class[at][c] += of_class[at - 1][c];
}

void zero_schedule_live_at(const zero_schedule *s, zero_program_kind program, int at,
                           size_t of_class[ZERO_CLASSES])
{
    memset(of_class, 0, ZERO_CLASSES * sizeof *of_class);
    for (int i = 0; i < s->n_buffers; i++) {
        const zero_buffer *b = &s->buffers[i];
        if (zero_buffer_lives_at(b, program, at) && !zero_schedule_is_beside(s, b->space))
            of_class[b->class] += zero_schedule_cost(s, b);
    }
}
