/* page.h - a report as one HTML file: no network, no script, light and dark, and it prints.
 *
 * The page is well-formed XML, so that anything can check it. Texts from outside come in
 * through escape.h alone. A section without data says why it has none. */
#pragma once

#include "pages/run.h"
#include "pages/study.h"
#include "trace/trace_read.h"

/* What a page is made from; all borrowed. */
typedef struct {
    const zero_run *runs; /* [n_runs] side by side */
    int n_runs;
    json_t *const *studies; /* [n_studies] reports */
    int n_studies;
    const zero_traced *trace; /* of the first run; NULL: none was given */
} zero_page;

/* Writes the page to a stream, whose errors the caller sees by ferror(). ZERO_ERR_NOMEM. */
zero_status zero_page_print(const zero_page *page, FILE *out);
