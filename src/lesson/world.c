#include "lesson/world.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/type.h"

/* ---- plans ---- */

const zero_plan_report *zero_world_report(const zero_course_world *w, int plan)
{
    return w->planner->report(w->plans[plan]);
}

const zero_schedule *zero_world_schedule(const zero_course_world *w, int plan)
{
    return &zero_world_report(w, plan)->stages[0].schedule;
}

const zero_plan_ledger *zero_world_ledger(const zero_course_world *w, int plan)
{
    return &zero_world_report(w, plan)->stages[0].ledger;
}

double zero_world_psi(const zero_course_world *w)
{
    return (double)zero_world_report(w, 0)->model.n_params;
}

double zero_world_padded(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 0)->padded;
}

double zero_world_ranks(const zero_course_world *w)
{
    return (double)w->numbers->ranks;
}

double zero_world_element(const zero_course_world *w)
{
    return (double)zero_type_size(zero_world_schedule(w, 0)->input.type);
}

double zero_world_reduced(const zero_course_world *w, int plan)
{
    return (double)zero_traffic_total(&zero_world_ledger(w, plan)->reduce.traffic)
        .bytes_sent;
}

double zero_world_gathered(const zero_course_world *w, int plan)
{
    return (double)zero_traffic_total(&zero_world_ledger(w, plan)->gather.traffic)
        .bytes_sent;
}

static bool is_of(const zero_instruction *i, zero_op op, int operand)
{
    bool has_unit = op == ZERO_OP_FORWARD || op == ZERO_OP_BACKWARD;
    return i->op == op && (operand < 0 || (has_unit ? i->unit : i->group) == operand);
}

int zero_world_find(const zero_course_world *w, int plan, zero_op op, int operand)
{
    const zero_program *p = &zero_world_schedule(w, plan)->programs[ZERO_PROGRAM_STEP];
    for (int at = 0; at < p->length; at++)
        if (is_of(&p->code[at], op, operand)) return at + 1;
    return 0;
}

int zero_world_count(const zero_course_world *w, int plan, zero_op op)
{
    const zero_program *p = &zero_world_schedule(w, plan)->programs[ZERO_PROGRAM_STEP];
    int n = 0;
    for (int at = 0; at < p->length; at++) n += is_of(&p->code[at], op, -1);
    return n;
}

const zero_told *zero_world_told(const zero_course_world *w, int rank, zero_op op,
                                 int operand)
{
    const zero_tale *tale = zero_lesson_tale(w->machines[0].machine);
    bool has_unit = op == ZERO_OP_FORWARD || op == ZERO_OP_BACKWARD;
    for (int at = 0; at < tale->length; at++) {
        const zero_told *t = zero_tale_at(tale, rank, at);
        if (t->op == op && (operand < 0 || (has_unit ? t->unit : t->group) == operand))
            return t;
    }
    return NULL;
}

/* ---- values in templates ---- */

static double layers(const zero_course_world *w)
{
    return (double)w->numbers->layers;
}

static double hidden(const zero_course_world *w)
{
    return (double)w->numbers->hidden;
}

static double microbatches(const zero_course_world *w)
{
    return (double)w->numbers->microbatches;
}

static double bandwidth(const zero_course_world *w)
{
    return (double)w->numbers->bandwidth;
}

static double one_less(const zero_course_world *w)
{
    return (double)(w->numbers->ranks - 1);
}

static double twice(const zero_course_world *w)
{
    return (double)(2 * w->numbers->ranks);
}

static double batch(const zero_course_world *w)
{
    return (double)(w->numbers->ranks * w->numbers->microbatches);
}

static const zero_course_name names[] = {
    {"N", zero_world_ranks},
    {"N-1", one_less},
    {"2N", twice},
    {"NM", batch},
    {"L", layers},
    {"C", hidden},
    {"M", microbatches},
    {"bandwidth", bandwidth},
    {"psi", zero_world_psi},
    {"padded", zero_world_padded},
    {"bytes", zero_world_element},
    {NULL, NULL},
};

void zero_course_number(double value, char text[32])
{
    if (value == floor(value) && fabs(value) < 9e15)
        snprintf(text, 32, "%" PRId64, (int64_t)value);
    else
        snprintf(text, 32, "%.6g", value);
}

static void write_word(const char *words, int number, char text[32])
{
    for (; number > 0 && strchr(words, '|'); number--) words = strchr(words, '|') + 1;
    snprintf(text, 32, "%.*s", (int)strcspn(words, "|"), words);
}

void zero_course_answer(const zero_question *q, double value, char text[32])
{
    if (q->kind == ZERO_ANSWER_WORD)
        write_word(q->unit, (int)value, text);
    else
        zero_course_number(value, text);
}

static zero_course_value *find(const zero_course_name *list, const char *name,
                               size_t length)
{
    for (; list && list->name; list++)
        if (strlen(list->name) == length && memcmp(list->name, name, length) == 0)
            return list->value;
    return NULL;
}

