#include "report/chart.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "report/plan_facts.h"
#include "report/plan_program.h"
#include "report/text.h"
#include "sharding/schedule_memory.h"
#include "sharding/stages.h"

#define ROWS  16 /* of the picture */
#define LABEL 11 /* columns of what stands to the left of the axis */

/* The kinds of memory that the picture shows, from the ground up. */
typedef enum { STATES, ACTIVATIONS, REST, LAYERS } layer;

static const char layer_marks[LAYERS] = {[STATES] = '#', [ACTIVATIONS] = 'o', [REST] = '.'};

static const layer layer_of[ZERO_CLASSES] = {
    [ZERO_CLASS_PARAMETERS] = STATES, [ZERO_CLASS_GRADIENTS] = STATES,
    [ZERO_CLASS_OPTIMIZER] = STATES,  [ZERO_CLASS_GATHERED] = REST,
    [ZERO_CLASS_IN_FLIGHT] = REST,    [ZERO_CLASS_ACCUMULATORS] = REST,
    [ZERO_CLASS_BUCKETS] = REST,      [ZERO_CLASS_KEPT] = ACTIVATIONS,
    [ZERO_CLASS_SLOTS] = REST,        [ZERO_CLASS_ACTIVATIONS] = ACTIVATIONS,
    [ZERO_CLASS_LOGITS] = REST,       [ZERO_CLASS_WORKSPACE] = REST,
    [ZERO_CLASS_DATA] = REST,         [ZERO_CLASS_CACHE] = REST,
};

/* Instructions that a column stands for, by the worst of them. */
struct column {
    bool has_peak;
    char phase;
    double top[LAYERS]; /* bytes of this layer and of those below */
};

/* One stage. */
struct panel {
    const zero_schedule *s;
    int peak; /* the step's worst instruction */
    double bytes[LAYERS];
    struct column columns[ZERO_CHART_COLUMNS];
};

struct chart {
    const zero_plan_report *r;
    int n, width; /* panels, and the columns of each */
    double most;  /* bytes at the top of the picture */
    FILE *out;
    struct panel panels[ZERO_STAGE_COUNT];
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
    memset(bytes, 0, LAYERS * sizeof *bytes);
    for (int c = 0; c < ZERO_CLASSES; c++) bytes[layer_of[c]] += (double)classes[c];
}

/* The pass that an instruction belongs to: forward, backward, or (from LOSS on) the
 * update. */
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

static void make_panel(const struct chart *c, const zero_schedule *s, struct panel *panel)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    panel->s = s;
    panel->peak = worst_of(p, 0, p->length);
    measure(s, panel->peak, panel->bytes);
    for (int k = 0; k < c->width; k++) {
        struct column *column = &panel->columns[k];
        int begin = (int)((int64_t)k * p->length / c->width);
        int end = (int)((int64_t)(k + 1) * p->length / c->width);
        if (end == begin) end++;
        int worst = worst_of(p, begin, end);
        column->has_peak = begin <= panel->peak && panel->peak < end;
        column->phase = phase_of(p, worst);
        measure(s, worst, column->top);
        for (int i = 1; i < LAYERS; i++) column->top[i] += column->top[i - 1];
    }
}

/* ---- drawing ---- */

#define GROUND -1 /* rows below the picture */
#define PHASES -2

