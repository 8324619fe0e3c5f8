/* matching.h - messages between parts. As in MPI, those between a pair match in the order in which
 * they are posted. */
#pragma once

#include "simulation/parts.h"

/* Posts the message of a step; the part has fewer requests in flight than it may. */
void zero_matching_send(zero_exchanges *x, int32_t part, const zero_packed_step *step);
void zero_matching_receive(zero_exchanges *x, int32_t part, const zero_packed_step *step);
/* The message of a transfer has arrived. ended[2]: the parts of which a request has ended, or
 * ZERO_NO_PART. */
void zero_matching_arrived(zero_exchanges *x, int32_t transfer, int32_t *ended);
