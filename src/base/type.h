/* type.h - the types of zero/type.h as a list, for options, files and reports that name
 * one; and places in arrays of them. */
#pragma once

#include <stdbool.h>

#include "zero/type.h"

#define ZERO_TYPES 3 /* zero_type counts from 0 */

/* False, and *type as it was, if no type has this name. */
bool zero_type_find(const char *name, zero_type *type);

/* The name of type i, from 0 on; NULL past the last one. */
const char *zero_type_name_at(int i);

/* Element i of an array. */
static inline const void *zero_type_at(zero_type type, const void *x, int64_t i)
{
    return (const char *)x + zero_type_size(type) * (size_t)i;
}

static inline void *zero_type_to(zero_type type, void *x, int64_t i)
{
    return (char *)x + zero_type_size(type) * (size_t)i;
}
