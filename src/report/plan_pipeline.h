/* plan_pipeline.h - pipelines beside ZeRO, for the same model, ranks and global batch.
 *
 * N ranks are P pipeline stages of D = N / P replicas; rank s*D + d is stage s of
 * replica d, so that the replicas of a stage, which reduce its gradients, are
 * neighbours. With M microbatches per rank without pipelines a pipeline has m = P * M of
 * them. Each rank has a node of its own. */
#pragma once

#include "report/plan_report.h"

/* ZERO_ERR_INVALID for ranks that P does not divide, and for options that pipelines do
 * not have. */
ZERO_NODISCARD zero_status zero_plan_pipelines_check(const zero_plan_report *report);

/* Fills in report->pipelines; the stages are there. Fails as zero_pipeline_make(). */
ZERO_NODISCARD zero_status zero_plan_pipelines_make(zero_plan_report *report);

/* The table; or, if the request shows schedules, the programs of the rank's stage.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_plan_show_pipelines(const zero_plan_report *report,
                                                    FILE *out);

/* The member "pipelines", in which the request's rank has its programs if they are
 * shown. */
void zero_plan_put_pipelines(const zero_plan_report *report, json_t *object);

/* The pipeline stage of the request's rank. */
int zero_plan_pipeline_stage(const zero_plan_report *report);
