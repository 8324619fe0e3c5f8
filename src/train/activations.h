/* activations.h - the type of activations that a user chooses, or that a place has by
 * default. */
#pragma once

#include "zero/status.h"
#include "zero/type.h"

/* The type for a run whose parameters are of `parameters`. `name` is what --activations
 * says; NULL: fp32, and on a device that computes with 16-bit rows the type of the
 * parameters. ZERO_ERR_INVALID, with the remedy, for another 16-bit type than the
 * parameters', and for a device that has none. */
ZERO_NODISCARD zero_status zero_activations_choose(const char *name, zero_type parameters,
                                                   const char *device,
                                                   zero_type *activations);
