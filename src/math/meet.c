#include "math/meet.h"

#include "base/clock.h"

#define LOOKS    200    /* before the first yield: 5 to 10 us */
#define PATIENCE 200e-6 /* seconds of yields; falling asleep and waking takes 50 us */

int zero_meet_init(zero_meet *m)
{
    int error = pthread_mutex_init(&m->lock, NULL);
    if (error) return error;
    error = pthread_cond_init(&m->changed, NULL);
    if (error) pthread_mutex_destroy(&m->lock);
    atomic_init(&m->sleepers, 0);
    m->crowd = (zero_crowd){0};
    return error;
}

void zero_meet_destroy(zero_meet *m)
{
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
}

static bool is_set(zero_meet_number *number, unsigned value)
{
    return atomic_load_explicit(&number->value, memory_order_acquire) == value;
}

/* Leaves the core's other thread, and the bus, to others. */
static void look_away(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb");
#endif
}

static bool look(zero_meet_number *number, unsigned value)
{
    for (int i = 0; i < LOOKS; i++) {
        if (is_set(number, value)) return true;
        look_away();
    }
    return false;
}

static bool yield(zero_meet *m, zero_meet_number *number, unsigned value)
{
    const double end = zero_clock_seconds() + PATIENCE;
    do {
        zero_crowd_yield(&m->crowd);
        if (is_set(number, value)) return true;
    } while (zero_clock_seconds() < end && !zero_crowd_is_there(&m->crowd));
    return false;
}

void zero_meet_wait(zero_meet *m, zero_meet_number *number, unsigned value)
{
    if (is_set(number, value)) return;
    if (!zero_crowd_is_there(&m->crowd) && (look(number, value) || yield(m, number, value)))
        return;
    /* Either this thread sees the number, or the one that sets it sees a sleeper: both
 * operations are in one order for all threads. */
    pthread_mutex_lock(&m->lock);
    atomic_fetch_add(&m->sleepers, 1);
    while (atomic_load(&number->value) != value) pthread_cond_wait(&m->changed, &m->lock);
    atomic_fetch_sub(&m->sleepers, 1);
    pthread_mutex_unlock(&m->lock);
}

void zero_meet_set(zero_meet *m, zero_meet_number *number, unsigned value)
{
    atomic_store(&number->value, value);
    if (atomic_load(&m->sleepers) == 0) return;
    pthread_mutex_lock(&m->lock);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}
