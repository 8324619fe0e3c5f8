/* plan_file.h - the scratch file in `zero plan`: what a step moves, and how long it takes. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Whether a step hides its transfers, by the ideal machine of the plan. */
typedef struct {
    double tokens;      /* of a step */
    double hides_all;   /* tokens whose step hides all transfers of states: 4 F/B */
    double hides_reads; /* `lazy`: tokens whose forward pass hides the reads: 6 F/R */

    /* Tokens from which the step takes at most ZERO_PLAN_HIDDEN times one without offload;
     * INFINITY: no number does. */
    double hidden;
    double efficiency; /* a step without offload, in steps with it */
    double daily;      /* bytes written to a node's disk in a day */
    int sharers;       /* ranks of the node */
} zero_plan_disk;
/* request.has_disk is true. */
zero_plan_disk zero_plan_disk_of(const zero_plan_report *r, const zero_plan_stage *stage);
/* Shows nothing without --disk. */
void zero_plan_show_disk(const zero_plan_report *r, const zero_plan_stage *stage,
                         FILE *out);

/* Bytes read and written per step; shows nothing without --offload. */
void zero_plan_show_file(const zero_plan_stage *stage, FILE *out);
