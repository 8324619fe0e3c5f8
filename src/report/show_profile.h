/* show_profile.h - the profile of a run as a table. */
#pragma once

#include <stdio.h>

#include "state/profile.h"

/* Classes of instructions that took a thousandth of the steps' time or more, the longest first,
 * and the rest in one line. `seconds` is the time of all steps. Local; cannot fail. */
void zero_show_profile(const zero_profile_ranks *ranks, int64_t steps, double seconds,
                       FILE *out);
