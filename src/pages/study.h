/* study.h - a scaling study, read from what `zero sweep` wrote: study.json, its directory, or
 * study.csv. As strict as record.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "zero/status.h"

typedef struct {
    int ranks;
    bool measured;            /* else only the plan and the simulation may be there */
    double tokens_per_second; /* these are NAN if they are unknown */
    double efficiency;
    double step, lower, upper; /* seconds: median and quartiles */
    double exposed;            /* share */
    double planned, simulated; /* seconds of a step */
    bool fake_nodes;
    int64_t memory; /* measured peak of rank 0, bytes; 0: unknown (study.csv has none) */
} zero_study_point;

typedef struct {
    int stage;
    int n;
    zero_study_point *points; /* [n], owned, by ranks */
} zero_study_series;

typedef struct {
    const char *path; /* borrowed */
    bool is_strong;
    int n_series;
    zero_study_series *series; /* owned, by stage */
} zero_study;

void zero_study_destroy(zero_study *study); /* accepts all zeros */
