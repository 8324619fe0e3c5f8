/* show.h - what rank 0 prints about a run. Nothing here is collective or fails. */
#pragma once

#include "base/topology.h"
#include "data/corpus.h"
#include "engine/engine.h"
#include "train/config.h"
#include "train/metrics.h"

/* A run as it is shown; all borrowed. */
typedef struct {
    const zero_config *config; /* completed */
    const zero_comm *world;
    const zero_topology *topology;
    const zero_corpus *corpus;
    const zero_model *model;
    const zero_engine *engine;
    int node_ranks;              /* on this machine */
    int blas_threads;            /* in force; 0: this BLAS cannot be told */
    const char *why_collectives; /* what --collectives auto saw; NULL: not auto */

    int64_t start;       /* steps that were done before this run */
    bool has_loaded;     /* weights are a checkpoint's */
    const char *from;    /* in words, what the run goes on from */
    const char *changes; /* options that differ from the saved run's; may be empty */
} zero_run_view;

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
void zero_show_setup(const zero_run_view *v);

/* What calculates, in a line: other words may mean other bits. */
void zero_show_arithmetic(const zero_run_view *v, char *text, size_t size);

/* One line for a step; `in_bar` draws a bar instead, over the one before. */
void zero_show_step(const zero_run_view *v, const zero_metrics_step *step, bool in_bar);
void zero_show_evaluation(const zero_run_view *v, const zero_metrics_step *step);

/* Generated text under a title. Bytes that are no printable UTF-8 appear as '?'. */
void zero_show_sample(const zero_run_view *v, const char *title, const int32_t *tokens,
                      int64_t n);

/* The summary: loss, speed, profile, memory, communication, digest. */
void zero_show_totals(const zero_run_view *v, const zero_run_totals *totals);
