#include "sharding/instruction_text.h"

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

void zero_text_instruction(const zero_model *model, const zero_instruction *i,
                           char text[ZERO_PLAN_TEXT])
{
    char operand[ZERO_PLAN_TEXT];
    zero_text_part(model, i, operand);
    int n = snprintf(text, ZERO_PLAN_TEXT, "%s%s%.60s", zero_op_name(i->op),
                     operand[0] ? " " : "", operand);
    if (n < ZERO_PLAN_TEXT && zero_ops[i->op].has_microbatch)
        snprintf(text + n, (size_t)(ZERO_PLAN_TEXT - n), ", microbatch %d", i->microbatch);
}

/* ---- bytes ---- */

static int64_t size_of(const zero_schedule *s, int buffer)
{
    return buffer == ZERO_NO_BUFFER ? 0 : (int64_t)s->buffers[buffer].bytes;
}

int64_t zero_plan_instruction_bytes(const zero_schedule *s, const zero_instruction *i)
{
    int64_t sum = 0;
    zero_op_shows shows = zero_ops[i->op].shows;
    if (i->part > 0 && shows != ZERO_SHOWS_SENT) return -1; /* counted on the first part */
    switch (shows) {
    case ZERO_SHOWS_SENT: {
        zero_traffic t = zero_instruction_traffic(s, i);
        return zero_traffic_sent(&t);
    }
    case ZERO_SHOWS_TOKENS: return size_of(s, i->tokens);
    case ZERO_SHOWS_OUT: return size_of(s, i->out) + size_of(s, i->saved);
    case ZERO_SHOWS_SAVED: return size_of(s, i->saved);
    case ZERO_SHOWS_GRADIENTS:
        for (int k = 0; k < ZERO_UNIT_GROUPS; k++) sum += size_of(s, i->grad[k]);
        return sum;
    case ZERO_SHOWS_PLACE: return (int64_t)zero_schedule_cost(s, &s->buffers[i->buffer]);
    case ZERO_SHOWS_RANGE:
        return (int64_t)zero_range_bytes(i->range, s->buffers[i->buffer].type);
    case ZERO_SHOWS_PARAMETERS: return (int64_t)zero_range_bytes(i->range, s->input.type);
    case ZERO_SHOWS_FILE: {
        zero_file_traffic all = zero_offload_moved(s, i);
        return (int64_t)(all.bytes_read + all.bytes_written);
    }
    case ZERO_SHOWS_HOST:
        return (int64_t)zero_range_bytes(i->range, s->buffers[i->host].type);
    case ZERO_SHOWS_NOTHING: break;
    }
    return -1;
}
