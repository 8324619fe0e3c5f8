/* text.h - bytes, counts and instructions in words. */
#pragma once

#include <stdio.h>

#include "sharding/schedule.h"
#include "train/config.h"

#define ZERO_PLAN_TEXT 96

/* "1.25 GiB": three digits and more, binary units; below 1 KiB "512 B". */
void zero_text_bytes(double bytes, char text[ZERO_PLAN_TEXT]);
double zero_text_mib(size_t bytes);

/* The ending of a noun: "" for one, else "s". */
const char *zero_text_plural(int64_t n);

/* The name of a row, and blanks up to the column of values: of a plan, and of what a run prints on
 * stdout. A value that continues on the next line begins there after _continue(). */
void zero_text_row(const char *name, FILE *out);
void zero_text_continue(FILE *out);
void zero_text_run_row(const char *name);
void zero_text_run_continue(void);

/* "2 x 4 ranks": N groups of T ranks; "8 ranks" without tensor parallelism; with --shard-ranks
 * "2 replicas of 4 ranks", or of 2 x 2 ranks. */
void zero_text_ranks(const zero_config *config, char text[ZERO_PLAN_TEXT]);
/* The factors of the global batch of a completed configuration, and their names. */
void zero_text_batch(const zero_config *config, char text[2 * ZERO_PLAN_TEXT]);
/* A sentence about tensor parallelism, and one about replicas; empty without them. */
void zero_text_shares(const zero_config *config, char text[2 * ZERO_PLAN_TEXT]);
void zero_text_replicas(const zero_config *config, char text[2 * ZERO_PLAN_TEXT]);

/* What more ranks would do to the global batch of a completed configuration. */
const char *zero_text_scaling(const zero_config *config);

/* The unit or group that an instruction names: "block 3"; empty for LOSS and the like. */
const char *zero_text_operand(const zero_model *model, const zero_instruction *i);
/* The same with the part of the unit's pass, if it has parts: "block 3.1". */
void zero_text_part(const zero_model *model, const zero_instruction *i,
                    char text[ZERO_PLAN_TEXT]);

/* "BACKWARD head, microbatch 0" */
void zero_text_instruction(const zero_model *model, const zero_instruction *i,
                           char text[ZERO_PLAN_TEXT]);
/* The instruction at which a schedule's memory peaks, its number and its program. */
void zero_text_peak(const zero_schedule *s, char text[ZERO_PLAN_TEXT]);

/* True if an instruction belongs to a microbatch. Gathers do not: parameters may be gathered
 * for the next one. */
bool zero_instruction_has_microbatch(const zero_instruction *i);
