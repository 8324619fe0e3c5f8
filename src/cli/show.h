/* show.h - what rank 0 prints about a run. Nothing here is collective or fails. */
#pragma once

#include "cli/session.h"

/* Totals of a finished run. */
typedef struct {
    double loss, val_loss;
    bool has_val_loss;
    double seconds;      /* of all steps, evaluations and samples left out */
    double eval_seconds; /* of those */
    int64_t tokens;
    zero_profile_ranks profile; /* of the steps */
    char digest[33];
} zero_run_totals;

/* The table of what is about to run, and warnings. */
void zero_show_setup(const zero_session *s);

/* What calculates, in a line: other words may mean other bits. */
void zero_show_arithmetic(const zero_session *s, char *text, size_t size);

/* One line for a step; `in_bar` draws a bar instead, over the one before. */
void zero_show_step(const zero_session *s, const zero_metrics_step *step, bool in_bar);
void zero_show_evaluation(const zero_session *s, const zero_metrics_step *step);

/* Generated text under a title. Bytes that are no printable UTF-8 appear as '?'. */
void zero_show_sample(const zero_session *s, const char *title, const int32_t *tokens,
                      int64_t n);

/* The summary: loss, speed, profile, memory, communication, digest. */
void zero_show_totals(const zero_session *s, const zero_run_totals *totals);
