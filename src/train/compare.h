/* compare.h - whether all ranks were given the same. */
#pragma once

#include "comm/comm.h"

/* Collective: ZERO_ERR_INVALID on ranks with other values than rank 0, naming the first that
 * differs. No verdict: the caller agrees on it. */
ZERO_NODISCARD zero_status zero_compare_specs(zero_comm *comm, size_t n,
                                              const char *const names[],
                                              const int64_t mine[]);
