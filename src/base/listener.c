#include "base/listener.h"

#include <stdarg.h>

#include "base/legible.h"

void zero_listener_tell(const zero_listener *listener, const char *fmt, ...)
{
    char line[sizeof((zero_failure *)0)->text], shown[sizeof line];
    va_list args;
    if (!listener || !listener->tell) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    zero_legible(line, strlen(line), shown, sizeof shown);
    listener->tell(listener->arg, shown);
}
