#include "report/plan_entries.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "sharding/freed.h"

/* The pass that instructions without a microbatch belong to: forward and backward of each
 * microbatch, and what follows the losses. */
typedef struct {
    uint64_t number;
    bool is_over;
} pass;

static void follow(pass *now, const zero_instruction *i)
{
    bool backward = i->op == ZERO_OP_BACKWARD || i->op == ZERO_OP_RECOMPUTE;
    now->is_over = now->is_over || i->op == ZERO_OP_LOSS;
    if (backward || i->op == ZERO_OP_FORWARD || i->op == ZERO_OP_LOAD)
        now->number = 2 * (uint64_t)i->microbatch + backward;
}

/* Names one entry: the word, the unit or group, the part, the microbatch or pass.
 * Collisions of very long programs would only put lines side by side that do not belong
 * together. */
static uint64_t key_of(uint64_t word, int operand, int part, uint64_t when)
{
    return word << 58 | ((uint64_t)(operand + 1) & 0xfffff) << 38 |
           ((uint64_t)(part + 2) & 0xff) << 30 | (when & 0x3fffffff);
}

static zero_plan_entry instruction(const zero_schedule *s, const zero_program *p, int at,
                                   const pass *now)
{
    const zero_instruction *i = &p->code[at];
    uint64_t when = zero_ops[i->op].has_microbatch ? (uint64_t)i->microbatch
                    : now->is_over                     ? 0x3fffffff
                                                       : now->number;
    int operand = i->unit >= 0 ? i->unit : i->group;
    return (zero_plan_entry){.at = at,
                             .bytes = zero_plan_instruction_bytes(s, i),
                             .key = key_of((uint64_t)i->op, operand, i->part, when),
                             .i = i,
                             .group = -1};
}

static zero_plan_entry freed_entry(const zero_program *p, const zero_freed *f,
                                   const pass *now)
{
    return (zero_plan_entry){.at = -1,
                             .bytes = (int64_t)f->bytes,
                             .key = key_of(ZERO_OP_KINDS, f->group, -1, now->number),
                             .i = &p->code[f->at],
                             .group = f->group};
}

static void fill(zero_plan_entries *e, const zero_freed *freed, int n_freed)
{
    const zero_program *p = &e->s->programs[e->kind];
    pass now = {0};
    for (int at = 0, next = 0; at < p->length; at++) {
        follow(&now, &p->code[at]);
        e->list[e->n++] = instruction(e->s, p, at, &now);
        for (; next < n_freed && freed[next].at == at; next++)
            e->list[e->n++] = freed_entry(p, &freed[next], &now);
    }
}

zero_status zero_plan_entries_make(zero_plan_entries *entries, const zero_schedule *s,
                                   zero_program_kind kind)
{
    zero_freed *freed;
    int n_freed;
    zero_plan_entries made = {.s = s, .kind = kind};
    ZERO_TRY(zero_schedule_freed(s, kind, &freed, &n_freed));
    int most = s->programs[kind].length + n_freed;
    made.list = malloc(((size_t)most + 1) * sizeof *made.list);
    if (made.list) fill(&made, freed, n_freed);
    free(freed);
    if (!made.list) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d lines", most);
    *entries = made;
    return ZERO_OK;
}

void zero_plan_entries_destroy(zero_plan_entries *entries)
{
    free(entries->list);
    *entries = (zero_plan_entries){0};
}

const char *zero_plan_entry_name(const zero_plan_entry *entry)
{
    return entry->at < 0 ? ZERO_FREED_NAME : zero_op_name(entry->i->op);
}

void zero_plan_entry_operand(const zero_plan_entries *entries, const zero_plan_entry *entry,
                             char text[ZERO_PLAN_TEXT])
{
    const zero_model *model = entries->s->input.model;
    if (entry->at >= 0)
        zero_text_part(model, entry->i, text);
    else
        snprintf(text, ZERO_PLAN_TEXT, "%.*s", ZERO_PLAN_TEXT - 1,
                 entry->group >= 0 ? model->groups[entry->group].name : "");
}
