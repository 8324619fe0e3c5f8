#include "plan/plan.h"

#include "base/fail.h"
#include "sharding/checks.h"
#include "sharding/compile.h"
#include "sharding/formula.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"

size_t zero_plan_process(const zero_schedule *s)
{
    size_t tables = (size_t)s->n_buffers * sizeof *s->buffers;
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        tables += (size_t)s->programs[p].length * sizeof *s->programs[p].code;
    return ZERO_PROCESS_BYTES + tables;
}

size_t zero_plan_needed(const zero_schedule *s)
{
    size_t arena = s->input.device ? s->host_bytes : s->own_bytes;
    return arena + s->window_bytes + s->tp_window_bytes + zero_plan_process(s);
}

size_t zero_plan_device_needed(const zero_schedule *s)
{
    return s->input.device ? s->own_bytes : 0;
}

size_t zero_plan_scarce(const zero_plan_input *input, const zero_plan_ledger *ledger)
{
    return input->device ? ledger->device_needed : ledger->needed;
}

/* ---- traffic ---- */

/* REDUCE's or GATHER's part of what the formula says of both; with node_parameters a step
 * gathers each group once. */
static double formula_of_groups(const zero_schedule *s, zero_op op)
{
    const zero_plan_input *in = &s->input;
    bool gathers_once = in->node_parameters && op == ZERO_OP_GATHER;
    double reductions = zero_formula_reductions(in->stage, in->accumulation);
    double gathers = zero_formula_gathers(in->stage, in->accumulation);
    double share = (op == ZERO_OP_REDUCE ? reductions : gathers) / (reductions + gathers);
    double sum = 0.0;
    for (int g = 0; g < in->model->n_groups; g++) {
        const zero_group_state *state = &s->groups[g];
        const zero_exchange *x = op == ZERO_OP_REDUCE ? &state->reduce : &state->gather;
        int64_t padded = state->partition.padded;
        if (!x->is_used) continue;
        zero_type type = gathers_once ? in->type : s->buffers[x->in].type;
        double elements = gathers_once ? zero_formula_exchanged(padded, s->shard.size)
                                       : zero_formula_volume(padded, s->shard.size,
                                                             in->stage, in->accumulation);
        sum += elements * (double)zero_type_size(type);
    }
    return gathers_once ? sum : share * sum;
}

/* The same of one ALL_REDUCE, JOIN, COLLECT, SEND or RECEIVE. */
static double formula_of(const zero_schedule *s, const zero_instruction *i)
{
    if (zero_ops[i->op].among == ZERO_REPLICA_GROUP)
        return zero_formula_all_reduced(s->groups[i->group].partition.padded, s->shard.size,
                                        s->shard.replicas) *
               sizeof(float);
    if (zero_ops[i->op].among == ZERO_PIPE_GROUP) {
        const zero_pipe_message *m = &s->messages[i->join];
        return (double)m->count * (double)zero_type_size(m->type);
    }
    const zero_join_exchange *x = &s->joins[i->join];
    int ranks = s->input.model->share.ranks;
    double elements = x->kind == ZERO_JOIN_SUM ? zero_formula_tp_volume(x->count, 1, ranks)
                                               : zero_formula_tp_gathered(x->count, ranks);
    return elements * sizeof(float);
}

static zero_plan_exchange exchange_of(const zero_schedule *s, zero_op op)
{
    const zero_program *step = &s->programs[ZERO_PROGRAM_STEP];
    bool of_groups = zero_ops[op].among == ZERO_SHARD_GROUP;
    zero_plan_exchange x = {.traffic = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, op),
                            .formula = of_groups ? formula_of_groups(s, op) : 0.0};
    for (int at = 0; at < step->length; at++) {
        const zero_instruction *i = &step->code[at];
        if (i->op != op) continue;
        x.collectives += zero_exchange_collectives(s, op, zero_exchange_number(i));
        if (!of_groups) x.formula += formula_of(s, i);
    }
    return x;
}

/* The states of that many parameters by the paper's formula. */
static double states_of(const zero_schedule *s, int64_t psi)
{
    const zero_plan_input *in = &s->input;
    double kept = (double)zero_rule_total(in->optimizer, in->model);
    if (in->forward_only)
        return zero_formula_parameter_bytes(psi, s->shard.size, in->stage, in->type);
    return zero_formula_bytes_of(psi, s->shard.size, in->stage, in->type,
                                 kept / (double)in->model->n_params);
}

