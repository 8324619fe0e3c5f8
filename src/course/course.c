#include "course/course.h"

#include <limits.h>

#include "base/embedded.h"
#include "base/hash.h"
#include "course/answer.h"
#include "facts/form.h"
#include "zero/random.h"

extern const zero_embedded zero_lesson_texts[];

/* ---- numbers ---- */

#define GBIT INT64_C(125000000)

/* A class's numbers, and those that are drawn for students: `unit` times `least` to
 * `most`. */
static const struct {
    const char *name;
    size_t offset;
    int64_t standard, unit, least, most;
} numbers[] = {
    {"N", offsetof(zero_course_numbers, ranks), 3, 1, 3, ZERO_COURSE_RANKS},
    {"L", offsetof(zero_course_numbers, layers), 1, 1, 1, ZERO_COURSE_LAYERS},
    {"C", offsetof(zero_course_numbers, hidden), 4, 4, 1, ZERO_COURSE_HIDDEN / 4},
    {"M", offsetof(zero_course_numbers, microbatches), 2, 1, 2, 5},
    {"bandwidth", offsetof(zero_course_numbers, bandwidth), 12 * GBIT, GBIT, 10, 16},
};
#define NUMBERS (sizeof numbers / sizeof numbers[0])

/* Fills in what is 0: drawn from the stream, or the standard without one. */
static zero_course_numbers complete(const zero_course_numbers *given,
                                    const zero_random *stream)
{
    zero_course_numbers n = *given;
    for (size_t k = 0; k < NUMBERS; k++) {
        int64_t *number = (int64_t *)((char *)&n + numbers[k].offset);
        int64_t many = numbers[k].most - numbers[k].least + 1;
        float at = 0.0f;
        if (stream) zero_random_uniform(stream, (int64_t)k, 1, &at);
        if (*number == 0)
            *number =
                stream ? numbers[k].unit * (numbers[k].least + (int64_t)(at * (float)many))
                       : numbers[k].standard;
    }
    if (!n.dtype) n.dtype = "fp32";
    return n;
}

zero_course_numbers zero_course_standard(const zero_course_numbers *given)
{
    return complete(given, NULL);
}

zero_course_numbers zero_course_variant(const zero_course_numbers *given, const char *name)
{
    return complete(given,
                    &(zero_random){.seed = (int64_t)(XXH64(name, strlen(name), 0) >> 1)});
}

/* ---- filling ---- */

/* A lesson that is being filled. */
typedef struct {
    const char *name;
    const zero_course_planner *planner;
    const json_t *common; /* entries that all lessons have */
    const char *mistakes; /* where mistakes go: the question's own, or "common" */
    json_t *facts, *held;
    json_t *question; /* the one that entries are of; NULL: none yet */
} filling;

/* A message about `entry`; `what` is NULL where there is one already. */
static zero_status blame(const filling *f, const json_t *entry, const char *what)
{
    zero_failure kept = zero_failure_keep(ZERO_ERR_FORMAT);
    return zero_fail(ZERO_ERR_FORMAT, "lesson %s, line %d: %s", f->name,
                     (int)zero_get_whole(entry, "line"), what ? what : kept.text);
}

/* The entry's text with its holes filled, as member `key` of `to`. */
static zero_status fill(const filling *f, const json_t *entry, json_t *to, const char *key)
{
    char *full = NULL;
    size_t n;
    FILE *memory = open_memstream(&full, &n);
    ZERO_FAIL_IF(!memory, ZERO_ERR_NOMEM, "no memory for a lesson's text");
    zero_status st = zero_form_print_text(f->name, zero_said(entry, "text"),
                                          &(zero_scope){.node = f->facts}, NULL, memory);
    fclose(memory);
    if (st == ZERO_OK) zero_put_string(to, key, full);
    free(full);
    return st == ZERO_OK ? ZERO_OK : blame(f, entry, NULL);
}

static zero_status evaluate(const filling *f, const json_t *entry, const char *expression,
                            zero_fact *fact)
{
    zero_status st =
        zero_fact_of(expression, strlen(expression), &(zero_scope){.node = f->facts}, fact);
    if (st != ZERO_OK) return blame(f, entry, NULL);
    return fact->kind != ZERO_FACT_MISSING ? ZERO_OK
                                           : blame(f, entry, "there is no such fact");
}

/* The value of an answer or a mistake, for a word its place among those of `unit`. None if
 * it is not finite. */
