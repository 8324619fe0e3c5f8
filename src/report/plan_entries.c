#include "report/plan_entries.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "sharding/freed.h"

#define AFTER_LOSSES INT_MAX

/* Instructions without a microbatch belong to a pass: forward and backward of each
 * microbatch, and what follows the losses. */
static void fill(zero_plan_entries *e, const zero_freed *freed, int n_freed)
{
    const zero_program *p = &e->s->programs[e->kind];
    int pass = 0;
    bool is_over = false;
    for (int at = 0, next = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        bool backward = i->op == ZERO_OP_BACKWARD || i->op == ZERO_OP_RECOMPUTE;
        is_over = is_over || i->op == ZERO_OP_LOSS;
        if (backward || i->op == ZERO_OP_FORWARD || i->op == ZERO_OP_LOAD)
            pass = 2 * i->microbatch + backward;
        int when = zero_ops[i->op].has_microbatch ? i->microbatch
                   : is_over                      ? AFTER_LOSSES
                                                  : pass;
        zero_plan_key key = {(int)i->op, i->unit >= 0 ? i->unit : i->group, i->part, when};
        e->list[e->n++] =
            (zero_plan_entry){at, zero_plan_instruction_bytes(e->s, i), key, i, -1};
        for (; next < n_freed && freed[next].at == at; next++) {
            const zero_freed *f = &freed[next];
            e->list[e->n++] = (zero_plan_entry){
                -1, (int64_t)f->bytes, {ZERO_OP_KINDS, f->group, -1, pass}, i, f->group};
        }
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
    zero_status st = zero_new(&made.list, most + 1, "lines");
    if (st == ZERO_OK) fill(&made, freed, n_freed);
    free(freed);
    if (st == ZERO_OK) *entries = made;
    return st;
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
