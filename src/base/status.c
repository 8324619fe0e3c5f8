#include "zero/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[1024];
static _Thread_local char last_place[64];

const char *zero_last_error(void)
{
    return last_error;
}

const char *zero_last_error_place(void)
{
    return last_place;
}

/* Names of files, and what is in them, come from others; a terminal would obey them, and a
 * new line could pass for another message. */
static void hide_control_characters(char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f) *text = '?';
    }
}

zero_status zero_fail_at(const char *file, int line, zero_status code, const char *fmt, ...)
{
    const char *slash = strrchr(file, '/');
    snprintf(last_place, sizeof last_place, "%s:%d", slash ? slash + 1 : file, line);

    char text[sizeof last_error]; /* the last error may be among the arguments */
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    hide_control_characters(text);
    memcpy(last_error, text, sizeof text);
    return code;
}

int zero_exit_code(zero_status status)
{
    switch (status) {
    case ZERO_OK: return 0;
    case ZERO_ERR_INVALID:
    case ZERO_ERR_UNSUPPORTED: return 2;
    case ZERO_ERR_ENV:
    case ZERO_ERR_NOMEM: return 3;
    case ZERO_ERR_IO:
    case ZERO_ERR_FORMAT: return 4;
    case ZERO_ERR_STALLED: return 86;
    case ZERO_STOPPED: return 75;
    case ZERO_ERR_MPI:
    case ZERO_ERR_DIVERGED: break;
    }
    return 1;
}