static zero_status put_value(const filling *f, const json_t *entry, const char *expression,
                             json_t *to, const char *key)
{
    zero_fact fact;
    char word[ZERO_ANSWER_BYTES];
    bool is_word = zero_question_kind(f->question) == ZERO_ANSWER_WORD;
    zero_answer chosen = {.value = NAN};
    ZERO_TRY(evaluate(f, entry, expression, &fact));
    zero_print(word, "%.*s", (int)fact.length, fact.text ? fact.text : "");
    if (is_word ? !zero_answer_parse(ZERO_ANSWER_WORD, zero_said(f->question, "unit"), word,
                                     &chosen)
                : fact.kind != ZERO_FACT_NUMBER)
        return blame(f, entry, "this is not what the question's reply is");
    double value = is_word ? chosen.value : fact.number;
    if (isfinite(value)) zero_put_real(to, key, value);
    return ZERO_OK;
}

/* ---- what entries do ---- */

typedef zero_status verb(filling *f, const json_t *entry);

static zero_status do_entries(filling *f, const json_t *entries, const char *only);

static zero_status take_text(filling *f, const json_t *entry)
{
    json_t *owner = f->question ? f->question : f->held;
    const char *word = zero_said(entry, "word");
    if (json_object_get(owner, word)) return blame(f, entry, "is given twice");
    return fill(f, entry, owner, word);
}

static zero_status add_text(filling *f, const json_t *entry)
{
    return fill(f, entry, f->facts, zero_said(entry, "name"));
}

static zero_status add_let(filling *f, const json_t *entry)
{
    zero_fact fact;
    ZERO_TRY(evaluate(f, entry, zero_said(entry, "text"), &fact));
    json_t *copy = fact.node                     ? json_deep_copy(fact.node)
                   : fact.kind == ZERO_FACT_TEXT ? json_stringn(fact.text, fact.length)
                                                 : json_real(fact.number);
    json_object_set_new(f->facts, zero_said(entry, "name"), copy);
    return ZERO_OK;
}

static zero_status set_steps(filling *f, const json_t *entry)
{
    zero_put_whole(f->facts, "steps", atoi(zero_said(entry, "text")));
    return ZERO_OK;
}

/* A plan or a run is a fact under its name; the first one also as "plan" or "run". */
static zero_status add_made(filling *f, const json_t *entry)
{
    const char *kind = zero_said(entry, "word"), *name = zero_said(entry, "name");
    bool is_plan = zero_same_text(kind, "plan"),
         is_first = !json_object_get(f->facts, kind);
    char *text = NULL;
    json_t *fact, *made = json_object();
    json_object_set_new(json_object_get(f->held, "made"), name, made);
    ZERO_TRY(fill(f, entry, made, "words"));
    const char *words = zero_said(made, "words");
    if (is_plan)
        ZERO_TRY(f->planner->plan(words, &text, &fact));
    else
        ZERO_TRY(f->planner->run(words, (int)zero_get_whole(f->facts, "N"),
                                 (int)zero_get_whole(f->facts, "steps"), &fact));
    if (is_plan) zero_put_string(made, "text", text);
    free(text);
    json_object_set_new(f->facts, name, fact);
    if (is_first) json_object_set(f->facts, kind, fact);
    return is_plan && is_first ? do_entries(f, f->common, "let") : ZERO_OK;
}

static zero_status begin_question(filling *f, const json_t *entry)
{
    f->question = json_pack("{s:O}", "line", json_object_get(entry, "line"));
    json_array_append_new(json_object_get(f->held, "questions"), f->question);
    return ZERO_OK;
}

static zero_status put_reply(filling *f, const json_t *entry)
{
    json_object_set(f->question, "kind", json_object_get(entry, "name"));
    json_object_set(f->question, "unit", json_object_get(entry, "text"));
    return ZERO_OK;
}

static zero_status put_number(filling *f, const json_t *entry)
{
    zero_fact fact;
    ZERO_TRY(evaluate(f, entry, zero_said(entry, "text"), &fact));
    zero_put_real(f->question, zero_said(entry, "word"), fact.number);
    return ZERO_OK;
}

static zero_status put_mistake(filling *f, const json_t *entry)
{
    json_t *list = json_object_get(f->question, f->mistakes), *mistake = json_object();
    if (!list) json_object_set_new(f->question, f->mistakes, list = json_array());
    json_array_append_new(list, mistake);
    ZERO_TRY(put_value(f, entry, zero_said(entry, "name"), mistake, "value"));
    return fill(f, entry, mistake, "why");
}

