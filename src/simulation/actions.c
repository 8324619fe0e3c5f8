#include "simulation/actions.h"

#include "base/exact.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/tree.h"
#include "lists/small.h"
#include "nn/share.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"

/* ---- the collectives of a program ---- */

/* An exchange, as the instructions so far have begun it. */
typedef struct {
    int first, n; /* specs; n = 0: not yet listed */
    bool is_begun;
    int nth, call; /* of the last action that began it */
} exchange;

typedef struct {
    const zero_schedule *s;
    const zero_plan_machine *machine;
    zero_actions *a;
    double share;        /* of a pass that a part has */
    size_t most;         /* exchanges of a kind */
    exchange *exchanges; /* [ZERO_OP_KINDS][most] */
    int *files;          /* [n_buffers + n_groups]: number of a transfer, from 1 on, or 0 */
} builder;

/* The exchange that an instruction begins or waits for. */
static exchange *exchange_of(const builder *b, const zero_instruction *i)
{
    return &b->exchanges[(size_t)zero_ops[i->op].begun_by * b->most +
                         (size_t)zero_exchange_number(i)];
}

static zero_status add_begin(builder *b, const zero_instruction *i, zero_action *action)
{
    zero_actions *a = b->a;
    exchange *x = exchange_of(b, i);
    if (x->n == 0) {
        int number = zero_exchange_number(i);
        x->first = (int)a->n_specs;
        x->n = zero_exchange_collectives(b->s, i->op, number); /* 0 without parameters */
        for (int k = 0; k < x->n; k++) {
            if (!zero_grow(a->specs, a->n_specs, &a->spec_capacity))
                return zero_fail(ZERO_ERR_NOMEM, "no memory for the collectives of a step");
            a->specs[a->n_specs++] =
                (zero_action_spec){.spec = zero_exchange_collective(b->s, i->op, number, k),
                                   .lane = action->lane};
        }
    }
    for (int k = 0; k < x->n; k++) a->specs[x->first + k].begins++;
    x->is_begun = true;
    x->call = a->n_calls[action->lane];
    x->nth = a->n_begins[action->lane]++;
    a->n_calls[action->lane] += x->n;
    return ZERO_OK;
}

/* What an action begins, or waits for. */
static void set_exchange(const builder *b, zero_action *action)
{
    const exchange *x = exchange_of(b, action->instruction);
    action->first_spec = x->first;
    action->n_calls = x->n;
    action->call = x->call;
    action->nth = x->nth;
    action->is_chain = action->lane != ZERO_SHARD_GROUP && x->n > 1;
}

/* ---- other instructions ---- */

static void number_file(builder *b, const zero_instruction *i, zero_action *action)
{
    int key = i->file != ZERO_NO_BUFFER ? i->file : b->s->n_buffers + i->group;
    if (b->files[key] == 0) b->files[key] = ++b->a->n_files;
    action->file = b->files[key] - 1;
}

/* As zero_schedule_control_traffic() counts them. */
static void add_agreement(const builder *b, const zero_instruction *i, zero_action *action)
{
    int64_t ranks = zero_schedule_world_layout(b->s)->size;
    action->n_agreements = 1;
    switch (i->op) {
    case ZERO_OP_LOSS:
        action->gathers = true;
        action->bytes[0] = (i->microbatch + 1) * (int64_t)sizeof(double);
        break;
    case ZERO_OP_VERIFY: action->bytes[0] = 2 * ranks * (int64_t)sizeof(uint64_t); break;
    default:
        action->n_agreements = 2;
        action->bytes[0] =
            zero_share_has_parts(&b->s->input.model->share)
                ? ZERO_EXACT_WORDS * (int64_t)sizeof(int64_t)
                : b->s->input.model->n_groups * (int64_t)sizeof(zero_tree_span);
        action->bytes[1] = ZERO_VOTE_WORDS * (int64_t)sizeof(int64_t);
    }
}

static int lane_of(const zero_schedule *s, const zero_instruction *i)
{
    const zero_op_row *row = &zero_ops[i->op];
    return row->among == ZERO_PIPE_GROUP
               ? zero_lane_of_message(s->messages[i->join].content,
                                      row->begun_by == ZERO_OP_RECEIVE)
               : (int)row->among;
}

static zero_status add(builder *b, const zero_instruction *i)
{
    const zero_plan_machine *m = b->machine;
    const zero_op_row *work = &zero_ops[i->op];
    zero_action action = {.instruction = i,
                          .kind = work->kind,
                          .lane = lane_of(b->s, i),
                          .is_of_stream = zero_offload_is_of_stream(i),
                          .after = i->after};
    switch (work->kind) {
    case ZERO_WORK_COMPUTE:
        action.seconds = zero_work_flops(b->s, i, &b->share) / m->flops;
        break;
    case ZERO_WORK_EXCHANGE:
        ZERO_TRY(add_begin(b, i, &action));
        set_exchange(b, &action);
        break;
    case ZERO_WORK_EXCHANGE_WAIT:
        /* Every wait finds its begin before it, in this step or at the end of the one
         * before; build() looks again at one that only the latter has. */
        action.steps_ago = exchange_of(b, i)->is_begun ? 0 : 1;
        set_exchange(b, &action);
        break;
    case ZERO_WORK_AGREE: add_agreement(b, i, &action); break;
    case ZERO_WORK_TRANSFER:
        action.seconds = zero_work_disk_seconds(b->s, i, m->disk_read, m->disk_write);
        number_file(b, i, &action);
        break;
    case ZERO_WORK_TRANSFER_WAIT: number_file(b, i, &action); break;
    case ZERO_WORK_COPY:
    case ZERO_WORK_FREE: break;
    }
    b->a->list[b->a->n++] = action;
    return ZERO_OK;
}

/* ---- all ---- */

static zero_status build(builder *b)
{
    const zero_program *p = &b->s->programs[ZERO_PROGRAM_STEP];
    const zero_schedule *s = b->s;
    b->most =
        (size_t)zero_max(s->input.model->n_groups, zero_max(s->n_joins, s->n_messages));
    size_t files = (size_t)b->s->n_buffers + (size_t)b->s->input.model->n_groups;
    ZERO_TRY(zero_new(&b->a->list, p->length + 1, "instructions of a simulated rank"));
    ZERO_TRY(zero_new(&b->exchanges, ZERO_OP_KINDS * b->most, "exchanges of a step"));
    ZERO_TRY(zero_new(&b->files, files, "transfers of a step"));
    for (int at = 0; at < p->length; at++) ZERO_TRY(add(b, &p->code[at]));
    for (int k = 0; k < b->a->n; k++) {
        zero_action *action = &b->a->list[k];
        if (action->kind != ZERO_WORK_EXCHANGE_WAIT || action->steps_ago == 0) continue;
        set_exchange(b, action);
        action->steps_ago = exchange_of(b, action->instruction)->is_begun ? 1 : -1;
    }
    return ZERO_OK;
}

zero_status zero_actions_init(zero_actions *a, const zero_schedule *s,
                              const zero_plan_machine *machine)
{
    *a = (zero_actions){0};
    builder b = {.s = s, .machine = machine, .a = a};
    zero_status st = build(&b);
    free(b.exchanges);
    free(b.files);
    return st;
}

void zero_actions_destroy(zero_actions *a)
{
    free(a->list);
    free(a->specs);
    *a = (zero_actions){0};
}
