/* streams.cc - queues of work, and the random moments at which it is executed.
 *
 * A stream executes its entries in their order. A wait goes on when the record that it names has
 * passed; the legacy stream and the blocking ones wait for each other's earlier entries. So every
 * entry waits for earlier ones only, and following what blocks an entry ends at one that can be
 * executed. */
#include <chrono>

#include "gpu/emulated/device.h"

namespace emulated
{

/* ---- execution ---- */

static uint64_t first_of(const CUstream_st *s)
{
    return s->queue.front().number;
}

/* The stream whose first entry has to be executed before the first one of s; s itself if none. */
static CUstream_st *blocker_of(CUstream_st *s)
{
    const CUstream_st::entry &first = s->queue.front();
    if (first.waits && !first.waits->has_passed) return first.waits->stream;
    if (!s->is_legacy && !s->is_blocking) return s;
    for (CUstream_st *other : the_machine()->streams) {
        const bool waits = other->device == s->device && other != s && other->is_blocking &&
                           (s->is_legacy || other->is_legacy);
        if (waits && !other->queue.empty() && first_of(other) < first.number) return other;
    }
    return s;
}

static double now()
{
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(since).count();
}

static bool has_failed(int device)
{
    return the_machine()->devices[device].error != cudaSuccess;
}

/* Memory stays open from one work to the next, and is closed before the host goes on: where there are
 * no protection keys, both take a system call for each piece. */
static int opened = -1;

static void close_memory()
{
    if (opened >= 0) memory_close(opened);
    opened = -1;
}

/* At the entries of this file that execute work: the host has no memory open when they return. */
struct until_return {
    ~until_return()
    {
        close_memory();
    }
};

static void open_only(int device)
{
    if (opened == device) return;
    close_memory();
    memory_open(device);
    opened = device;
}

static void run(int device, work *work)
{
    if (work->number == the_machine()->set.failing) {
        the_machine()->devices[device].error = cudaErrorLaunchFailure;
        return;
    }
    open_only(device);
    work->execute();
}

/* The first entry of a stream that nothing blocks. After a failure work is dropped, but nobody waits
 * for it. */
static void execute(CUstream_st *s)
{
    CUstream_st::entry first = std::move(s->queue.front());
    s->queue.pop_front();
    if (first.work && !has_failed(s->device)) run(s->device, first.work.get());
    if (first.records) {
        first.records->has_passed = true;
        first.records->milliseconds = now();
    }
}

/* Until the entries of the stream up to `number` have been executed. */
static void force(CUstream_st *s, uint64_t number)
{
    while (!s->queue.empty() && first_of(s) <= number) {
        CUstream_st *at = s, *before = blocker_of(at);
        for (; before != at; before = blocker_of(at)) at = before;
        execute(at);
    }
}

cudaError_t stream_drain(CUstream_st *s)
{
    until_return closes;
    force(s, UINT64_MAX);
    return the_machine()->devices[s->device].error;
}

cudaError_t device_drain(int device)
{
    until_return closes;
    for (CUstream_st *s : the_machine()->streams)
        if (s->device == device) force(s, UINT64_MAX);
    return the_machine()->devices[device].error;
}

/* ---- random moments ---- */

/* Philox would do; this is splitmix64. */
static uint64_t scramble(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t draw(uint64_t limit)
{
    machine *m = the_machine();
    return scramble(m->set.order ^ scramble(m->draws++)) % limit;
}

/* Each stream has phases of 64 moments, in which it executes nothing, an entry now and then, or all
 * that it can. So streams run far ahead of each other. */
static bool wants_to(std::size_t stream)
{
    static const uint64_t of_16[] = {0, 0, 1, 8, 15};
    const machine *m = the_machine();
    const uint64_t phase =
        scramble(m->set.order ^ scramble(m->moments / 64 * 1024 + stream));
    return draw(16) < of_16[phase % 5];
}

void pass_moment()
{
    until_return closes;
    machine *m = the_machine();
    if (m->set.order == 0) {
        for (int d = 0; d < m->set.devices; d++) device_drain(d);
        return;
    }
    m->moments++;
    while (!m->streams.empty()) {
        const std::size_t i = draw(m->streams.size());
        CUstream_st *s = m->streams[i];
        if (s->queue.empty() || blocker_of(s) != s || !wants_to(i)) return;
        execute(s);
    }
}

/* ---- entries ---- */

static CUstream_st *create(int device, bool is_legacy, bool is_blocking)
{
    CUstream_st *s = new CUstream_st{device, is_legacy, is_blocking, {}};
    the_machine()->streams.push_back(s);
    return s;
}

CUstream_st *stream_of(cudaStream_t handle)
{
    machine *m = the_machine();
    if (!handle) {
        device *d = &m->devices[m->current];
        if (!d->legacy) d->legacy = create(m->current, true, true);
        return d->legacy;
    }
    for (CUstream_st *s : m->streams)
        if (s == handle) return s;
    return nullptr;
}

cudaError_t stream_add(CUstream_st *s, work *work)
{
    machine *m = the_machine();
    std::unique_ptr<emulated::work> owned(work);
    if (has_failed(s->device)) return note(m->devices[s->device].error);
    owned->number = ++m->works;
    s->queue.push_back({++m->numbered, std::move(owned), nullptr, nullptr});
    pass_moment();
    return cudaSuccess;
}

std::shared_ptr<moment> stream_record(CUstream_st *s)
{
    machine *m = the_machine();
    const int patience = m->set.order == 0 ? 0 : (int)draw(8);
    auto record = std::make_shared<moment>(moment{s, ++m->numbered, false, 0, patience});
    s->queue.push_back({record->number, nullptr, record, nullptr});
    pass_moment();
    return record;
}

void stream_wait(CUstream_st *s, std::shared_ptr<moment> moment)
{
    s->queue.push_back({++the_machine()->numbered, nullptr, nullptr, std::move(moment)});
    pass_moment();
}

void moment_reach(moment *moment)
{
    until_return closes;
    if (!moment->has_passed) force(moment->stream, moment->number);
}

/* One time in three all other streams run ahead as far as they can first: work that forgot to wait
 * for this moment is executed before it. */
static void run_ahead_of(const CUstream_st *stream)
{
    bool has_moved = the_machine()->set.order > 0 && draw(3) == 0;
    while (has_moved) {
        has_moved = false;
        for (CUstream_st *s : the_machine()->streams)
            while (s != stream && !s->queue.empty() && blocker_of(s) == s) {
                execute(s);
                has_moved = true;
            }
    }
}

bool moment_asked(moment *moment)
{
    until_return closes;
    if (!moment || moment->has_passed) return true;
    if (--moment->patience < 0) {
        run_ahead_of(moment->stream);
        moment_reach(moment);
    }
    return moment->has_passed;
}

} // namespace emulated
