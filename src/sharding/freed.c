#include "sharding/freed.h"

#include "base/grow.h"
#include "sharding/schedule_memory.h"

static bool ends_in(const zero_schedule *s, zero_program_kind program, int buffer)
{
    const zero_buffer *b = &s->buffers[buffer];
    return b->class == ZERO_CLASS_IN_FLIGHT && zero_buffer_is_of(b, program) &&
           zero_schedule_cost(s, b) > 0;
}

static int by_place(const void *a, const void *b)
{
    const zero_freed *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group);
}

zero_status zero_schedule_freed(const zero_schedule *s, zero_program_kind program,
                                zero_freed **freed, int *n)
{
    zero_freed *list;
    int most = 0, found = 0;
    for (int i = 0; i < s->n_buffers; i++) most += ends_in(s, program, i);
    ZERO_TRY(zero_new(&list, most, "gradients"));
    for (int i = 0; i < s->n_buffers; i++)
        if (ends_in(s, program, i))
            list[found++] = (zero_freed){.at = s->buffers[i].last,
                                         .group = (int)s->buffers[i].group,
                                         .bytes = zero_schedule_cost(s, &s->buffers[i])};
    qsort(list, (size_t)found, sizeof *list, by_place);
    *freed = list;
    *n = found;
    return ZERO_OK;
}
