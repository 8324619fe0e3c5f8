/* The training step's program in the first line of the metrics. */

#include "sharding/instruction_text.h"
#include "train/metrics.h"

/* A program, and the bytes of each class at each of its instructions. */
typedef struct {
    const zero_schedule *s;
    const zero_program *p;
    size_t (*live)[ZERO_CLASSES]; /* [p->length] */
    bool used[ZERO_CLASSES];      /* the class has bytes somewhere */
    int peak;                     /* the first instruction with the most bytes */
} staircase;

static json_t *instruction(const staircase *c, int at)
{
    const zero_instruction *i = &c->p->code[at];
    int64_t bytes = zero_plan_instruction_bytes(c->s, i);
    char name[ZERO_PLAN_TEXT];
    json_t *live = json_array();
    zero_text_instruction(c->s->model, i, name);
    for (int k = 0; k < ZERO_CLASSES; k++)
        if (c->used[k])
            json_array_append_new(live, json_integer((json_int_t)c->live[at][k]));
    return json_pack("{s:s, s:o, s:o*, s:o*, s:o}", "op", zero_op_name(i->op), "name",
                     zero_metrics_text(name), "microbatch",
                     zero_ops[i->op].has_microbatch ? json_integer(i->microbatch) : NULL,
                     "bytes", bytes >= 0 ? json_integer(bytes) : NULL, "live", live);
}

json_t *zero_metrics_schedule(const zero_schedule *s)
{
    const int half = ZERO_METRICS_INSTRUCTIONS / 2;
    staircase c = {.s = s, .p = &s->programs[ZERO_PROGRAM_STEP]};
    json_t *classes = json_array(), *list = json_array();
    int skipped = c.p->length - ZERO_METRICS_INSTRUCTIONS; /* from number `half` on */
    if (skipped < 0) skipped = 0;
    ZERO_FREED size_t(*live)[ZERO_CLASSES] = calloc((size_t)c.p->length + 1, sizeof *live);
    if (!live) return NULL;
    c.live = live;
    zero_schedule_live(s, ZERO_PROGRAM_STEP, live);
    for (int at = 0; at < c.p->length; at++) {
        for (int k = 0; k < ZERO_CLASSES; k++) c.used[k] = c.used[k] || live[at][k] > 0;
        if (c.p->code[at].live_bytes > c.p->code[c.peak].live_bytes) c.peak = at;
    }
    for (zero_class k = 0; k < ZERO_CLASSES; k++)
        if (c.used[k]) json_array_append_new(classes, json_string(zero_class_name(k)));
    for (int at = 0; at < c.p->length; at++)
        if (at < half || at >= half + skipped)
            json_array_append_new(list, instruction(&c, at));
    bool is_left_out = c.peak >= half && c.peak < half + skipped;
    return json_pack("{s:o, s:i, s:i, s:o*, s:o*, s:o}", "classes", classes, "length",
                     c.p->length, "peak", c.peak + 1, "left_out",
                     skipped > 0 ? json_pack("{s:i, s:i}", "after", half, "count", skipped)
                                 : NULL,
                     "peak_instruction", is_left_out ? instruction(&c, c.peak) : NULL,
                     "instructions", list);
}
