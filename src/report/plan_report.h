/* plan_report.h - everything that `zero plan` shows, before it is shown.
 *
 * Each picture of it is a file of its own: plan_facts.h, plan_program.h, plan_peers.h,
 * chart.h. */
#pragma once

#include "plan/ablation.h"
#include "plan/pipeline.h"
#include "plan/plan_batch.h"
#include "report/machine_file.h"
#include "train/config.h"

/* A request for a plan. */
typedef struct {
    zero_config config; /* as options gave it; its strings are borrowed */
    int n_ranks, rank;
    bool all_stages;
    bool show_schedule; /* the JSON includes the programs */
    int64_t fit;        /* bytes; 0: not asked for */
    int64_t fit_disk;   /* bytes of a rank's file; 0: any number */
    bool fit_batch;     /* the largest micro batch is asked for that fits fit_memory */
    int64_t fit_memory; /* bytes of a rank, or of its device */
    bool simulated; /* all ranks are shown, in time: none is `rank`, memory is left out */
    bool peers;     /* bytes from rank to rank are asked for */
    bool ablation;  /* plans without one part each are asked for */
    bool has_time;  /* times are asked for, on this machine */
    zero_plan_machine machine;
    bool has_network, has_disk; /* of the machine, what was given */
    bool has_file; /* --machine: what was not given comes from there (plan_machine.h) */
    zero_machine_file file;
} zero_plan_request;

/* Parts of a plan that a machine file filled in. */
typedef struct {
    bool nodes, flops, network, node_network, memory;
} zero_plan_filled;

typedef struct {
    zero_schedule schedule;
    zero_plan_ledger ledger;
    zero_plan_time time;   /* if request.has_time */
    zero_plan_batch batch; /* if request.fit_batch; of several stages: 0 if none fits */
    int64_t *peers;        /* if request.peers: [ranks][ranks] (plan_peers.h); owned */
    json_t *facts;         /* besides: what else was asked for, as the tree has it; owned */
} zero_plan_stage;

/* The same model, ranks and batch as a pipeline: with --pp beside all stages, which then
 * are those without one. */
typedef struct {
    zero_pipeline pipeline;
    zero_pipeline_time time; /* on the request's machine; without one only `idle` counts */
    double bubble;           /* the idle share if messages take no time */
} zero_plan_pipeline;

typedef struct {
    zero_plan_request request;
    zero_plan_filled filled;
    zero_config config; /* completed */
    zero_shape shape;
    const char *whose_vocab;
    zero_model model; /* the whole one */
    zero_model made;  /* the rank's part, if that is another one */
    const zero_model *part;
    zero_layout layout; /* of all ranks */
    zero_tp_place place;
    bool is_auto;    /* --collectives auto */
    const char *why; /* is_auto: the reason for the choice */
    zero_algorithm collectives;
    zero_plan_stage *stages; /* [n], owned; in the order of their numbers */
    int n;
    zero_plan_pipeline pipelines[ZERO_PIPELINE_KINDS]; /* P stages each; or 0 */
} zero_plan_report;

/* The report must stay where it is. Fails, leaving nothing, as the plan does:
 * ZERO_ERR_INVALID for a batch that the ranks do not divide, for instance. */
zero_status zero_plan_report_make(zero_plan_report *report,
                                  const zero_plan_request *request);
/* The same without stages: what zero_plan_report_input() needs. */
zero_status zero_plan_report_open(zero_plan_report *report,
                                  const zero_plan_request *request);
void zero_plan_report_destroy(zero_plan_report *report);

/* Plans a stage, and what is asked for beside it. */
zero_status zero_plan_stage_make(zero_plan_report *report, int number,
                                 zero_plan_stage *stage);
/* Bytes of the host's memory, where --fit counts those of a device; 0: any. */
size_t zero_plan_host_room(const zero_plan_report *report);

/* --fit batch: more ranks make a larger batch, as none is given for all ranks together. */
bool zero_plan_batch_grows(const zero_plan_report *report);

int zero_plan_stage_number(const zero_plan_stage *stage);

/* Another rank's own program. */
typedef struct {
    zero_tp_place place;
    zero_model made;
    zero_schedule schedule;
} zero_plan_rank;

zero_status zero_plan_rank_open(const zero_plan_report *report, int stage, int rank,
                                zero_plan_rank *of);
void zero_plan_rank_close(zero_plan_rank *of); /* also after a failure */

/* What decides the program of a stage, of a rank at `place` with this part of the model. */
zero_plan_input zero_plan_report_input(const zero_plan_report *report,
                                       const zero_model *part, const zero_tp_place *place,
                                       int stage);
/* REDUCE, GATHER, and what replicas add up, together. */
zero_plan_exchange zero_plan_data_of(const zero_plan_ledger *ledger);

/* The disk counts as hidden if a step with offload takes at most this many times one
 * without. */
#define ZERO_PLAN_HIDDEN 1.05
