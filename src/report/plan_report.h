/* plan_report.h - everything that `zero plan` shows, before it is shown. */
#pragma once

#include <stdio.h>

#include "engine/plan.h"
#include "engine/plan_fit.h"
#include "engine/plan_time.h"
#include "train/config.h"

/* What is asked of a plan. */
typedef struct {
    zero_config config; /* as options gave it; its strings are borrowed */
    int n_ranks, rank;
    bool all_stages;
    bool show_schedule; /* as JSON: the programs are a part of it */
    int64_t fit;        /* bytes; 0: not asked for */
    bool has_time;      /* a machine was given: */
    zero_plan_machine machine;
} zero_plan_request;

/* The least and the most over ranks. */
typedef struct {
    int64_t least, most;
} zero_plan_bounds;

/* One scheme of partition over ranks: all, or where there are many, a few of them. */
typedef struct {
    int n_ranks;                             /* looked at */
    zero_plan_bounds needed, sent, received; /* bytes; traffic: per step */
} zero_plan_spread;

/* The same step with --reproducible the other way. */
typedef struct {
    bool is_possible;
    char why_not[256];
    zero_plan_ledger ledger;
} zero_plan_price;

typedef struct {
    zero_schedule schedule;
    zero_plan_ledger ledger;
    int *kept; /* groups that stay from forward to backward; owned */
    int n_kept;
    size_t kept_bytes;
    zero_plan_spread spread[2]; /* by zero_partition_scheme */
    zero_plan_price price;      /* with several microbatches only */
    zero_plan_time time;        /* if request.has_time */
    zero_plan_fitted fitted;    /* if request.fit > 0 */
} zero_plan_stage;

typedef struct {
    zero_plan_request request;
    zero_config config; /* completed */
    zero_gpt2_shape shape;
    const char *whose_vocab;
    zero_model model;
    zero_layout layout;
    bool is_auto;    /* --collectives auto, and */
    const char *why; /* what it saw */
    zero_algorithm collectives;
    zero_plan_stage stages[4];
    int first, n; /* stages[first], ... are there */
} zero_plan_report;

/* The report stays where it is. The status of what is asked for, such as ZERO_ERR_INVALID for a
 * batch that the ranks do not divide; then nothing is left. */
ZERO_NODISCARD zero_status zero_plan_report_make(zero_plan_report *report,
                                                 const zero_plan_request *request);
void zero_plan_report_destroy(zero_plan_report *report);

/* Whether --memory-limit, if there is one, leaves room for what a rank needs. */
bool zero_plan_fits_limit(const zero_plan_report *report, const zero_plan_stage *stage);

/* At most 100 columns. plan_show.c: one stage */
void zero_plan_show(const zero_plan_report *report, FILE *out);
/* what they have in common: model, ranks, batch */
void zero_plan_show_setup(const zero_plan_report *report, FILE *out);
/* its memory alone: classes, the peak and where it is, what a rank needs */
void zero_plan_show_memory(const zero_schedule *schedule, const zero_plan_ledger *ledger,
                           FILE *out);
/* plan_stages.c: several side by side */
void zero_plan_show_stages(const zero_plan_report *report, FILE *out);
/* plan_program.c: the programs of the first stage. */
void zero_plan_show_programs(const zero_plan_report *report, FILE *out);
/* What an instruction sends, writes for others to read, or gives back; -1: nothing of these. */
int64_t zero_plan_instruction_bytes(const zero_schedule *s, const zero_instruction *i);
/* plan_json.c */
ZERO_NODISCARD zero_status zero_plan_show_json(const zero_plan_report *report, FILE *out);
