/* metrics_read.h - a metrics file (metrics.h), read again.
 *
 * A run that was killed leaves half a line, or steps that it has taken after its last
 * checkpoint. The resumed run appends its first line and takes those steps again. What
 * counts is what came last: the last first line and the steps that are not taken again. */
#pragma once

#include <jansson.h>

#include "io/bytes.h"

/* A step's line, as bytes [at, at + length) of the file. */
typedef struct {
    int64_t step, line; /* its number in the file, from 1 */
    size_t at, length;
} zero_metrics_line;

typedef struct {
    const char *path;         /* borrowed */
    zero_bytes text;          /* the file */
    zero_metrics_line *steps; /* [n] in order of the steps; owned */
    int64_t n, room;
    json_t *run;    /* the last {"run": ...}, without that key; NULL: the file has none */
    json_t *final;  /* the last line; NULL: the run has not ended */
    int64_t n_runs; /* {"run": ...} lines of the file */
    int64_t run_line, final_line; /* their numbers; 0: the file has no such line */
    bool cut;                     /* it ends in half a line, as that of a killed run may */
    int64_t lost_lines;           /* of the whole file, as its lines say */
} zero_metrics_file;

/* Errors name the path and the line: ZERO_ERR_IO, ZERO_ERR_FORMAT also if there is no step,
 * ZERO_ERR_NOMEM. Release it with _destroy. */
zero_status zero_metrics_read(zero_metrics_file *file, const char *path);
/* The same from bytes in memory, which are copied; `path` is only for messages. */
zero_status zero_metrics_parse(zero_metrics_file *file, const char *path, const void *text,
                               size_t len);
void zero_metrics_file_destroy(zero_metrics_file *file); /* accepts all zeros */

/* Step line i as an object, which is the caller's (json_decref). ZERO_ERR_NOMEM. */
zero_status zero_metrics_step_at(const zero_metrics_file *file, int64_t i, json_t **step);
