#include "trace/trace_name.h"

#include <stdio.h>

#include "report/text.h"

const char *zero_trace_category(zero_op op)
{
    return zero_ops[op].category ? zero_ops[op].category : "other";
}

void zero_trace_collective(const zero_model *model, const zero_instruction *i,
                           zero_collective_kind kind, char text[ZERO_TRACE_COLLECTIVE])
{
    char operand[ZERO_PLAN_TEXT];
    zero_text_part(model, i, operand);
    snprintf(text, ZERO_TRACE_COLLECTIVE, "%s %s", zero_collective_kind_name(kind),
             operand);
}

int64_t zero_trace_sequence(zero_family_part part, int64_t call)
{
    return call * ZERO_FAMILY_PARTS + part;
}