/* The options of the small model: those that differ from the preset's. */
static void write_model(const zero_course_numbers *n, char text[96])
{
    int at = snprintf(text, 96, "--model lesson");
    if (n->layers != 1)
        at += snprintf(text + at, 96 - (size_t)at, " --layers %" PRId64, n->layers);
    if (n->hidden != 4)
        snprintf(text + at, 96 - (size_t)at, " --hidden %" PRId64, n->hidden);
}

/* "1 block", "2 blocks" */
static void write_blocks(const zero_course_numbers *n, char text[96])
{
    snprintf(text, 96, "%" PRId64 " block%s", n->layers, n->layers == 1 ? "" : "s");
}

static bool write_value(const zero_lesson *lesson, const zero_question *q,
                        const zero_course_world *w, const char *name, size_t length,
                        char text[96])
{
    zero_course_value *value = find(names, name, length);
    if (!value) value = find(lesson->names, name, length);
    if (length == 5 && memcmp(name, "model", 5) == 0)
        write_model(w->numbers, text);
    else if (length == 6 && memcmp(name, "blocks", 6) == 0)
        write_blocks(w->numbers, text);
    else if (length == 5 && memcmp(name, "dtype", 5) == 0)
        snprintf(text, 96, "%s", w->numbers->dtype);
    else if (length == 5 && memcmp(name, "other", 5) == 0)
        snprintf(text, 96, "%s",
                 strcmp(w->numbers->dtype, "fp32") == 0 ? "16 bits" : "fp32");
    else if (q && length == 6 && memcmp(name, "answer", 6) == 0)
        zero_course_answer(q, q->answer(w), text);
    else if (value)
        zero_course_number(value(w), text);
    else
        snprintf(text, 96, "{?}");
    return strcmp(text, "{?}") != 0;
}

bool zero_course_expand(const zero_lesson *lesson, const zero_question *q,
                        const zero_course_world *w, const char *template,
                        char text[ZERO_COURSE_TEXT])
{
    size_t at = 0;
    bool known = true;
    while (*template && at + 96 < ZERO_COURSE_TEXT) {
        const char *end = *template == '{' ? strchr(template, '}') : NULL;
        if (!end) {
            text[at++] = *template ++;
            continue;
        }
        char value[96];
        known &=
            write_value(lesson, q, w, template + 1, (size_t)(end - template - 1), value);
        at += (size_t)snprintf(text + at, ZERO_COURSE_TEXT - at, "%s", value);
        template = end + 1;
    }
    text[at] = '\0';
    return known && *template == '\0';
}

/* ---- a lesson's world ---- */

static void expand_words(const zero_course_world *w, const zero_lesson *lesson,
                         const char *template, char words[ZERO_COURSE_WORDS])
{
    char text[ZERO_COURSE_TEXT];
    (void)zero_course_expand(lesson, NULL, w, template, text);
    snprintf(words, ZERO_COURSE_WORDS, "%.255s", text);
}

static zero_status make_plans(zero_course_world *w, const zero_lesson *lesson)
{
    for (int k = 0; lesson->plans[k]; k++) {
        expand_words(w, lesson, lesson->plans[k], w->words[k]);
        ZERO_TRY(w->planner->make(w->words[k], &w->plans[k]));
        w->n_plans = k + 1;
    }
    return ZERO_OK;
}

static zero_status walk(zero_course_world *w, const zero_lesson *lesson,
                        zero_course_machine *m)
{
    ZERO_TRY(
        zero_lesson_open(w->planner->config(m->run), (int)w->numbers->ranks, &m->machine));
    for (int k = 0; k < lesson->steps; k++)
        ZERO_TRY(zero_lesson_walk(m->machine, &m->last));
    return ZERO_OK;
}

static zero_status make_machines(zero_course_world *w, const zero_lesson *lesson)
{
    for (int k = 0; lesson->machines && lesson->machines[k]; k++) {
        char words[ZERO_COURSE_WORDS];
        expand_words(w, lesson, lesson->machines[k], words);
        ZERO_TRY(w->planner->configure(words, &w->machines[k].run));
        w->n_machines = k + 1;
        ZERO_TRY(walk(w, lesson, &w->machines[k]));
        ZERO_TRY(zero_lesson_digest(w->machines[k].machine, w->machines[k].digest));
    }
    return ZERO_OK;
}

zero_status zero_course_open(zero_course_world *w, const zero_lesson *lesson,
                             const zero_course_numbers *numbers,
                             const zero_course_planner *planner)
{
    *w = (zero_course_world){.numbers = numbers, .planner = planner};
    zero_status st = make_plans(w, lesson);
    if (st == ZERO_OK) st = make_machines(w, lesson);
    if (st == ZERO_OK) return ZERO_OK;
    zero_failure kept = zero_failure_keep(st);
    zero_course_close(w);
    return zero_failure_restore(&kept);
}

void zero_course_close(zero_course_world *w)
{
    for (int k = 0; k < w->n_machines; k++) {
        zero_lesson_close(&w->machines[k].machine);
        w->planner->forget(w->machines[k].run);
    }
    for (int k = 0; k < w->n_plans; k++) w->planner->destroy(w->plans[k]);
    *w = (zero_course_world){.n_plans = 0};
}
