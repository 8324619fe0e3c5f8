/* page_input.h - what a page is made from; all borrowed. */
#pragma once

#include "pages/figures.h"
#include "pages/record.h"
#include "pages/study.h"
#include "trace/trace_read.h"

typedef struct {
    const zero_record *records;  /* [n_records] runs, side by side */
    const zero_figures *figures; /* [n_records] */
    int n_records;
    const zero_study *studies; /* [n_studies] */
    int n_studies;
    const zero_traced *trace; /* of the first run; NULL: none was given */
} zero_page;
