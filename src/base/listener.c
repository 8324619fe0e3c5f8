#include "base/listener.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/fail.h"

void zero_listener_tell(const zero_listener *listener, const char *fmt, ...)
{
    zero_failure line;
    va_list args;
    if (!listener || !listener->tell) return;
    va_start(args, fmt);
    vsnprintf(line.text, sizeof line.text, fmt, args);
    va_end(args);
    listener->tell(listener->arg, line.text);
}
