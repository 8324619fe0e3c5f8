/* The staircase of memory: bytes of each class while an instruction of the step runs.
 *
 * A long program has fewer columns than instructions. A column shows the worst of its own,
 * so that the peak is never lost. */

#include "pages/page_parts.h"
#include "pages/svg_axis.h"

#define LEFT    56.0
#define RIGHT   1030.0
#define TOP     36.0
#define BOTTOM  270.0
#define COLUMNS 400
#define HITS    160

typedef struct {
    const json_t *program; /* "more/program" (run.c) */
    int n, columns;
    const json_t *worst[COLUMNS]; /* instruction of each column */
    int peak;                     /* column */
    double unit;                  /* bytes of 1 on the axis */
    zero_axis x, y;
} stairs;

static const json_t *instruction(const stairs *s, int i)
{
    return json_array_get(s->program, (size_t)i);
}

/* Bytes of all classes, and of classes 0 to c. */
static double bytes_of(const json_t *instruction)
{
    return zero_get_number(instruction, "bytes");
}

static int first_of(const stairs *s, int column)
{
    return (int)((int64_t)column * s->n / s->columns);
}

static double left_of(const stairs *s, int column)
{
    return zero_axis_at(&s->x, (double)first_of(s, column) + 1.0);
}

/* The area below the sum of classes 0 to c: where its top changes. Those of fewer classes
 * are drawn over it. */
static json_t *steps_of(const stairs *s, int c)
{
    json_t *steps = json_array();
    double before = NAN;
    for (int k = 0; k < s->columns; k++) {
        const json_t *live = json_object_get(s->worst[k], "live");
        double sum = 0.0;
        for (int b = 0; b <= c; b++)
            sum += json_number_value(json_array_get(live, (size_t)b));
        double top = zero_axis_at(&s->y, sum / s->unit);
        if (k > 0 && fabs(top - before) < 0.05) continue;
        zero_put_item(steps, "{s:f, s:f}", "x", left_of(s, k), "y", top);
        before = top;
    }
    return steps;
}

/* The passes of a step. The update begins with LOSS. */
static json_t *passes_of(const stairs *s)
{
    static const char *const names[] = {"forward", "backward", "update"};
    enum { FORWARD, BACKWARD, UPDATE } pass = FORWARD, next;
    json_t *passes = json_array();
    for (int i = 0, begin = 0; i <= s->n; i++) {
        const char *op = zero_get_string(instruction(s, i), "op");
        next = pass;
        if (op && pass != UPDATE) {
            if (zero_same_text(op, "LOSS")) next = UPDATE;
            if (zero_same_text(op, "FORWARD")) next = FORWARD;
            if (zero_same_text(op, "BACKWARD") || zero_same_text(op, "RECOMPUTE"))
                next = BACKWARD;
        }
        if (op && next == pass) continue;
        if (i > begin)
            zero_put_item(passes, "{s:s, s:f, s:f}", "name", names[pass], "from",
                          zero_axis_at(&s->x, begin + 1.0), "to",
                          zero_axis_at(&s->x, i + 1.0));
        begin = i;
        pass = next;
    }
    return passes;
}

/* What the pointer shows of every few columns: their worst. */
static json_t *hits_of(const stairs *s)
{
    json_t *hits = json_array();
    int every = 1 + (s->columns - 1) / HITS;
    for (int k = 0; k < s->columns; k += every) {
        int end = k + every < s->columns ? k + every : s->columns, worst = k;
        for (int i = k; i < end; i++)
            if (bytes_of(s->worst[i]) > bytes_of(s->worst[worst])) worst = i;
        json_t *classes = json_array();
        for (int c = ZERO_CLASSES - 1; c >= 0; c--) {
            json_t *bytes =
                json_array_get(json_object_get(s->worst[worst], "live"), (size_t)c);
            if (json_integer_value(bytes) > 0)
                zero_put_item(classes, "{s:s, s:O}", "name", zero_class_name((zero_class)c),
                              "bytes", bytes);
        }
        zero_put_item(hits, "{s:f, s:f, s:O, s:o}", "from", left_of(s, k), "to",
                      left_of(s, end), "of", s->worst[worst], "classes", classes);
    }
    return hits;
}

json_t *zero_page_stairs(const json_t *program)
{
    stairs s = {.program = program, .n = (int)json_array_size(program)};
    json_t *areas = json_array();
    bool is_used[ZERO_CLASSES] = {false};
    s.columns = s.n < COLUMNS ? s.n : COLUMNS;
    for (int k = 0; k < s.columns; k++) {
        s.worst[k] = instruction(&s, first_of(&s, k));
        for (int i = first_of(&s, k); i < first_of(&s, k + 1); i++) {
            const json_t *live = json_object_get(instruction(&s, i), "live");
            if (bytes_of(instruction(&s, i)) > bytes_of(s.worst[k]))
                s.worst[k] = instruction(&s, i);
            for (size_t c = 0; c < ZERO_CLASSES; c++)
                is_used[c] |= json_integer_value(json_array_get(live, c)) > 0;
        }
        if (bytes_of(s.worst[k]) > bytes_of(s.worst[s.peak])) s.peak = k;
    }
    double most = bytes_of(s.worst[s.peak]);
    const char *unit = zero_page_unit(most, &s.unit);
    s.x = zero_axis_make(ZERO_AXIS_EXACT, 1.0, s.n + 1.0, 12, LEFT, RIGHT);
    if (s.x.step < 1.0) s.x.step = 1.0;
    s.y = zero_axis_make(ZERO_AXIS_ZERO, 0.0, most / s.unit, 6, BOTTOM, TOP);
    for (int c = ZERO_CLASSES - 1; c >= 0; c--)
        if (is_used[c])
            zero_put_item(areas, "{s:i, s:s, s:o}", "class", c, "name",
                          zero_class_name((zero_class)c), "steps", steps_of(&s, c));
    double from = left_of(&s, s.peak), to = left_of(&s, s.peak + 1);
    return json_pack("{s:f, s:f, s:f, s:i, s:s, s:o, s:f, s:o, s:o, s:o, s:o, s:{s:O, s:f, "
                     "s:f, s:f, s:f}}",
                     "left", LEFT, "right", RIGHT, "bottom", BOTTOM, "n", s.n, "unit", unit,
                     "areas", areas, "last", left_of(&s, s.columns), "x",
                     zero_axis_facts(&s.x), "y", zero_axis_facts(&s.y), "passes",
                     passes_of(&s), "hits", hits_of(&s), "peak", "of", s.worst[s.peak],
                     "from", from, "to", to, "middle", 0.5 * (from + to), "y",
                     zero_axis_at(&s.y, most / s.unit));
}
