/* plan_file.h - the scratch file in `zero plan`: what a step moves, and how long it takes. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Bytes read and written per step; nothing without --offload. */
/* Whether a step hides its transfers, by the ideal machine of the plan. */
typedef struct {
    double tokens;      /* of a step */
    double hides_all;   /* tokens whose step hides all transfers of states: 4 F/B */
    double hides_reads; /* `lazy`: tokens whose forward pass hides the reads: 6 F/R */
    double hidden; /* tokens from which the step takes at most ZERO_PLAN_HIDDEN times one
                         * without offload; INFINITY: no number does */
    double efficiency; /* a step without offload, in steps with it */
    double daily;      /* bytes written to a node's disk in a day */
    int sharers;       /* ranks of the node */
} zero_plan_disk;
/* Both if request.has_disk; the second else does nothing. */
zero_plan_disk zero_plan_disk_of(const zero_plan_report *r, const zero_plan_stage *stage);
void zero_plan_show_disk(const zero_plan_report *r, const zero_plan_stage *stage,
                         FILE *out);

void zero_plan_show_file(const zero_plan_stage *stage, FILE *out);
