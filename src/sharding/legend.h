/* legend.h - a line for each word of a program: its instructions and its classes of memory.
 *
 * One table for all that prints programs: plans, charts, lessons, reports. A line is no longer than
 * ZERO_LEGEND_TEXT, so that it stands beside the word in 80 columns. */
#pragma once

#include "sharding/schedule.h"

#define ZERO_LEGEND_WORD 19 /* columns of the longest word */
#define ZERO_LEGEND_TEXT 57

/* The legend of GATHER: "begins to collect a group's parameters from all ranks". */
const char *zero_op_meaning(zero_op op);
/* The legend of "buckets": "staging of collectives". */
const char *zero_class_meaning(zero_class cls);

/* A change of memory that programs show beside their instructions, since no instruction says it: the
 * gradient of a group has been used for the last time (sharding/freed.h). */
#define ZERO_FREED_NAME "(freed)"
const char *zero_freed_meaning(void);
