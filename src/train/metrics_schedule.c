/* The training step's program in the first line of the metrics. */

#include "sharding/instruction_text.h"
#include "sharding/schedule_memory.h"
#include "train/metrics.h"

/* A program, and the bytes of each class at each of its instructions. */
typedef struct {
    const zero_schedule *s;
    const zero_program *p;
    size_t (*live)[ZERO_CLASSES]; /* [p->length] */
    bool used[ZERO_CLASSES];      /* the class has bytes somewhere */
    int peak;                     /* the first instruction with the most bytes */
} staircase;

static json_t *classes(const staircase *c)
{
    json_t *list = json_array();
    for (zero_class k = 0; k < ZERO_CLASSES; k++)
        if (c->used[k]) json_array_append_new(list, json_string(zero_class_name(k)));
    return list;
}

static json_t *live(const staircase *c, int at)
{
    json_t *list = json_array();
    for (int k = 0; k < ZERO_CLASSES; k++)
        if (c->used[k])
            json_array_append_new(list, json_integer((json_int_t)c->live[at][k]));
    return list;
}

static json_t *instruction(const staircase *c, int at)
{
    const zero_instruction *i = &c->p->code[at];
    int64_t bytes = zero_plan_instruction_bytes(c->s, i);
    char name[ZERO_PLAN_TEXT];
    zero_text_instruction(c->s->model, i, name);
    json_t *object =
        json_pack("{s:s, s:o}", "op", zero_op_name(i->op), "name", zero_metrics_text(name));
    if (zero_ops[i->op].has_microbatch)
        json_object_set_new(object, "microbatch", json_integer(i->microbatch));
    if (bytes >= 0) json_object_set_new(object, "bytes", json_integer(bytes));
    json_object_set_new(object, "live", live(c, at));
    return object;
}

/* With `skipped` > 0 from instruction `after` on as many are left out. */
static json_t *instructions(const staircase *c, int after, int skipped)
{
    json_t *list = json_array();
    for (int at = 0; at < c->p->length; at++)
        if (at < after || at >= after + skipped)
            json_array_append_new(list, instruction(c, at));
    return list;
}

static json_t *describe(const staircase *c)
{
    const int half = ZERO_METRICS_INSTRUCTIONS / 2;
    int skipped = c->p->length - ZERO_METRICS_INSTRUCTIONS;
    if (skipped < 0) skipped = 0;
    json_t *schedule = json_pack("{s:o, s:i, s:i}", "classes", classes(c), "length",
                                 c->p->length, "peak", c->peak + 1);
    if (skipped > 0) {
        json_object_set_new(schedule, "left_out",
                            json_pack("{s:i, s:i}", "after", half, "count", skipped));
        if (c->peak >= half && c->peak < half + skipped)
            json_object_set_new(schedule, "peak_instruction", instruction(c, c->peak));
    }
    json_object_set_new(schedule, "instructions", instructions(c, half, skipped));
    return schedule;
}

json_t *zero_metrics_schedule(const zero_schedule *s)
{
    staircase c = {.s = s, .p = &s->programs[ZERO_PROGRAM_STEP]};
    c.live = calloc((size_t)c.p->length + 1, sizeof *c.live);
    if (!c.live) return NULL;
    zero_schedule_live(c.s, ZERO_PROGRAM_STEP, c.live);
    for (int at = 0; at < c.p->length; at++) {
        for (int k = 0; k < ZERO_CLASSES; k++) c.used[k] = c.used[k] || c.live[at][k] > 0;
        if (c.p->code[at].live_bytes > c.p->code[c.peak].live_bytes) c.peak = at;
    }
    json_t *schedule = describe(&c);
    free(c.live);
    return schedule;
}