/* Texts and mistakes below may name the answer. */
static zero_status put_answer(filling *f, const json_t *entry)
{
    json_t *q = f->question;
    char said[ZERO_ANSWER_BYTES];
    if (!zero_said(q, "unit")) return blame(f, entry, "reply comes before answer");
    ZERO_TRY(put_value(f, entry, zero_said(entry, "text"), q, "answer"));
    double answer = zero_question_answer(q);
    zero_course_answer(q, answer, said);
    json_object_set_new(f->facts, "answer",
                        zero_question_kind(q) == ZERO_ANSWER_WORD ? json_string(said)
                                                                  : json_real(answer));
    if (!zero_same_text(zero_said(q, "unit"), "bytes") ||
        zero_question_kind(q) != ZERO_ANSWER_WHOLE)
        return ZERO_OK;
    f->mistakes = "common";
    ZERO_TRY(do_entries(f, f->common, "mistake"));
    f->mistakes = "mistakes";
    return ZERO_OK;
}

/* The plan's line that shows the answer. */
static zero_status put_shows(filling *f, const json_t *entry)
{
    const json_t *plan =
        json_object_get(json_object_get(f->held, "made"), zero_said(entry, "name"));
    if (!plan) return blame(f, entry, "there is no such plan");
    json_t *shows = json_copy((json_t *)plan);
    json_object_set_new(f->question, "shows", shows);
    return fill(f, entry, shows, "line");
}

/* ---- files ---- */

/* What the first line of an entry has beside its text. */
typedef enum {
    NAMELESS,
    NAMED,   /* a word */
    EQUATED, /* an expression, which fills the line */
} heading;

static const struct {
    const char *word;
    heading heading;
    verb *act;
    bool is_question; /* of a question; else of the lesson */
} keywords[] = {
    {"title", NAMELESS, take_text, false},
    {"about", NAMELESS, take_text, false},
    {"text", NAMED, add_text, false},
    {"plan", NAMED, add_made, false},
    {"steps", NAMELESS, set_steps, false},
    {"run", NAMED, add_made, false},
    {"tells-step", NAMELESS, take_text, false},
    {"let", NAMED, add_let, false},
    {"question", NAMELESS, begin_question, false},
    {"screen", NAMELESS, take_text, true},
    {"ask", NAMELESS, take_text, true},
    {"reply", NAMED, put_reply, true},
    {"within", NAMELESS, put_number, true},
    {"answer", NAMELESS, put_answer, true},
    {"mistake", EQUATED, put_mistake, true},
    {"because", NAMELESS, take_text, true},
    {"shows", NAMED, put_shows, true},
    {"command", NAMELESS, take_text, true},
    {"tells", NAMELESS, put_number, true},
    {"against", NAMELESS, take_text, true},
};
#define KEYWORDS (sizeof keywords / sizeof keywords[0])

/* Does those with this word; NULL: all. */
static zero_status do_entries(filling *f, const json_t *entries, const char *only)
{
    json_t *entry;
    size_t i;
    json_array_foreach(entries, i, entry)
    {
        const char *word = zero_said(entry, "word");
        size_t k = 0;
        if (only && !zero_same_text(word, only)) continue;
        while (!zero_same_text(keywords[k].word, word)) k++;
        if (!only && keywords[k].is_question && !f->question)
            return blame(f, entry, "belongs to a question");
        if (!only && !keywords[k].is_question && f->question &&
            keywords[k].act != begin_question)
            return blame(f, entry, "belongs before the questions");
        ZERO_TRY(keywords[k].act(f, entry));
    }
    return ZERO_OK;
}

#define INDENT 4

static void add_line(json_t *entry, const char *line, size_t n)
{
    const char *before = zero_said(entry, "text");
    json_object_set_new(
        entry, "text", json_sprintf("%s%s%.*s", before, *before ? "\n" : "", (int)n, line));
}

