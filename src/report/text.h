/* text.h - bytes, counts and instructions in words. */
#pragma once

#include <stdio.h>

#include "nn/gpt2.h"
#include "sharding/instruction_text.h"
#include "train/config.h"

/* "1.25 GiB": three digits and more, binary units; below 1 KiB "512 B". Returns `text`. */
const char *zero_text_bytes(double bytes, char text[ZERO_PLAN_TEXT]);
/* The same as an argument of printf(). Valid in the enclosing block. */
#define ZERO_BYTES(bytes) zero_text_bytes((double)(bytes), (char[ZERO_PLAN_TEXT]){""})

/* The ending of a noun: "" for one, else "s". */
const char *zero_text_plural(int64_t n);

/* The name of a row, and blanks up to the column of values: of a plan, and of what a run prints on
 * stdout. A value that continues on the next line begins there after _continue(). */
void zero_text_row(const char *name, FILE *out);
void zero_text_continue(FILE *out);
void zero_text_run_row(const char *name);
void zero_text_run_continue(void);

/* "2 layers, 48 hidden, 1 head, T 32" */
void zero_text_shape(const zero_gpt2_shape *shape, char text[ZERO_PLAN_TEXT]);

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

/* The instruction at which a schedule's memory peaks, its number and its program. */
void zero_text_peak(const zero_schedule *s, char text[ZERO_PLAN_TEXT]);
