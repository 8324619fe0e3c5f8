/* fields.h - whether all ranks were given the same. */
#pragma once

#include "base/field.h"
#include "comm/control.h"

/* Compares n fields of *mine with rank 0's, by their values in words. `what` names the
 * struct in the error: "the spec". Collective, one verdict: ZERO_ERR_INVALID, naming the
 * first field that differs and both values. */
zero_status zero_compare_fields(zero_comm *comm, const char *what, int n,
                                const zero_field *fields, const void *mine);