zero_status zero_course_parse(const char *name, const char *text, json_t **lesson)
{
    json_t *made = json_pack("{s:s,s:[]}", "name", name, "entries"), *entry = NULL;
    const char *why = NULL;
    int line = 1, questions = 0;
    for (; *text && !why; line++) {
        size_t n = strcspn(text, "\n"), word = strcspn(text, " \n"), k = 0;
        const char *at = text;
        text += n + (text[n] == '\n');
        while (n > 0 && at[n - 1] == ' ') n--;
        if (n == 0 || at[0] == '#') continue;
        if (n > INDENT && strspn(at, " ") >= INDENT) {
            if (entry)
                add_line(entry, at + INDENT, n - INDENT);
            else
                why = "an indented line continues nothing";
            continue;
        }
        while (k < KEYWORDS && (strlen(keywords[k].word) != word ||
                                memcmp(at, keywords[k].word, word) != 0))
            k++;
        if (k == KEYWORDS) {
            why = "there is no such keyword";
            continue;
        }
        questions += keywords[k].act == begin_question;
        const char *end = at + n, *rest = at + word;
        while (rest < end && *rest == ' ') rest++;
        size_t left = (size_t)(end - rest), first = strcspn(rest, " \n");
        size_t named = keywords[k].heading == NAMELESS                ? 0
                       : keywords[k].heading == NAMED && first < left ? first
                                                                      : left;
        entry = json_pack("{s:i,s:s,s:s%,s:s}", "line", line, "word", keywords[k].word,
                          "name", rest, named, "text", "");
        json_array_append_new(json_object_get(made, "entries"), entry);
        for (rest += named; rest < end && *rest == ' ';) rest++;
        if (rest < end) add_line(entry, rest, (size_t)(end - rest));
        if (keywords[k].act == take_text && !json_object_get(made, keywords[k].word))
            json_object_set(made, keywords[k].word, json_object_get(entry, "text"));
    }
    zero_put_whole(made, "n", questions);
    if (!why && json_object_get(made, "title") && json_object_get(made, "about")) {
        *lesson = made;
        return ZERO_OK;
    }
    json_decref(made);
    return zero_fail(ZERO_ERR_FORMAT, "lesson %s, line %d: %s", name, line - 1,
                     why ? why : "there is no title, or no about");
}

#define COMMON "common" /* the file that all lessons have */

zero_status zero_course_read(json_t **lessons)
{
    json_auto_t *all = json_array();
    for (const zero_embedded *e = zero_lesson_texts; e->name; e++) {
        json_t *lesson;
        if (zero_same_text(e->name, COMMON)) continue;
        ZERO_TRY(zero_course_parse(e->name, e->text, &lesson));
        json_array_append_new(all, lesson);
    }
    *lessons = json_incref(all);
    return ZERO_OK;
}

const char *zero_said(const json_t *of, const char *key)
{
    return zero_get_string(of, key);
}

int zero_course_questions(const json_t *lesson)
{
    return (int)zero_get_whole(lesson, "n");
}

void zero_course_list(const json_t *lessons, FILE *out)
{
    for (size_t n = 0; n < json_array_size(lessons); n++) {
        const json_t *l = json_array_get(lessons, n);
        fprintf(out, "%4d  %-25s %2d questions  %s\n", (int)n + 1, zero_said(l, "title"),
                zero_course_questions(l), zero_said(l, "about"));
    }
}

zero_status zero_course_fill(const json_t *lesson, const zero_course_numbers *n,
                             const zero_course_planner *planner, json_t **held)
{
    json_auto_t *common = NULL,
                *facts = json_pack("{s:s,s:i}", "dtype", n->dtype, "steps", 1),
                *made = json_pack("{s:O,s:{},s:[]}", "facts", facts, "made", "questions");
    json_t *q;
    size_t k;
    filling f = {.name = zero_said(lesson, "name"),
                 .planner = planner,
                 .mistakes = "mistakes",
                 .facts = facts,
                 .held = made};
    for (k = 0; k < NUMBERS; k++)
        zero_put_whole(facts, numbers[k].name,
                       *(const int64_t *)((const char *)n + numbers[k].offset));
    ZERO_TRY(
        zero_course_parse(COMMON, zero_embedded_text(zero_lesson_texts, COMMON), &common));
    f.common = json_object_get(common, "entries");
    ZERO_TRY(do_entries(&f, f.common, "text"));
    ZERO_TRY(do_entries(&f, json_object_get(lesson, "entries"), NULL));
    json_array_foreach(json_object_get(made, "questions"), k, q)
    {
        if (!zero_said(q, "ask") || !zero_said(q, "unit") || !zero_said(q, "because") ||
            !json_object_get(q, "answer"))
            return blame(&f, q, "a question needs ask, reply, answer and because");
    }
    *held = json_incref(made);
    return ZERO_OK;
}
