#include "train/compare.h"

#include <inttypes.h>

#include "base/fail.h"

zero_status zero_compare_specs(zero_comm *comm, size_t n, const char *const names[],
                               const int64_t mine[])
{
    zero_status st = ZERO_OK;
    for (size_t i = 0; i < n; i++) {
        int64_t first = mine[i];
        ZERO_TRY(zero_comm_broadcast(comm, 0, &first, sizeof first));
        if (first != mine[i] && st == ZERO_OK)
            st = zero_fail(ZERO_ERR_INVALID,
                           "the spec's %s is %" PRId64 " here and %" PRId64
                           " on rank 0: expected one spec on all ranks",
                           names[i], mine[i], first);
    }
    return st;
}
