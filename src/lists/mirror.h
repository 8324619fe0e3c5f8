/* mirror.h - where the mirrors of a device's `in` and `out` lie in staging (spec.h). */
#pragma once

#include "lists/spec.h"

/* Bytes from the beginning of a rank's staging. */
typedef struct {
    size_t in, out;
    size_t staged; /* the algorithm's own staging; without a device 0 */
} zero_mirrors;

zero_mirrors zero_collective_mirrors(const zero_collective_spec *spec, int size, int rank);

/* The same collective on the mirrors, for the algorithm: their pieces adjoin. */
zero_collective_spec zero_collective_mirrored(const zero_collective_spec *spec);

/* Bytes from a rank's mirror of `in` (`out`) to that of its next neighbour; without a
 * device the spec's own. */
size_t zero_collective_in_apart(const zero_collective_spec *spec);
size_t zero_collective_out_apart(const zero_collective_spec *spec);