void zero_plan_add_up(const zero_schedule *s, zero_plan_ledger *ledger)
{
    zero_plan_ledger l = {.reduce = exchange_of(s, ZERO_OP_REDUCE),
                          .gather = exchange_of(s, ZERO_OP_GATHER),
                          .all_reduce = exchange_of(s, ZERO_OP_ALL_REDUCE),
                          .join = exchange_of(s, ZERO_OP_JOIN),
                          .collect = exchange_of(s, ZERO_OP_COLLECT),
                          .send = exchange_of(s, ZERO_OP_SEND),
                          .receive = exchange_of(s, ZERO_OP_RECEIVE),
                          .control = zero_schedule_control_traffic(s, ZERO_PROGRAM_STEP),
                          .copies = zero_schedule_copies(s, ZERO_PROGRAM_STEP)};
    if (zero_is_compared(s)) l.compare = zero_schedule_compare_traffic(s);
    zero_traffic_add(&l.control, 1, &l.compare);
    l.copies.logits = zero_schedule_copies(s, ZERO_PROGRAM_GENERATE).logits;
    zero_schedule_live_at(s, s->peak_program, s->peak_at, l.at_peak);
    l.needed = zero_plan_needed(s);
    l.device_needed = zero_plan_device_needed(s);
    const zero_plan_input *in = &s->input;
    int64_t psi = 0;
    for (int g = 0; g < in->model->n_groups; g++) {
        if (!s->groups[g].is_here) continue;
        l.padded += s->groups[g].partition.padded;
        psi += s->groups[g].partition.n_params;
    }
    l.states = s->class_peak[ZERO_CLASS_PARAMETERS] + s->class_peak[ZERO_CLASS_GRADIENTS] +
               s->class_peak[ZERO_CLASS_OPTIMIZER];
    l.formula = states_of(s, psi);
    l.padding = states_of(s, l.padded - psi);
    for (int c = 0; c < ZERO_CLASSES && zero_plan_uses_file(&s->input); c++) {
        l.file[c] = zero_offload_bytes(s, (zero_class)c);
        l.file_bytes += l.file[c];
    }
    if (zero_plan_uses_file(&s->input)) {
        l.file_padding = zero_offload_padding(s);
        l.file_step = zero_offload_count(s, ZERO_PROGRAM_STEP);
    }
    *ledger = l;
}

zero_status zero_plan_least(const zero_plan_input *input, zero_plan_bound *least)
{
    zero_schedule_bound s;
    ZERO_TRY(zero_schedule_least(input, &s));
    size_t tables = (size_t)s.instructions * sizeof(zero_instruction);
    size_t arena = input->device ? s.host_bytes : s.bytes;
    *least = (zero_plan_bound){.bytes = arena + ZERO_PROCESS_BYTES + tables,
                               .device_bytes = input->device ? s.bytes : 0,
                               .instructions = s.instructions};
    /* The stream of optimizer states has about five instructions for each block of the
     * file. */
    int ranks = input->shard_ranks > 0 ? input->shard_ranks : input->n_ranks;
    int64_t held = input->model->n_params / (input->stage > 0 ? ranks : 1);
    if (zero_plan_uses_file(input)) least->instructions += 5 * (held / ZERO_OFFLOAD_BLOCK);
    return ZERO_OK;
}

zero_status zero_plan_measure(const zero_plan_input *input, zero_plan_ledger *ledger)
{
    zero_schedule s;
    ZERO_TRY(zero_schedule_compile(&s, input));
    zero_plan_add_up(&s, ledger);
    zero_schedule_destroy(&s);
    return ZERO_OK;
}

/* ---- parameters that stay ---- */

/* Searches backwards: the last units' parameters stay longest. */
int zero_plan_kept(const zero_schedule *s, int *groups, size_t *bytes)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int turn = 0, n = 0;
    while (turn < p->length && p->code[turn].op != ZERO_OP_BACKWARD) turn++;
    *bytes = 0;
    for (int at = turn - 1; at >= 0; at--) {
        const zero_instruction *i = &p->code[at];
        if (i->op != ZERO_OP_FORWARD) continue;
        const zero_unit *unit = &s->input.model->units[i->unit];
        for (int k = 0; k < unit->n_groups; k++) {
            const zero_buffer *b = &s->buffers[i->param[k]];
            bool stays = zero_buffer_lives_at(b, ZERO_PROGRAM_STEP, turn);
            if (b->class != ZERO_CLASS_GATHERED || !stays) continue;
            int other = 0;
            while (other < n && groups[other] != unit->groups[k]) other++;
            if (other < n) continue;
            groups[n++] = unit->groups[k];
            *bytes += zero_schedule_cost(s, b);
        }
    }
    return n;
}
