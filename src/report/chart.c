#include "report/plan_facts.h"

#include "report/json_put.h"
#include "report/plan_program.h"
#include "sharding/schedule_memory.h"

#define ROWS  16 /* of the picture */
#define LABEL 11 /* columns of what stands to the left of the axis */

/* The kinds of memory that the picture shows, from the ground up. */
typedef enum { STATES, ACTIVATIONS, REST, LAYERS } layer;

static const layer layer_of[ZERO_CLASSES] = {
    [ZERO_CLASS_PARAMETERS] = STATES, [ZERO_CLASS_GRADIENTS] = STATES,
    [ZERO_CLASS_OPTIMIZER] = STATES,  [ZERO_CLASS_GATHERED] = REST,
    [ZERO_CLASS_IN_FLIGHT] = REST,    [ZERO_CLASS_ACCUMULATORS] = REST,
    [ZERO_CLASS_BUCKETS] = REST,      [ZERO_CLASS_KEPT] = ACTIVATIONS,
    [ZERO_CLASS_SLOTS] = REST,        [ZERO_CLASS_ACTIVATIONS] = ACTIVATIONS,
    [ZERO_CLASS_LOGITS] = REST,       [ZERO_CLASS_WORKSPACE] = REST,
    [ZERO_CLASS_DATA] = REST,         [ZERO_CLASS_CACHE] = REST,
};

/* ---- measuring ---- */

static int worst_of(const zero_program *p, int begin, int end)
{
    int worst = begin;
    for (int at = begin; at < end; at++)
        if (p->code[at].live_bytes > p->code[worst].live_bytes) worst = at;
    return worst;
}

static void measure(const zero_schedule *s, int at, double bytes[LAYERS])
{
    size_t classes[ZERO_CLASSES];
    zero_schedule_live_at(s, ZERO_PROGRAM_STEP, at, classes);
    zero_clear(bytes, LAYERS);
    for (int c = 0; c < ZERO_CLASSES; c++) bytes[layer_of[c]] += (double)classes[c];
}

/* The pass that an instruction belongs to: forward, backward, or (from LOSS on)
 * the update. */
static char phase_of(const zero_program *p, int at)
{
    for (; at >= 0; at--) {
        zero_op op = p->code[at].op;
        if (op == ZERO_OP_LOSS) return 'u';
        if (op == ZERO_OP_BACKWARD || op == ZERO_OP_RECOMPUTE) return 'b';
        if (op == ZERO_OP_FORWARD) return 'f';
    }
    return 'f';
}

/* ---- words ---- */

/* The length of the words of a text that fit `width`; a longer word is cut. */
static int words_that_fit(const char *text, int width)
{
    int fits = 0, n = 0;
    for (; n <= width && text[n]; n++)
        if (text[n] == ' ') fits = n;
    if (!text[n] && n <= width) return n;
    return fits > 0 ? fits : width;
}

/* Texts of n panels side by side, in as many lines as the longest one needs. */
static json_t *lines_of(int n, int width, const char *left[ZERO_STAGE_COUNT])
{
    json_t *lines = json_array();
    for (bool is_done = false; !is_done;) {
        json_t *cells = json_array();
        is_done = true;
        for (int i = 0; i < n; i++) {
            int fits = words_that_fit(left[i], width);
            json_array_append_new(cells, json_stringn(left[i], (size_t)fits));
            left[i] += fits;
            left[i] += strspn(left[i], " ");
            is_done = is_done && !*left[i];
        }
        json_array_append_new(lines, cells);
    }
    return lines;
}

/* Classes that a step of any stage uses. */
static json_t *used_classes(const zero_plan_report *r)
{
    static const char *const marks[LAYERS] = {
        [STATES] = "#", [ACTIVATIONS] = "o", [REST] = "."};
    json_t *classes = json_array();
    for (int c = 0; c < ZERO_CLASSES; c++) {
        bool is_used = false;
        for (int i = 0; i < r->n; i++)
            is_used =
                is_used || r->stages[i].schedule.peak_of[ZERO_PROGRAM_STEP].of_class[c];
        if (is_used)
            zero_put_item(classes, "{s:s, s:s, s:s}", "mark", marks[layer_of[c]], "name",
                          zero_class_name((zero_class)c), "meaning",
                          zero_class_meaning((zero_class)c));
    }
    return classes;
}

zero_status zero_plan_show_chart(const zero_plan_report *r, FILE *out)
{
    const int width = (ZERO_CHART_COLUMNS - LABEL) / r->n - 1;
    zero_legend legend = {0};
    char places[ZERO_STAGE_COUNT][ZERO_PLAN_TEXT];
    const char *shards[ZERO_STAGE_COUNT], *at[ZERO_STAGE_COUNT];
    json_t *facts = zero_plan_setup_facts(r), *panels = json_array(), *rows = json_array();
    for (int i = 0; i < r->n; i++) {
        const zero_schedule *s = &r->stages[i].schedule;
        const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
        const int peak = worst_of(p, 0, p->length);
        double bytes[LAYERS];
        json_t *columns = json_array();
        measure(s, peak, bytes);
        for (int k = 0; k < width; k++) {
            int begin = (int)((int64_t)k * p->length / width);
            int end = (int)((int64_t)(k + 1) * p->length / width);
            /* Instructions that a column stands for, by the worst of them. */
            if (end == begin) end++;
            const int worst = worst_of(p, begin, end);
            const char phase[] = {phase_of(p, worst), '\0'};
            double of[LAYERS];
            measure(s, worst, of);
            zero_put_item(columns, "{s:s, s:b, s:[f, f, f]}", "phase", phase, "has_peak",
                          begin <= peak && peak < end, "tops", of[STATES],
                          of[STATES] + of[ACTIVATIONS],
                          of[STATES] + of[ACTIVATIONS] + of[REST]);
        }
        /* Evaluation may need more than a step that keeps nothing. */
        bool is_beside = s->peak_program != ZERO_PROGRAM_STEP;
        zero_put_item(panels, "{s:i, s:s, s:I, s:i, s:i, s:[f, f, f], s:o, s:s*, s:I}",
                      "stage", s->input.stage, "name", zero_stage_at(s->input.stage)->name,
                      "bytes", p->code[peak].live_bytes, "number", peak + 1, "of",
                      p->length, "layers", bytes[STATES], bytes[ACTIVATIONS], bytes[REST],
                      "columns", columns, "needs_more",
                      is_beside ? zero_program_name(s->peak_program) : NULL, "peak_bytes",
                      s->peak_bytes);
        zero_text_instruction(s->input.model, &p->code[peak], places[i]);
        legend.ops[p->code[peak].op] = true;
        at[i] = places[i];
        shards[i] = zero_stage_at(s->input.stage)->words;
    }
    for (int row = ROWS - 1; row >= 0; row--)
        json_array_append_new(rows, json_integer(row));
    zero_put_members(facts, "{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "width", width, "rows",
                     rows, "panels", panels, "shards_lines", lines_of(r->n, width, shards),
                     "at_lines", lines_of(r->n, width, at), "classes", used_classes(r),
                     "legend", zero_legend_facts(&legend));
    return zero_report_print("chart", facts, out);
}
