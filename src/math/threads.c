#include "math/threads.h"

#include "math/team.h"

bool zero_cpu_has_threads(void)
{
    return zero_team_is_built();
}

typedef struct {
    void (*call)(int index, void *arg);
    void *arg;
} each_call;

static void call_each(const zero_thread *me, void *arg)
{
    const each_call *each = arg;
    each->call(me->index, each->arg);
}

void zero_cpu_each_thread(int threads, void (*call)(int index, void *arg), void *arg)
{
    each_call each = {call, arg};
    zero_team_run(&(zero_math){.threads = threads}, call_each, &each);
}

void zero_cpu_hold_threads(zero_math *math, void (*work)(void *arg), void *arg)
{
    zero_team_hold(math, work, arg);
}
