/* stages.h - the stages of ZeRO: one row each.
 *
 *     number   paper        parameters       gradients   optimizer
 *     0        none         whole            whole       whole
 *     1        P_os         whole            whole       pieces
 *     2        P_os+g       whole            pieces      pieces
 *     3        P_os+g+p     pieces           pieces      pieces
 *
 * A new stage is a file stage_NAME.c, which defines zero_stage_NAME, and its name in
 * ZERO_STAGES. Its number follows from its place there; formulas, reports, options and help
 * follow from its fields. Source: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 5 and
 * figure 1. */
#pragma once

#include "sharding/schedule.h"

/* The path of a gradient from BACKWARD to UPDATE (writer.h). */
typedef struct zero_gradient_path zero_gradient_path;
typedef struct zero_writer zero_writer;

typedef struct {
    const char *name;  /* the paper's: "P_os+g" */
    const char *words; /* what it shards beyond the stage before: "+ gradients" */
    /* By rule; small groups may stay whole. */
    zero_holding parameters, gradients, optimizer;
    const zero_gradient_path *path; /* of its steps */
    /* Writes a program's passes through units; fails in s->status. NULL: ranks have all
     * parameters whenever they compute. */
    void (*write_passes)(zero_writer *w);
} zero_stage;

#define ZERO_STAGES(ROW) ROW(none) ROW(os) ROW(os_g) ROW(os_g_p)

#define ZERO_STAGE_DECLARE(name) extern const zero_stage zero_stage_##name;
ZERO_STAGES(ZERO_STAGE_DECLARE)

#define ZERO_STAGE_ADD_ONE(name) +1
enum { ZERO_STAGE_COUNT = ZERO_STAGES(ZERO_STAGE_ADD_ONE) };

/* 0 <= number < ZERO_STAGE_COUNT */
const zero_stage *zero_stage_at(int number);

/* The words of a stage, for help; NULL if there is no stage of this number. */
const char *zero_stage_words(int number);
