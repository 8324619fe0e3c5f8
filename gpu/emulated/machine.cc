/* machine.cc - the emulated machine: its settings, and one error at a time. */
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gpu/emulated/device.h"
#include "gpu/emulated/emulator.h"

namespace emulated
{

static int64_t read_number(const char *name, int64_t least, int64_t most, int64_t otherwise)
{
    const char *text = std::getenv(name);
    if (!text) return otherwise;
    char *end;
    errno = 0;
    const long long number = std::strtoll(text, &end, 10);
    if (end != text && *end == 0 && errno == 0 && number >= least && number <= most)
        return number;
    std::fprintf(stderr, "emulator: %s='%s': it needs a whole number from %lld to %lld\n",
                 name, text, (long long)least, (long long)most);
    std::abort();
}

static bool read_order_of_threads()
{
    const char *text = std::getenv("ZERO_EMULATED_THREADS");
    if (!text || std::strcmp(text, "up") == 0) return false;
    if (std::strcmp(text, "down") == 0) return true;
    std::fprintf(stderr, "emulator: ZERO_EMULATED_THREADS='%s': it needs up or down\n",
                 text);
    std::abort();
}

static settings read_settings()
{
    settings s;
    s.devices = (int)read_number("ZERO_EMULATED_DEVICES", 0, most_devices, 2);
    s.capability = (int)read_number("ZERO_EMULATED_SM", 70, 129, 80);
    s.memory = (std::size_t)read_number("ZERO_EMULATED_MEMORY", 0, INT64_MAX, 16LL << 30);
    s.order = (uint64_t)read_number("ZERO_EMULATED_ORDER", 0, INT64_MAX, 1);
    s.failing = read_number("ZERO_EMULATED_FAIL", 0, INT64_MAX, 0);
    s.call = (double)read_number("ZERO_EMULATED_CALL", 0, INT64_MAX, 0);
    s.copy = (double)read_number("ZERO_EMULATED_COPY", 0, INT64_MAX, 0);
    if (s.call > 0) s.order = 0;
    s.has_keys = read_number("ZERO_EMULATED_KEYS", 0, 1, 1) == 1;
    s.has_peers = read_number("ZERO_EMULATED_PEERS", 0, 1, 1) == 1;
    s.is_open = read_number("ZERO_EMULATED_MPI", 0, 1, 0) == 1;
    s.down = read_order_of_threads();
    return s;
}

static machine *begin()
{
    machine *m = new machine{};
    m->set = read_settings();
    m->owner = pthread_self();
    watch_faults();
    return m;
}

machine *the_machine()
{
    static machine *only = begin();
    if (!pthread_equal(only->owner, pthread_self())) {
        std::fputs("emulator: CUDA was called by a second thread of the process\n", stderr);
        std::abort();
    }
    return only;
}

cudaError_t note(cudaError_t error)
{
    if (error != cudaSuccess) the_machine()->last = error;
    return error;
}

cudaError_t current_error()
{
    const machine *m = the_machine();
    return m->set.devices == 0 ? cudaErrorNoDevice : m->devices[m->current].error;
}

} // namespace emulated

using emulated::the_machine;

void zero_emulated_threads(bool down)
{
    the_machine()->set.down = down;
}

void zero_emulated_order(uint64_t seed)
{
    the_machine()->set.order = seed;
}

void zero_emulated_capability(int sm)
{
    the_machine()->set.capability = sm;
}

int64_t zero_emulated_works(void)
{
    return the_machine()->works;
}
