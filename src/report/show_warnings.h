/* show_warnings.h - what may spoil a run, said before its first step. */
#pragma once

#include "report/show.h"

/* On stderr: why "auto" took a slower way, a rate that imported weights may not bear, more threads
 * than cores. `threads` compute in each rank. Local; cannot fail. */
void zero_show_warnings(const zero_run_view *v, int threads);
