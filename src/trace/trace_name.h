/* trace_name.h - how a trace names what ranks do, of runs and of simulations alike. */
#pragma once

#include "lists/member.h"
#include "lists/spec.h"
#include "sharding/schedule.h"

#define ZERO_TRACE_COLLECTIVE 128

/* "compute", "communication", "disk", "other" */
const char *zero_trace_category(zero_op op);

/* "reduce-scatter block 3": a collective of REDUCE, GATHER and their like. */
void zero_trace_collective(const zero_model *model, const zero_instruction *i,
                           zero_collective_kind kind, char text[ZERO_TRACE_COLLECTIVE]);

/* One number of `call`, counted from 0 in a group of this part of the family, that no other
 * part's collectives have. */
int64_t zero_trace_sequence(zero_family_part part, int64_t call);
