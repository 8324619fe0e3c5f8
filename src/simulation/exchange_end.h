/* exchange_end.h - a rank's part of a collective that is over, as exchange.h tells it. */
#pragma once

#include <stdint.h>

typedef struct {
    int rank;          /* of the world */
    int64_t call;      /* number in its group */
    const void *begin; /* the caller's, of its begin */
    double begun, ended;
} zero_exchange_end;
