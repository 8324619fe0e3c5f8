/* show.h - what rank 0 prints about a run. Nothing here is collective or fails. */
#pragma once

#include "base/topology.h"
#include "data/corpus.h"
#include "engine/engine.h"
#include "math/plugin.h"
#include "train/config.h"
#include "train/metrics.h"

/* A run as it is shown; all borrowed. */
typedef struct {
    const zero_config *config; /* completed */
    const zero_comm *world;
    const zero_topology *topology;
    const zero_corpus *corpus;
    const char *why_own_tokens; /* the ranks of a node do not share them; may be empty */
    const zero_model *model;
    const zero_engine *engine;
    const zero_device_about *device; /* its name is empty if the host computes */
    int node_ranks;                  /* on this machine */
    bool fake_nodes; /* there are more nodes than machines: times mean nothing */
    const char
        *threads_from;   /* the option or the variable that gave them; NULL: none did */
    const char *binding; /* of several threads: where they run */
    const char *why_collectives; /* --collectives auto: its reason; else NULL */
    const char *import_note; /* what differs from an imported model's files; may be empty */

    int64_t start;    /* steps that were done before this run */
    bool has_loaded;  /* the weights come from a checkpoint */
    const char *from; /* the resumed checkpoint, in words */
    /* Options that were not given and are the saved run's; may be empty. */
    const char *taken;
    const char *changes; /* options that differ from the saved run's; may be empty */
} zero_run_view;

/* Totals of a finished run. */
typedef struct {
    double loss, val_loss;
    bool has_val_loss;
    double seconds;      /* of all steps */
    double eval_seconds; /* of evaluations and samples */
    int64_t tokens;
    zero_step_time step_time;
    zero_profile_ranks profile; /* of the steps */
    char digest[33];
} zero_run_totals;

/* ---- before: show_run.c ---- */

/* What is about to run, and warnings. Its first four lines say what the run is. */
void zero_show_setup(const zero_run_view *v, const zero_metrics_run *run);

/* Backend, kernels and products, or the device, in one line. */
void zero_show_arithmetic(const zero_run_view *v, char *text, size_t size);

/* What of it decides bits: runs that differ in this may differ in bits. True if it is the
 * same on every CPU. */
bool zero_show_bits(const zero_run_view *v, char *text, size_t size);

/* ---- during: show.c ---- */

/* A line for a step, and one if it was skipped. */
void zero_show_step(const zero_run_view *v, const zero_metrics_step *step);
void zero_show_evaluation(const zero_run_view *v, const zero_metrics_step *step);

/* Generated text under a title. Bytes that are not printable UTF-8 appear as '?'. */
void zero_show_sample(const zero_run_view *v, const char *title, const int32_t *tokens,
                      int64_t n);

/* ---- after: show_run.c ---- */

/* The summary: loss, speed, profile, memory, communication, digest. With --quiet the loss
 * and the digest alone. Takes over the facts of the last line of the metrics. */
void zero_show_totals(const zero_run_view *v, const zero_run_totals *totals, json_t *final);

/* Instead of the summary, if the resumed checkpoint has all steps. */
void zero_show_finished(const zero_run_view *v, const char *digest);
