#include <stdarg.h>

#include "base/legible.h"
#include "base/utf8.h"

static _Thread_local zero_failure last;
static _Thread_local char last_place[64];

const char *zero_last_error(void)
{
    return last.text;
}

const char *zero_last_error_place(void)
{
    zero_print(last_place, "%s:%d", last.file, last.line);
    return last_place;
}

/* The length without a last character that is cut off. */
static size_t whole_characters(const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t begin = len;
    while (begin > 0 && len - begin < 4 && (bytes[begin - 1] & 0xc0) == 0x80) begin--;
    bool is_cut = begin > 0 && bytes[begin - 1] >= 0xc0 &&
                  zero_utf8_length(bytes + begin - 1, len - begin + 1) == 0;
    return is_cut ? begin - 1 : len;
}

zero_status zero_fail_at(const char *file, int line, zero_status code, const char *fmt, ...)
{
    const char *slash = strrchr(file, '/');
    zero_failure new = {.status = code, .line = line};
    zero_print(new.file, "%s", slash ? slash + 1 : file);

    va_list args; /* the last error may be among them */
    va_start(args, fmt);
    char text[sizeof new.text];
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    bool is_cut = n >= (int)sizeof text;
    size_t len = n < 0 ? 0 : is_cut ? whole_characters(text, sizeof text - 1) : (size_t)n;
    zero_legible(text, len, new.text, sizeof new.text);
    bool has_last = strncmp(new.text, last.text, strlen(last.text)) == 0;
    if (has_last) new.is_agreed = last.is_agreed;
    last = new;
    return code;
}

zero_status zero_check_whole(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "%s %" PRId64 ": expected %" PRId64 " to %" PRId64,
                     name, value, least, most);
}

zero_failure zero_failure_keep(zero_status status)
{
    zero_failure kept = {.status = ZERO_OK};
    if (status != ZERO_OK) kept = last;
    kept.status = status;
    return kept;
}

zero_status zero_failure_restore(const zero_failure *kept)
{
    if (kept->status != ZERO_OK) last = *kept;
    return kept->status;
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
    case ZERO_ERR_DIVERGED:
    case ZERO_ERR_DIFFERENT:
    case ZERO_ERR_CORRUPTED:
    case ZERO_ERR_INTERNAL: break;
    }
    return 1;
}