/* Memory below half a row is drawn on the ground. */
static char cell(const struct chart *c, const struct column *column, int row)
{
    if (row == GROUND) return column->has_peak ? '^' : '-';
    if (row == PHASES) return column->phase;
    for (layer k = STATES; k < LAYERS; k++)
        if (lround(ROWS * column->top[k] / c->most) > row) return layer_marks[k];
    return row == 0 ? '_' : ' ';
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

/* One line of texts side by side, which steps over what it prints; false: nothing was
 * left. */
static bool print_text_line(const struct chart *c, const char *heading,
                            const char *left[ZERO_STAGE_COUNT])
{
    char line[ZERO_CHART_COLUMNS + 1];
    int end = snprintf(line, sizeof line, "%*s", LABEL, heading);
    bool is_empty = true;
    for (int i = 0; i < c->n; i++) {
        int at = LABEL + 1 + i * (c->width + 1), n = words_that_fit(left[i], c->width);
        if (n == 0) continue;
        end += snprintf(line + end, sizeof line - (size_t)end, "%*s%.*s", at - end, "", n,
                        left[i]);
        left[i] += n;
        left[i] += strspn(left[i], " ");
        is_empty = false;
    }
    if (!is_empty) fprintf(c->out, "%s\n", line);
    return !is_empty;
}

/* The rows of words above and below the picture. */
typedef enum { STAGE, SHARDS, PEAK, BYTES, PLACE, NUMBER, OF_LAYER } word;

static void describe(const struct panel *panel, word what, layer k,
                     char text[ZERO_PLAN_TEXT])
{
    const zero_program *p = &panel->s->programs[ZERO_PROGRAM_STEP];
    const zero_instruction *worst = &p->code[panel->peak];
    const zero_stage *stage = zero_stage_at(panel->s->input.stage);
    const size_t size = ZERO_PLAN_TEXT;
    switch (what) {
    case STAGE: snprintf(text, size, "%d %s", panel->s->input.stage, stage->name); break;
    case SHARDS: snprintf(text, size, "%s", stage->words); break;
    case PEAK: zero_text_bytes((double)worst->live_bytes, text); break;
    case BYTES: snprintf(text, size, "%zu", worst->live_bytes); break;
    case PLACE: zero_text_instruction(panel->s->input.model, worst, text); break;
    case NUMBER: snprintf(text, size, "%d of %d", panel->peak + 1, p->length); break;
    case OF_LAYER: zero_text_bytes(panel->bytes[k], text); break;
    }
}

/* Prints as many lines as the longest text needs. */
static void print_words(const struct chart *c, const char *heading, word what, layer k)
{
    char texts[ZERO_STAGE_COUNT][ZERO_PLAN_TEXT];
    const char *left[ZERO_STAGE_COUNT];
    for (int i = 0; i < c->n; i++) {
        describe(&c->panels[i], what, k, texts[i]);
        left[i] = texts[i];
    }
    while (print_text_line(c, heading, left)) heading = "";
}

static bool is_used(const struct chart *c, int cls)
{
    for (int i = 0; i < c->n; i++)
        if (c->panels[i].s->peak_of[ZERO_PROGRAM_STEP].of_class[cls] > 0) return true;
    return false;
}

/* The marks, the classes of memory that each stands for, and the instructions at the
 * peaks. */
static void print_legend(const struct chart *c)
{
    zero_legend legend = {0};
    fputs(
        "\n# model states   o activations   . the rest   _ below half a row   ^ the peak\n"
        "instructions from left to right: f forward   b backward   u update\n\n",
        c->out);
    for (int k = 0; k < ZERO_CLASSES; k++)
        if (is_used(c, k))
            fprintf(c->out, "%c %-*s  %s\n", layer_marks[layer_of[k]], ZERO_LEGEND_WORD,
                    zero_class_name((zero_class)k), zero_class_meaning((zero_class)k));
    for (int i = 0; i < c->n; i++) {
        const struct panel *panel = &c->panels[i];
        legend.ops[panel->s->programs[ZERO_PROGRAM_STEP].code[panel->peak].op] = true;
    }
    zero_legend_show(&legend, c->out);
}

static zero_status print_chart(const struct chart *c)
{
    char what[ZERO_PLAN_TEXT];
    snprintf(what, sizeof what, "bytes live on rank %d over", c->r->request.rank);
    ZERO_TRY(zero_plan_show_title(c->r, what, c->out));
    fputc('\n', c->out);
    print_words(c, "stage", STAGE, 0);
    print_words(c, "shards", SHARDS, 0);
    /* One character for each column of each panel, after a label and the axis. */
    for (int row = ROWS - 1; row >= PHASES; row--) {
        char label[ZERO_PLAN_TEXT] = "", line[ZERO_CHART_COLUMNS + 1];
        if (row == GROUND) snprintf(label, sizeof label, "0");
        if (row >= 0 && (row + 1) % (ROWS / 4) == 0)
            zero_text_bytes(c->most * (row + 1) / ROWS, label);
        int n = snprintf(line, sizeof line, "%*s%c", LABEL, label,
                         row == GROUND   ? '+'
                         : row == PHASES ? ' '
                                         : '|');
        int end = n;
        for (int i = 0; i < c->n; i++) {
            for (int k = 0; k < c->width; k++) {
                line[n] = cell(c, &c->panels[i].columns[k], row);
                if (line[n++] != ' ') end = n;
            }
            line[n++] = ' ';
        }
        fprintf(c->out, "%.*s\n", end, line);
    }
    print_words(c, "peak", PEAK, 0);
    print_words(c, "bytes", BYTES, 0);
    print_words(c, "at", PLACE, 0);
    print_words(c, "instruction", NUMBER, 0);
    print_words(c, "states", OF_LAYER, STATES);
    print_words(c, "activations", OF_LAYER, ACTIVATIONS);
    print_words(c, "the rest", OF_LAYER, REST);
    /* Evaluation may need more than a step that keeps nothing. */
    for (int i = 0; i < c->n; i++) {
        const zero_schedule *s = c->panels[i].s;
        char bytes[ZERO_PLAN_TEXT];
        zero_text_bytes((double)s->peak_bytes, bytes);
        if (s->peak_program != ZERO_PROGRAM_STEP)
            fprintf(c->out, "stage %d needs more to %s: %s (%zu bytes)\n", s->input.stage,
                    zero_program_name(s->peak_program), bytes, s->peak_bytes);
    }
    print_legend(c);
    return ZERO_OK;
}

zero_status zero_plan_show_chart(const zero_plan_report *report, FILE *out)
{
    struct chart c = {.r = report, .n = report->n, .out = out};
    c.width = (ZERO_CHART_COLUMNS - LABEL) / c.n - 1;
    for (int i = 0; i < c.n; i++) {
        double *bytes = c.panels[i].bytes;
        make_panel(&c, &report->stages[i].schedule, &c.panels[i]);
        c.most = fmax(c.most, bytes[STATES] + bytes[ACTIVATIONS] + bytes[REST]);
    }
    return print_chart(&c);
}
