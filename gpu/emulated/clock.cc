/* clock.cc - what time it is: the machine's clock, or one that work moves by what it is said to take.
 *
 * With the second, ZERO_EMULATED_CALL, everything is executed as soon as it is queued, and each stream
 * has a time at which its work would have ended. Work begins when its stream, what the stream waits
 * for, and the host have come so far. The host's time moves by questions alone, and to the end of
 * what it waits for: whatever the host computes, and messages between processes, take none. */
#include <algorithm>
#include <chrono>

#include "gpu/emulated/device.h"

namespace emulated
{

static const double question = 1e-3; /* milliseconds */

static bool is_moved_by_work()
{
    return the_machine()->set.call > 0;
}

static double machine_time()
{
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(since).count();
}

void clock_work(CUstream_st *s, const work *work)
{
    const machine *m = the_machine();
    const double copy = 1e-9 * m->set.copy * (double)work->copied;
    s->time = std::max(s->time, m->time) + (work->copied > 0 ? copy : 1e-6 * m->set.call);
}

double clock_record(const CUstream_st *s)
{
    return is_moved_by_work() ? std::max(s->time, the_machine()->time) : machine_time();
}

void clock_wait(CUstream_st *s, const moment *moment)
{
    s->time = std::max(s->time, moment->milliseconds);
}

void clock_host_waits(double milliseconds)
{
    machine *m = the_machine();
    m->time = std::max(m->time, milliseconds);
}

bool clock_host_asks(const moment *moment)
{
    if (!is_moved_by_work()) return true;
    the_machine()->time += question;
    return moment->milliseconds <= the_machine()->time;
}

} // namespace emulated
