#include "simulation/actions.h"

#include <stdlib.h>
#include <string.h>

#include "base/exact.h"
#include "base/fail.h"
#include "base/tree.h"
#include "lists/small.h"
#include "nn/share.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"

/* ---- the collectives of a program ---- */

typedef struct {
    int first, n; /* of specs; n = 0: not yet listed */
} spec_range;

typedef struct {
    int at, nth, call; /* the last action that began this exchange; -1: none */
} last_begin;

typedef struct {
    const zero_schedule *s;
    const zero_plan_machine *machine;
    zero_actions *a;
    double share;      /* of a pass that a part has */
    size_t most;       /* exchanges of a kind */
    spec_range *specs; /* [ZERO_OP_KINDS][most] */
    last_begin *last;  /* [ZERO_OP_KINDS][most] */
    int *files;        /* [n_buffers + n_groups]: number of a transfer, or -1 */
} builder;

/* Number of the exchange that an instruction begins or waits for, in tables of all of
 * them. */
static size_t exchange_of(const builder *b, const zero_instruction *i)
{
    return (size_t)zero_ops[i->op].begun_by * b->most + (size_t)zero_exchange_number(i);
}

static zero_status add_specs(builder *b, const zero_instruction *i, spec_range *range)
{
    zero_actions *a = b->a;
    int number = zero_exchange_number(i);
    int n = zero_exchange_collectives(b->s, i->op, number);
    size_t all = (size_t)a->n_specs + (size_t)n + 1; /* n: 0 without parameters */
    void *specs = realloc(a->specs, all * sizeof *a->specs);
    if (specs) a->specs = specs;
    void *parts = realloc(a->part_of, all * sizeof *a->part_of);
    if (parts) a->part_of = parts;
    if (!specs || !parts)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu collectives", all);
    *range = (spec_range){a->n_specs, n};
    for (int k = 0; k < n; k++) {
        a->part_of[a->n_specs] = zero_ops[i->op].among;
        a->specs[a->n_specs++] = zero_exchange_collective(b->s, i->op, number, k);
    }
    return ZERO_OK;
}

static zero_status add_begin(builder *b, const zero_instruction *i, zero_action *action)
{
    zero_actions *a = b->a;
    size_t x = exchange_of(b, i);
    if (b->specs[x].n == 0) ZERO_TRY(add_specs(b, i, &b->specs[x]));
    action->first_spec = b->specs[x].first;
    action->n_calls = b->specs[x].n;
    action->call = a->n_calls[action->part];
    action->nth = a->n_begins[action->part]++;
    a->n_calls[action->part] += action->n_calls;
    b->last[x] = (last_begin){a->n, action->nth, action->call};
    return ZERO_OK;
}

/* Every wait finds its begin before it, in this step or at the end of the one before. A
 * wait that only the latter has is looked at again in link_waits(). */
static void add_wait(builder *b, const zero_instruction *i, zero_action *action)
{
    const last_begin *begin = &b->last[exchange_of(b, i)];
    action->steps_ago = begin->at < 0 ? 1 : 0;
    action->nth = begin->nth;
    action->call = begin->call;
    action->n_calls = b->specs[exchange_of(b, i)].n;
}

/* ---- other instructions ---- */

static void number_file(builder *b, const zero_instruction *i, zero_action *action)
{
    int key = i->file != ZERO_NO_BUFFER ? i->file : b->s->n_buffers + i->group;
    if (b->files[key] < 0) b->files[key] = b->a->n_files++;
    action->file = b->files[key];
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

static zero_status add(builder *b, const zero_instruction *i)
{
    const zero_plan_machine *m = b->machine;
    const zero_op_row *work = &zero_ops[i->op];
    zero_action action = {.instruction = i,
                          .kind = work->kind,
                          .part = work->among,
                          .is_of_stream = zero_offload_is_of_stream(i),
                          .after = i->after};
    switch (work->kind) {
    case ZERO_WORK_COMPUTE:
        action.seconds = zero_work_flops(b->s, i, &b->share) / m->flops;
        break;
    case ZERO_WORK_EXCHANGE: ZERO_TRY(add_begin(b, i, &action)); break;
    case ZERO_WORK_EXCHANGE_WAIT: add_wait(b, i, &action); break;
    case ZERO_WORK_AGREE: add_agreement(b, i, &action); break;
    case ZERO_WORK_TRANSFER:
        action.seconds = zero_work_disk_seconds(b->s, i, m->disk_read, m->disk_write);
        number_file(b, i, &action);
        break;
    case ZERO_WORK_TRANSFER_WAIT: number_file(b, i, &action); break;
    case ZERO_WORK_SEND: /* of pipelines, which are not simulated */
    case ZERO_WORK_SEND_WAIT:
    case ZERO_WORK_RECEIVE:
    case ZERO_WORK_TIE:
    case ZERO_WORK_COPY:
    case ZERO_WORK_FREE: break;
    }
    action.is_chain = work->among != ZERO_SHARD_GROUP && action.n_calls > 1;
    b->a->list[b->a->n++] = action;
    return ZERO_OK;
}

/* ---- all ---- */

static zero_status build(builder *b)
{
    const zero_program *p = &b->s->programs[ZERO_PROGRAM_STEP];
    const zero_schedule *s = b->s;
    b->most = (size_t)zero_max(s->input.model->n_groups, s->n_joins);
    size_t n = ZERO_OP_KINDS * b->most;
    size_t files = (size_t)b->s->n_buffers + (size_t)b->s->input.model->n_groups;
    b->a->list = calloc((size_t)p->length + 1, sizeof *b->a->list);
    b->specs = calloc(n, sizeof *b->specs);
    b->last = calloc(n, sizeof *b->last);
    b->files = malloc((files + 1) * sizeof *b->files);
    if (!b->a->list || !b->specs || !b->last || !b->files)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a program of %d instructions",
                         p->length);
    for (size_t x = 0; x < n; x++) b->last[x].at = -1;
    for (size_t f = 0; f < files; f++) b->files[f] = -1;
    for (int at = 0; at < p->length; at++) ZERO_TRY(add(b, &p->code[at]));
    for (int k = 0; k < b->a->n; k++) {
        zero_action *action = &b->a->list[k];
        if (action->kind != ZERO_WORK_EXCHANGE_WAIT || action->steps_ago == 0) continue;
        add_wait(b, action->instruction, action);
        action->steps_ago = action->steps_ago > 0 ? -1 : 1;
    }
    return ZERO_OK;
}

zero_status zero_actions_init(zero_actions *a, const zero_schedule *s,
                              const zero_plan_machine *machine)
{
    *a = (zero_actions){0};
    builder b = {.s = s, .machine = machine, .a = a};
    zero_status st = build(&b);
    free(b.specs);
    free(b.last);
    free(b.files);
    return st;
}

void zero_actions_destroy(zero_actions *a)
{
    free(a->list);
    free(a->specs);
    free(a->part_of);
    *a = (zero_actions){0};
}
