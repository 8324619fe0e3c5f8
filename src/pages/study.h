/* study.h - a scaling study: one model on several numbers of ranks, in several stages.
 *
 *     weak      micro batch fixed:   efficiency = t1 / tN
 *     strong    global batch fixed:  efficiency = t1 n1 / (tN nN)
 *
 * t is the median of a point's steps without its first ones; t1 and n1 are those of the
 * stage's point with the fewest ranks among those that are measured. Source of a
 * measurement is the metrics of its run (train/metrics.h), and nothing else.
 *
 * A study is one tree, which is study.json (zero help studies):
 * settings, and "points" by stage, then by ranks, each with its "state", and what was
 * run and measured. */
#pragma once

#include "train/metrics_read.h"

#define ZERO_STUDY_FORMAT 1    /* "study" in study.json */
#define ZERO_STUDY_POINTS 4096 /* at most */

/* ---- points ---- */

/* Points of all stages and ranks, both ascending, that are missing. NULL without memory. */
json_t *zero_study_points(const int *stages, int n_stages, const int *ranks, int n_ranks);
/* The point of a study; NULL: it has none. */
json_t *zero_study_find(const json_t *study, int64_t stage, int64_t ranks);
int64_t zero_point_whole(const json_t *point, const char *key); /* "stage", "ranks" */
bool zero_point_is(const json_t *point,
                   const char *state); /* "missing", "failed", "measured" */
int zero_study_count(const json_t *study, const char *state);
#define ZERO_POINT_TEXT 48
/* "stage3-ranks4"; "stage 3 on 4 ranks". Both return `text`. */
const char *zero_point_name(const json_t *point, char text[ZERO_POINT_TEXT]);
const char *zero_point_words(const json_t *point, char text[ZERO_POINT_TEXT]);

/* Takes the measurement from a finished run's metrics. ZERO_ERR_FORMAT, with the point
 * as it was, if something is missing: the run has not ended, or it had other ranks or
 * steps. */
zero_status zero_study_measure(json_t *point, const zero_metrics_file *file, int64_t steps,
                               int64_t warm_up);
/* Efficiencies of all measured points; puts keys of points in their order. */
void zero_study_compare(json_t *study);
/* The efficiency of step time t on n ranks, relative to t1 on n1. */
double zero_study_efficiency(bool is_strong, double t1, int64_t n1, double t, int64_t n);

/* ---- forms ---- */

/* study.csv: a row per point, the first of which names the columns, as RFC 4180 has them
 * but for the line's end, which is a new line alone. */
void zero_study_print_csv(const json_t *study, FILE *out);
/* The table of `zero sweep`. */
zero_status zero_study_show(const json_t *study, bool has_plan, bool has_simulation,
                            FILE *out);

/* ---- what others wrote ---- */

/* True if the path names a study: a directory, or a file that begins as one.
 * ZERO_ERR_IO. */
zero_status zero_study_is(const char *path, bool *is);
/* Reads study.json, the directory that has it, or study.csv, as strictly as run.h, into
 * the tree that a report shows: "path", "scaling", "stages" with their points, and
 * "more" for texts and pages. The memory of points is from their metrics, where they lie
 * beside it. ZERO_ERR_IO, ZERO_ERR_FORMAT, ZERO_ERR_NOMEM. */
zero_status zero_study_read(json_t **report, const char *path);
/* From bytes in memory; without the memory of its points. */
zero_status zero_study_parse(json_t **report, const char *path, const void *text,
                             size_t len);

zero_status zero_study_print(const json_t *report, FILE *out);
/* The rules of Hoefler and Belli (SC'15), which of them it meets, and by what. */
zero_status zero_study_check(const json_t *report, FILE *out);
void zero_studies_print_csv(json_t *const *reports, int n, FILE *out);
