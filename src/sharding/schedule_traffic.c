/* What a schedule's instructions send: exchanges and small messages. */

#include "base/exact.h"
#include "base/fail.h"
#include "base/tree.h"
#include "lists/small.h"
#include "nn/share.h"
#include "sharding/schedule_exchange.h"

/* ---- traffic ---- */

/* NULL: there is none. */
static zero_traffic *traffic_of(const zero_schedule *s, zero_op op, int number)
{
    if (zero_ops[op].among == ZERO_TP_GROUP) {
        zero_join_exchange *join = &s->joins[number];
        return join->collects == (op == ZERO_OP_COLLECT) ? &join->traffic : NULL;
    }
    if (zero_ops[op].among == ZERO_PIPE_GROUP) {
        zero_pipe_message *m = &s->messages[number];
        const int end = op == ZERO_OP_SEND ? m->from : m->to;
        return end == s->pipe.stage ? &m->traffic : NULL;
    }
    zero_group_state *g = &s->groups[number];
    zero_exchange *x = zero_ops[op].among == ZERO_REPLICA_GROUP ? &g->all_reduce
                       : op == ZERO_OP_REDUCE                   ? &g->reduce
                                                                : &g->gather;
    return x->is_used ? &x->traffic : NULL;
}

int zero_exchange_count(const zero_schedule *s, zero_op op)
{
    return zero_ops[op].among == ZERO_TP_GROUP     ? s->n_joins
           : zero_ops[op].among == ZERO_PIPE_GROUP ? s->n_messages
                                                   : s->model->n_groups;
}

bool zero_exchange_is_used(const zero_schedule *s, zero_op op, int number)
{
    return traffic_of(s, op, number) != NULL;
}

zero_status zero_schedule_count_traffic(zero_schedule *s)
{
    for (int k = 0; k < ZERO_EXCHANGES; k++) {
        zero_op op = zero_exchange_ops[k];
        zero_traffic_memo memos[2] = {0}; /* of a chain: each of both */
        for (int number = 0; number < zero_exchange_count(s, op); number++) {
            zero_traffic *sum = traffic_of(s, op, number);
            if (!sum) continue;
            *sum = (zero_traffic){0};
            for (int i = 0; i < zero_exchange_collectives(s, op, number); i++) {
                zero_collective_spec spec = zero_exchange_collective(s, op, number, i);
                zero_traffic one;
                ZERO_TRY(zero_collective_traffic_again(&memos[i % 2], &spec,
                                                       zero_exchange_layout(s, op),
                                                       zero_exchange_rank(s, op), &one));
                zero_traffic_add(sum, 1, &one);
            }
        }
    }
    return ZERO_OK;
}

zero_traffic zero_instruction_traffic(const zero_schedule *s, const zero_instruction *i)
{
    if (zero_ops[i->op].kind == ZERO_WORK_EXCHANGE)
        return *traffic_of(s, i->op, zero_exchange_number(i));
    return (zero_traffic){0};
}

zero_traffic zero_schedule_traffic(const zero_schedule *s, zero_program_kind program,
                                   zero_op op)
{
    const zero_program *p = &s->programs[program];
    zero_traffic sum = {0};
    for (int at = 0; at < p->length; at++) {
        if (p->code[at].op != op) continue;
        zero_traffic one = zero_instruction_traffic(s, &p->code[at]);
        zero_traffic_add(&sum, 1, &one);
    }
    return sum;
}

/* ---- small messages ---- */

zero_traffic zero_schedule_control_traffic(const zero_schedule *s,
                                           zero_program_kind program)
{
    const zero_program *p = &s->programs[program];
    zero_traffic sum = {0};
    for (int at = 0; at < p->length; at++) {
        /* Sent by engine/run_update.c. LOSS gathers a loss per microbatch in the ZeRO
         * group, as the ranks of a TP group have the same; of a pipeline the last stage has
         * the losses, and tells all ranks. All ranks of the world add the
         * squares, vote in OVERFLOW, and tell two words each in VERIFY. COMPARE is not part
         * of every step: zero_schedule_compare_traffic(). */
        const zero_instruction *i = &p->code[at];
        const zero_layout *world = zero_schedule_world_layout(s);
        if (i->op == ZERO_OP_LOSS)
            zero_small_add_exchange(
                &sum, s->pipe.n_stages > 1 ? world : zero_schedule_data_layout(s),
                s->pipe.n_stages > 1 ? zero_schedule_world_rank(s) : s->input.rank,
                (i->microbatch + 1) * (int64_t)sizeof(double));
        if (i->op == ZERO_OP_VERIFY)
            zero_small_add_reduced(&sum, world, zero_schedule_world_rank(s),
                                   2 * (int64_t)world->size, sizeof(uint64_t));
        if (i->op == ZERO_OP_OVERFLOW) {
            /* The squares of all ranks: a sum of whole numbers, or the spans of all
             * groups. */
            const zero_model *model = s->model;
            int rank = zero_schedule_world_rank(s);
            if (zero_share_has_parts(&model->share))
                zero_small_add_reduced(&sum, world, rank, ZERO_EXACT_WORDS,
                                       sizeof(int64_t));
            else
                zero_small_add_merged(&sum, world, rank, model->n_groups,
                                      sizeof(zero_tree_span));
            zero_small_add_reduced(&sum, world, rank, ZERO_VOTE_WORDS, sizeof(int64_t));
        }
    }
    return sum;
}
