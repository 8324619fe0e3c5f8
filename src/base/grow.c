#include "base/grow.h"

zero_status zero_new_at(const char *file, int line, void *pointer, size_t n, size_t item,
                        const char *what)
{
    void *made = calloc(n > 0 ? n : 1, item);
    memcpy(pointer, &made, sizeof made); /* whatever it points to */
    if (made) return ZERO_OK;
    if (n == 1) return zero_fail_at(file, line, ZERO_ERR_NOMEM, "no memory for %s", what);
    return zero_fail_at(file, line, ZERO_ERR_NOMEM, "no memory for %zu %s", n, what);
}
