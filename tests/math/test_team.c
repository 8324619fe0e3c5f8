/* Threads of a rank wait for each other. What they compute: test_operations.c. */
#include "support/team_test.h"

#include <time.h>

#define CALLS 40

/* In each call all threads write, wait and read what the others wrote. */
typedef struct {
    int call, said[MOST];
    atomic_int seen; /* by threads that saw all others' */
} round_table;

static void say_and_hear(const zero_thread *t, void *arg)
{
    round_table *table = arg;
    /* One is late, past the looks and yields of the others in every second call. */
    const struct timespec late = {.tv_nsec = table->call % 2 ? 1000000 : 10000};
    if (t->index == table->call % t->size) nanosleep(&late, NULL);
    table->said[t->index] = table->call;
    zero_thread_wait(t);
    int n = 0;
    for (int i = 0; i < t->size; i++) n += table->said[i] == table->call;
    if (n == t->size) table->seen++;
    zero_thread_wait(t);
}

typedef struct {
    zero_math *math;
    round_table table;
} sitting;

static void sit(void *arg)
{
    sitting *s = arg;
    for (s->table.call = 1; s->table.call <= CALLS; s->table.call++) {
        const struct timespec late = {.tv_nsec = s->table.call % 3 ? 0 : 1000000};
        nanosleep(&late, NULL); /* the others sleep */
        zero_team_run(s->math, say_and_hear, &s->table);
    }
}

static void sit_once_more(void *arg)
{
    sitting *s = arg;
    zero_team_hold(s->math, sit, s); /* held already */
}

TEST(threads_wait_for_each_other_awake_or_asleep)
{
    if (!zero_team_is_built()) skip();
    for (size_t i = 0; i < COUNT(teams); i++) {
        zero_math math = {.threads = teams[i]};
        sitting s = {.math = &math};
        for (int in_a_crowd = 0; in_a_crowd < 2;
             in_a_crowd++) { /* then they sleep at once */
            if (in_a_crowd) math.crowded_until = 1e300;
            zero_team_hold(&math, sit_once_more, &s);
            assert_int_equal(s.table.seen, CALLS * teams[i]);
            s.table.seen = 0;
        }
        assert_true(math.crowded_until == 1e300); /* the next hold knows it, too */
        sit(&s);                                  /* OpenMP waits */
        assert_int_equal(s.table.seen, CALLS * teams[i]);
    }
}
