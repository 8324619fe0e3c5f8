#include "sharding/instruction_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"

/* ---- words ---- */

const char *zero_text_operand(const zero_model *model, const zero_instruction *i)
{
    if (i->unit >= 0) return model->units[i->unit].name;
    return i->group >= 0 ? model->groups[i->group].name : "";
}

void zero_text_part(const zero_model *model, const zero_instruction *i,
                    char text[ZERO_PLAN_TEXT])
{
    const char *operand = zero_text_operand(model, i);
    bool is_join = i->op == ZERO_OP_JOIN || i->op == ZERO_OP_JOIN_WAIT;
    if (i->part == ZERO_PART_ALL || is_join)
        snprintf(text, ZERO_PLAN_TEXT, "%s", operand);
    else
        snprintf(text, ZERO_PLAN_TEXT, "%s.%d", operand, i->part);
}

bool zero_instruction_has_microbatch(const zero_instruction *i)
{
    switch (i->op) {
    case ZERO_OP_LOAD:
    case ZERO_OP_FORWARD:
    case ZERO_OP_RECOMPUTE:
    case ZERO_OP_BACKWARD:
    case ZERO_OP_JOIN:
    case ZERO_OP_JOIN_WAIT:
    case ZERO_OP_KEEP:
    case ZERO_OP_COLLECT:
    case ZERO_OP_COLLECT_WAIT:
    case ZERO_OP_ROUND:
    case ZERO_OP_ACCUMULATE:
    case ZERO_OP_REDUCE:
    case ZERO_OP_REDUCE_WAIT:
    case ZERO_OP_ALL_REDUCE:
    case ZERO_OP_ALL_REDUCE_WAIT: return true;
    default: return false;
    }
}

void zero_text_instruction(const zero_model *model, const zero_instruction *i,
                           char text[ZERO_PLAN_TEXT])
{
    char operand[ZERO_PLAN_TEXT];
    zero_text_part(model, i, operand);
    int n = snprintf(text, ZERO_PLAN_TEXT, "%s%s%.60s", zero_op_name(i->op),
                     operand[0] ? " " : "", operand);
    if (n < ZERO_PLAN_TEXT && zero_instruction_has_microbatch(i))
        snprintf(text + n, (size_t)(ZERO_PLAN_TEXT - n), ", microbatch %d", i->microbatch);
}

/* ---- bytes ---- */

static int64_t size_of(const zero_schedule *s, int buffer)
{
    return buffer == ZERO_NO_BUFFER ? 0 : (int64_t)s->buffers[buffer].bytes;
}

static int64_t range_bytes(const zero_schedule *s, const zero_instruction *i, int buffer)
{
    return zero_range_len(i->range) * (int64_t)zero_type_size(s->buffers[buffer].type);
}

static int64_t gradient_bytes(const zero_schedule *s, const zero_instruction *i)
{
    int64_t sum = 0;
    for (int k = 0; k < ZERO_UNIT_GROUPS; k++) sum += size_of(s, i->grad[k]);
    return sum;
}

static int64_t file_bytes(const zero_schedule *s, const zero_instruction *i)
{
    zero_offload_traffic t = zero_offload_traffic_of(s, i);
    zero_file_traffic all = zero_offload_total(&t);
    return (int64_t)(all.bytes_read + all.bytes_written);
}

static bool is_exchange(zero_op op)
{
    return op == ZERO_OP_JOIN || op == ZERO_OP_COLLECT || op == ZERO_OP_REDUCE ||
           op == ZERO_OP_ALL_REDUCE || op == ZERO_OP_GATHER;
}

int64_t zero_plan_instruction_bytes(const zero_schedule *s, const zero_instruction *i)
{
    zero_traffic t = zero_instruction_traffic(s, i);
    if (i->part > 0 && !is_exchange(i->op)) return -1; /* counted on the first part */
    switch (i->op) {
    case ZERO_OP_JOIN:
    case ZERO_OP_COLLECT:
    case ZERO_OP_REDUCE:
    case ZERO_OP_ALL_REDUCE:
    case ZERO_OP_GATHER: return zero_traffic_total(&t).bytes_sent;
    case ZERO_OP_LOAD: return size_of(s, i->tokens);
    case ZERO_OP_FORWARD: return size_of(s, i->out) + size_of(s, i->saved);
    case ZERO_OP_RECOMPUTE: return size_of(s, i->saved);
    case ZERO_OP_BACKWARD: return gradient_bytes(s, i);
    case ZERO_OP_RELEASE: return (int64_t)zero_schedule_cost(s, &s->buffers[i->buffer]);
    case ZERO_OP_KEEP:
    case ZERO_OP_ROUND:
    case ZERO_OP_ACCUMULATE: return range_bytes(s, i, i->buffer);
    case ZERO_OP_UPDATE:
        return zero_range_len(i->range) * (int64_t)zero_type_size(s->input.type);
    case ZERO_OP_FETCH:
    case ZERO_OP_STORE:
    case ZERO_OP_FETCH_PARAM:
    case ZERO_OP_SAVE:
    case ZERO_OP_RESTORE: return file_bytes(s, i);
    case ZERO_OP_FETCH_GRAD:
    case ZERO_OP_STORE_PARAM: return range_bytes(s, i, i->host);
    default: return -1;
    }
}
