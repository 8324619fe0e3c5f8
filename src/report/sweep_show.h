/* sweep_show.h - a study as a table: a row per point, stage by stage. */
#pragma once

#include <stdio.h>

#include "report/sweep.h"

void zero_sweep_show(const zero_sweep *sweep, FILE *out);
