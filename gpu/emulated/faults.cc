/* faults.cc - a sentence about memory that may not be touched, before the program ends by it. */
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gpu/emulated/block.h"
#include "gpu/emulated/device.h"

namespace emulated
{

static struct sigaction earlier; /* what is done next */

/* Says who touched what, and lets the instruction fault again. */
static void describe(int signal, siginfo_t *info, void *)
{
    char text[512];
    const void *at = info->si_addr;
    const int owner = memory_owner(at);
    char what[64] = "which is no memory";
    if (owner >= 0) std::snprintf(what, sizeof what, "which is memory of device %d", owner);
    if (running.of)
        std::snprintf(text, sizeof text,
                      "emulator: kernel %s, launched at %s:%d, block (%u,%u,%u), thread "
                      "(%u,%u,%u) touches %p, %s\n",
                      running.of->kernel, running.of->at.file, running.of->at.line,
                      blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
                      threadIdx.z, at, what);
    else
        std::snprintf(text, sizeof text, "emulator: the host touches %p, %s\n", at, what);
    if (running.of || owner >= 0) (void)!write(STDERR_FILENO, text, strlen(text));
    sigaction(signal, &earlier, nullptr);
}

void watch_faults()
{
    struct sigaction action = {};
    action.sa_sigaction = describe;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &earlier);
}

} // namespace emulated
