#include "state/device_times.h"

zero_status zero_device_times_init(zero_device_times *t, const zero_backend *backend,
                                   const zero_math *math, zero_link *link,
                                   zero_profile *profile)
{
    *t = (zero_device_times){
        .watch = backend->stopwatch, .math = math, .link = link, .profile = profile};
    if (!t->watch) return ZERO_OK;
    profile->is_of_device = true;
    return zero_new(&t->ring, t->watch->marks, "marks of a device");
}

void zero_device_times_destroy(zero_device_times *t)
{
    free(t->ring);
    *t = (zero_device_times){0};
}

static int place_of(const zero_device_times *t, int64_t mark)
{
    return (int)(mark % t->watch->marks);
}

static struct zero_device_mark *at(const zero_device_times *t, int64_t mark)
{
    return &t->ring[place_of(t, mark)];
}

/* The last mark begins nothing that has ended. */
static void read_all(zero_device_times *t)
{
    for (; t->first + 1 < t->n; t->first++) {
        /* After a failure nothing is timed any more. */
        int64_t mark = t->first;
        const struct zero_device_mark *m = at(t, mark);
        double seconds = 0.0;
        if (m->begun && !t->link->has_failed) {
            zero_status st = t->watch->between(t->math, place_of(t, mark),
                                               place_of(t, mark + 1), &seconds);
            zero_link_keep(t->link, st);
            if (st == ZERO_OK)
                zero_profile_add(t->profile, m->program, m->begun,
                                 (zero_profile_entry){.seconds = seconds});
        }
    }
}

static void set(zero_device_times *t, const zero_instruction *i)
{
    if (t->n - t->first == t->watch->marks) read_all(t);
    *at(t, t->n) = (struct zero_device_mark){i, t->program};
    t->watch->set(t->math, place_of(t, t->n++));
}

void zero_device_times_next(zero_device_times *t, const zero_instruction *i)
{
    const zero_instruction *now = t->n > 0 ? at(t, t->n - 1)->begun : NULL;
    if (now && i && now->op == i->op &&
        zero_profile_column(t->profile, now) == zero_profile_column(t->profile, i))
        return;
    if (now && now->op == ZERO_OP_OVERFLOW) read_all(t);
    set(t, i);
}

/* Without overlap a walk ends by waiting for gathers: then these are known, too. */
void zero_device_times_end(zero_device_times *t)
{
    const zero_instruction *last = t->n > 0 ? at(t, t->n - 1)->begun : NULL;
    set(t, NULL);
    if (last && zero_ops[last->op].kind == ZERO_WORK_EXCHANGE_WAIT) read_all(t);
}

void zero_device_times_read(zero_device_times *t)
{
    if (t->watch) read_all(t);
}
