#include "report/legend_show.h"

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

static void show(const char *word, const char *meaning, FILE *out)
{
    fprintf(out, "  %-*s  %s\n", ZERO_LEGEND_WORD, word, meaning);
}

void zero_legend_show(const zero_legend *l, FILE *out)
{
    fputc('\n', out);
    for (int i = 0; i < ZERO_OP_KINDS; i++)
        if (l->ops[i]) show(zero_op_name((zero_op)i), zero_ops[(zero_op)i].meaning, out);
    if (l->has_freed) show(ZERO_FREED_NAME, ZERO_FREED_MEANING, out);
    for (int c = 0; c < ZERO_CLASSES; c++)
        if (l->classes[c])
            show(zero_class_name((zero_class)c), zero_class_meaning((zero_class)c), out);
}
