#include "report/plan_program.h"

#include <limits.h>

#include "report/json_put.h"
#include "report/plan_facts.h"
#include "sharding/freed.h"

/* ---- lines ---- */

#define AFTER_LOSSES INT_MAX

zero_status zero_plan_entries_make(zero_plan_entries *entries, const zero_schedule *s,
                                   zero_program_kind kind)
{
    ZERO_FREED zero_freed *freed = NULL;
    int n_freed, pass = 0;
    bool is_over = false;
    const zero_program *p = &s->programs[kind];
    zero_plan_entries made = {.s = s, .kind = kind};
    ZERO_TRY(zero_schedule_freed(s, kind, &freed, &n_freed));
    ZERO_TRY(zero_new(&made.list, p->length + n_freed + 1, "lines"));
    /* Instructions without a microbatch belong to a pass: forward and backward of each
     * microbatch, and what follows the losses. */
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
        made.list[made.n++] =
            (zero_plan_entry){at, zero_plan_instruction_bytes(s, i), key, i, -1};
        for (; next < n_freed && freed[next].at == at; next++) {
            const zero_freed *f = &freed[next];
            made.list[made.n++] = (zero_plan_entry){
                -1, (int64_t)f->bytes, {ZERO_OP_KINDS, f->group, -1, pass}, i, f->group};
        }
    }
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

/* ---- words ---- */

/* Transfers name the class of the block that they move, and of the host's side. */
static void add_class(zero_legend *l, const zero_schedule *s, int buffer)
{
    if (buffer != ZERO_NO_BUFFER) l->classes[s->buffers[buffer].class] = true;
}

void zero_legend_add(zero_legend *l, const zero_plan_entries *e)
{
    for (int k = 0; k < e->n; k++) {
        const zero_plan_entry *line = &e->list[k];
        if (line->at < 0) {
            l->has_freed = true;
            l->classes[ZERO_CLASS_IN_FLIGHT] = true;
            continue;
        }
        l->ops[line->i->op] = true;
        add_class(l, e->s, line->i->host);
        if (line->i->op != ZERO_OP_UPDATE) add_class(l, e->s, line->i->file);
    }
}

static void add_word(json_t *words, const char *word, const char *meaning)
{
    zero_put_item(words, "{s:s, s:s}", "word", word, "meaning", meaning);
}

json_t *zero_legend_facts(const zero_legend *l)
{
    json_t *words = json_array();
    for (int i = 0; i < ZERO_OP_KINDS; i++)
        if (l->ops[i]) add_word(words, zero_op_name((zero_op)i), zero_ops[i].meaning);
    if (l->has_freed) add_word(words, ZERO_FREED_NAME, ZERO_FREED_MEANING);
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (l->classes[c])
            add_word(words, zero_class_name((zero_class)c),
                     zero_class_meaning((zero_class)c));
    return words;
}

/* ---- programs ---- */

json_t *zero_plan_lines(const zero_schedule *s, zero_program_kind kind, zero_legend *legend)
{
    zero_plan_entries e;
    if (zero_plan_entries_make(&e, s, kind) != ZERO_OK) return NULL;
    json_t *lines = json_array();
    for (int k = 0; k < e.n; k++) {
        const zero_plan_entry *line = &e.list[k];
        const zero_instruction *i = line->i;
        char operand[ZERO_PLAN_TEXT];
        zero_plan_entry_operand(&e, line, operand);
        json_t *one = json_pack("{s:s, s:s, s:I}", "name", zero_plan_entry_name(line),
                                "operand", operand, "bytes", line->bytes);
        json_array_append_new(lines, one);
        if (line->at < 0) continue; /* a gradient that is freed */
        zero_put_whole(one, "number", line->at + 1);
        zero_put_whole(one, "live", (int64_t)i->live_bytes);
        zero_put_flag(one, "is_peak", kind == s->peak_program && line->at == s->peak_at);
        if (zero_ops[i->op].has_microbatch) zero_put_whole(one, "micro", i->microbatch);
        /* The block of the file that a transfer moves. */
        bool has_block = i->op != ZERO_OP_UPDATE && i->file != ZERO_NO_BUFFER;
        if (has_block)
            zero_put_string(one, "file", zero_class_name(s->buffers[i->file].class));
        if (has_block && i->group >= 0)
            zero_put_whole(one, "block", i->file - s->groups[i->group].first_block);
        /* The host's side of a copy to or from the device. */
        if (i->host == ZERO_NO_BUFFER) continue;
        zero_put_string(one, "host", zero_class_name(s->buffers[i->host].class));
        zero_put_whole(one, "host_bytes", (int64_t)s->buffers[i->host].bytes);
    }
    zero_legend_add(legend, &e);
    zero_plan_entries_destroy(&e);
    /* Transfers, and what replicas do, have longer names. */
    int width = s->input.offload != ZERO_OFFLOAD_OFF || s->shard.replicas > 1 ? 16
                : s->pipe.n_stages > 1                                        ? 14
                : s->input.partition_activations                              ? 12
                                                                              : 11;
    return json_pack("{s:s, s:i, s:o}", "program", zero_program_name(kind), "width", width,
                     "lines", lines);
}

/* The step comes first: most readers want it. */
zero_status zero_plan_show_programs(const zero_plan_report *r, FILE *out)
{
    /* The lines above the programs name these, whether there are any or not. */
    zero_legend legend = {
        .ops = {[ZERO_OP_REDUCE] = true, [ZERO_OP_GATHER] = true, [ZERO_OP_RELEASE] = true},
        .has_freed = true};
    const zero_schedule *s = &r->stages[0].schedule;
    json_t *facts = zero_plan_setup_facts(r), *shown = json_array();
    json_array_append_new(shown, zero_plan_lines(s, ZERO_PROGRAM_STEP, &legend));
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        if (p != ZERO_PROGRAM_STEP)
            json_array_append_new(shown, zero_plan_lines(s, (zero_program_kind)p, &legend));
    zero_put_members(facts, "{s:i, s:b, s:b, s:o, s:o}", "stage", s->input.stage,
                     "is_shared", zero_share_has_parts(&r->part->share), "on_device",
                     s->input.device, "shown", shown, "legend", zero_legend_facts(&legend));
    return zero_report_print("programs", facts, out);
}
