/* plan_text.h - bytes and instructions in words. */
#pragma once

#include "sharding/schedule.h"

#define ZERO_PLAN_TEXT 96

/* "1.25 GiB": three digits and more, binary units; below 1 KiB "512 B". */
void zero_text_bytes(double bytes, char text[ZERO_PLAN_TEXT]);

/* What an instruction names: "block 3", "final"; empty for LOSS and the like. */
const char *zero_text_operand(const zero_model *model, const zero_instruction *i);

/* "BACKWARD head, microbatch 0" */
void zero_text_instruction(const zero_model *model, const zero_instruction *i,
                           char text[ZERO_PLAN_TEXT]);
/* The same of the instruction at which a schedule's memory is at its most, and its program. */
void zero_text_peak(const zero_schedule *s, char text[ZERO_PLAN_TEXT]);

/* Whether it belongs to a microbatch; parameters may be gathered for the next one. */
bool zero_instruction_has_microbatch(const zero_instruction *i);
