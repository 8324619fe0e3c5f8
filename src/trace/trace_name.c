#include "trace/trace_name.h"

#include <stdio.h>

#include "report/text.h"

const char *zero_trace_category(zero_op op)
{
    switch (op) {
    case ZERO_OP_FORWARD:
    case ZERO_OP_RECOMPUTE:
    case ZERO_OP_BACKWARD: return "compute";
    case ZERO_OP_GATHER:
    case ZERO_OP_GATHER_WAIT:
    case ZERO_OP_JOIN:
    case ZERO_OP_JOIN_WAIT:
    case ZERO_OP_COLLECT:
    case ZERO_OP_COLLECT_WAIT:
    case ZERO_OP_REDUCE:
    case ZERO_OP_REDUCE_WAIT:
    case ZERO_OP_ALL_REDUCE:
    case ZERO_OP_ALL_REDUCE_WAIT:
    case ZERO_OP_LOSS:
    case ZERO_OP_OVERFLOW:
    case ZERO_OP_COMPARE: return "communication";
    case ZERO_OP_FETCH:
    case ZERO_OP_FETCH_WAIT:
    case ZERO_OP_STORE:
    case ZERO_OP_STORE_WAIT:
    case ZERO_OP_FETCH_PARAM:
    case ZERO_OP_FETCH_PARAM_WAIT:
    case ZERO_OP_SAVE:
    case ZERO_OP_SAVE_WAIT:
    case ZERO_OP_RESTORE:
    case ZERO_OP_RESTORE_WAIT: return "disk";
    default: return "other";
    }
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
