/* stop.cc - the end of a program whose kernel breaks a rule. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "gpu/emulated/block.h"

namespace emulated
{

void stop(int thread, place at, const char *format, ...)
{
    const dim3 n = running.of->threads;
    const unsigned t = (unsigned)thread;
    std::fprintf(stderr,
                 "emulator: kernel %s, block (%u,%u,%u), thread (%u,%u,%u), %s:%d: ",
                 running.of->kernel, blockIdx.x, blockIdx.y, blockIdx.z, t % n.x,
                 t / n.x % n.y, t / n.x / n.y, at.file, at.line);
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    va_end(arguments);
    std::fputs("\n", stderr);
    std::abort();
}

} // namespace emulated
