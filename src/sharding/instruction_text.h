/* instruction_text.h - an instruction in words and in bytes, as programs are printed,
 * traced and recorded. */
#pragma once

#include "sharding/schedule.h"

#define ZERO_PLAN_TEXT 96

/* The unit or group that an instruction names: "block 3"; empty for LOSS and the like. */
const char *zero_text_operand(const zero_model *model, const zero_instruction *i);
/* The same with the part of the unit's pass, if it has parts: "block 3.1". */
void zero_text_part(const zero_model *model, const zero_instruction *i,
                    char text[ZERO_PLAN_TEXT]);

/* "BACKWARD head, microbatch 0" */
void zero_text_instruction(const zero_model *model, const zero_instruction *i,
                           char text[ZERO_PLAN_TEXT]);

/* The bytes that an instruction sends, writes for others to read, or gives back; -1 for
 * others. */
int64_t zero_plan_instruction_bytes(const zero_schedule *s, const zero_instruction *i);
