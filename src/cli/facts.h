/* facts.h - what only the program knows about a run: its command, its options, when it
 * began. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cli/run_options.h"

typedef struct {
    char *command;    /* as it was given, quoted for a shell; owned */
    json_t *options;  /* those that differ from their defaults; owned */
    char started[24]; /* UTC, as 2026-11-22T08:18:50Z */
    int64_t run;      /* tells runs apart: the same moment in nanoseconds; rank 0's */
    double start;     /* the same moment, by zero_clock_seconds() */
} zero_facts;

/* Call it before the configuration is completed. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_facts_init(zero_facts *f, const zero_options *given,
                                           const zero_config *config);
void zero_facts_destroy(zero_facts *f); /* accepts all zeros */
