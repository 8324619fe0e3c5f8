/* work.h - how much work an instruction is. Which ones take time at all: ops.def. */
#pragma once

#include "sharding/schedule.h"

/* Flops of a unit's forward pass over a microbatch. BACKWARD counts as two of them. */
double zero_plan_forward_flops(const zero_plan_input *input, int unit);

/* Part k of the pass that the instruction of a program has a part of. */
zero_unit_part zero_work_part(const zero_schedule *s, zero_program_kind program,
                              const zero_instruction *i, int64_t k);

/* Flops of an instruction; 0 unless it computes. A part has an equal share of its pass, or
 * none if it only takes what others joined. *share: of the pass; a walk's parts 0, 1, ...
 * keep it. */
double zero_work_flops(const zero_schedule *s, const zero_instruction *i, double *share);

/* Flops of the step's updates of whole matrices: those of the rank that has the most, and
 * of all matrices once. */
void zero_work_of_updates(const zero_schedule *s, double *most, double *all);

/* Seconds of a transfer that has the disk to itself; `read` and `write` are bytes per
 * second. 0 if `read` is 0. */
double zero_work_disk_seconds(const zero_schedule *s, const zero_instruction *i,
                              double read, double write);
