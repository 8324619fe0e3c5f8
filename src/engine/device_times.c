#include "engine/device_times.h"

#include <stdlib.h>

zero_status zero_device_times_init(zero_device_times *t, const zero_backend *backend,
                                   const zero_math *math, zero_link *link,
                                   zero_profile *profile)
{
    *t = (zero_device_times){
        .watch = backend->stopwatch, .math = math, .link = link, .profile = profile};
    if (!t->watch) return ZERO_OK;
    t->begun = calloc((size_t)t->watch->marks, sizeof *t->begun);
    if (t->begun) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the times of a device: %d marks",
                     t->watch->marks);
}

void zero_device_times_destroy(zero_device_times *t)
{
    free(t->begun);
    *t = (zero_device_times){0};
}

static int first_of(const zero_device_times *t, int half)
{
    return half * (t->watch->marks / 2);
}

/* After a failure nothing is timed any more. */
static void add_one(zero_device_times *t, int half, int mark)
{
    double seconds = 0.0;
    zero_status st = t->watch->between(t->math, mark, mark + 1, &seconds);
    zero_link_keep(t->link, st);
    if (st == ZERO_OK)
        zero_profile_add_seconds(t->profile, t->program[half], t->begun[mark], seconds);
}

/* The last mark of a half begins nothing that has ended. */
static void read_half(zero_device_times *t, int half)
{
    const int first = first_of(t, half), last = first + t->n[half] - 1;
    for (int m = first; m < last && !t->link->has_failed; m++)
        if (t->begun[m]) add_one(t, half, m);
    t->n[half] = 0;
}

static void set(zero_device_times *t, const zero_instruction *i)
{
    const int mark = first_of(t, t->half) + t->n[t->half]++;
    t->begun[mark] = i;
    t->watch->set(t->math, mark);
}

static bool is_full(const zero_device_times *t)
{
    return t->n[t->half] == t->watch->marks / 2;
}

void zero_device_times_begin(zero_device_times *t, zero_program_kind program)
{
    t->half = 1 - t->half;
    read_half(t, t->half);
    t->program[t->half] = program;
}

static bool is_of_class(const zero_device_times *t, const zero_instruction *a,
                        const zero_instruction *b)
{
    return a && b && a->op == b->op &&
           zero_profile_column(t->profile, a) == zero_profile_column(t->profile, b);
}

void zero_device_times_next(zero_device_times *t, const zero_instruction *i)
{
    const int n = t->n[t->half];
    const zero_instruction *now = n > 0 ? t->begun[first_of(t, t->half) + n - 1] : NULL;
    if (is_of_class(t, now, i)) return;
    set(t, i);
    if (!is_full(t)) return;
    read_half(t, t->half);
    set(t, i);
}

void zero_device_times_end(zero_device_times *t)
{
    set(t, NULL);
}

void zero_device_times_read(zero_device_times *t)
{
    if (!t->watch) return;
    read_half(t, 1 - t->half);
    read_half(t, t->half);
}
