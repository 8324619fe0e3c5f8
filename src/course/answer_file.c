#include "course/answer_file.h"

#include <strings.h>

#include "base/legible.h"
#include "course/hold.h"

/* A student's answers: an object of lines by their place, "1.2"; null for one that is not
 * whole. */
typedef struct {
    char name[64];
    bool has_variant;
    json_t *answers; /* owned */
} student;

/* A mistake and how many made it. */
typedef struct {
    int lesson, question, mistake, n;
} common;

#define COMMON       256
#define NAME_COLUMNS 20

typedef struct {
    const zero_grading *grading;
    int line;
    int students, all_right;
    int64_t wrong; /* answers */
    common list[COMMON];
    int n_common;
    bool has_head;
    int column;
} class_state;

static int questions_of(const class_state *c, int lesson)
{
    return zero_course_questions(json_array_get(c->grading->lessons, (size_t)lesson - 1));
}

static const json_t *answer_to(const student *s, int lesson, int question)
{
    char place[32];
    zero_print(place, "%d.%d", lesson, question);
    return json_object_get(s->answers, place);
}

/* ---- grading ---- */

static void count_common(class_state *c, int lesson, int question, int mistake)
{
    int k = 0;
    while (k < c->n_common &&
           (c->list[k].lesson != lesson || c->list[k].question != question ||
            c->list[k].mistake != mistake))
        k++;
    if (k == COMMON) return;
    if (k == c->n_common) c->list[c->n_common++] = (common){lesson, question, mistake, 0};
    c->list[k].n++;
}

/* A name in its column, cut between characters. */
static int say_name(const char *name, FILE *out)
{
    int columns = 0;
    size_t n = 0;
    for (; name[n]; n++) {
        bool begins = ((unsigned char)name[n] & 0xC0) != 0x80;
        if (begins && columns == NAME_COLUMNS) break;
        columns += begins;
    }
    return fprintf(out, "%.*s%*s", (int)n, name, NAME_COLUMNS - columns, "") - (int)n +
           columns;
}

/* The questions of one lesson. */
static zero_status grade_lesson(class_state *c, const student *s,
                                const zero_course_numbers *numbers, int n, int *right,
                                int *answered)
{
    static const char *const words[ZERO_GRADES] = {"no answer", "right", "a usual mistake",
                                                   "wrong", "not readable"};
    static const char marks[ZERO_GRADES] = {'-', '=', 'm', 'x', '?'};
    FILE *out = c->grading->out;
    json_t *lesson;
    ZERO_TRY(zero_course_fill(json_array_get(c->grading->lessons, (size_t)n - 1), numbers,
                              c->grading->planner, &lesson));
    const json_t *questions = json_object_get(lesson, "questions");
    int n_questions = (int)json_array_size(questions);
    /* Marks of a lesson that would pass the right margin begin a line of their own. */
    if (!c->grading->by_question && c->column + 4 + n_questions > 60)
        c->column = fprintf(out, "\n%*s", NAME_COLUMNS, "") - 1;
    if (!c->grading->by_question) c->column += fprintf(out, " %d:", n) + n_questions;
    for (int k = 0; k < n_questions; k++) {
        const json_t *given = answer_to(s, n, k + 1);
        const char *text = json_string_value(given);
        zero_answer_line line = {.is_whole = !json_is_null(given)};
        zero_graded graded = {.grade = ZERO_GRADE_MISSING};
        zero_print(line.text, "%s", text ? text : "");
        if (given) graded = zero_grade_answer(json_array_get(questions, (size_t)k), &line);
        *answered += graded.grade != ZERO_GRADE_MISSING;
        *right += graded.grade == ZERO_GRADE_RIGHT;
        if (graded.why) count_common(c, n, k, graded.mistake);
        if (!c->grading->by_question) {
            fputc(marks[graded.grade], out);
            continue;
        }
        char place[32];
        zero_print(place, "%d.%d", n, k + 1);
        fprintf(out, "%-5s %-16.40s %s\n", place, ZERO_SHOWN(line.text),
                words[graded.grade]);
        if (graded.why) zero_say(graded.why, 6, out);
    }
    json_decref(lesson);
    return ZERO_OK;
}

/* Grades a student who has answered something. */
static zero_status grade_student(class_state *c, const student *s)
{
    const zero_grading *g = c->grading;
    int right = 0, asked = 0, answered = 0, all = 0;
    zero_course_numbers numbers = s->has_variant ? zero_course_variant(g->given, s->name)
                                  : g->student   ? zero_course_variant(g->given, g->student)
                                                 : zero_course_standard(g->given);
    if (json_object_size(s->answers) == 0) return ZERO_OK;
    if (!c->has_head && !g->by_question)
        fputs("= right, m a usual mistake, x wrong, ? not readable, - no answer\n\n",
              g->out);
    c->has_head = true;
    if (g->by_question)
        fprintf(g->out, "%s\n", s->name[0] ? ZERO_SHOWN(s->name) : "answers");
    else
        c->column = say_name(s->name[0] ? ZERO_SHOWN(s->name) : "(no name)", g->out);
    for (int n = 1; n <= (int)json_array_size(g->lessons); n++) {
        if (g->lesson > 0 && g->lesson != n) continue;
        int questions = questions_of(c, n), k = 1;
        all += questions;
        while (k <= questions && !answer_to(s, n, k)) k++;
        if (k > questions) continue;
        asked += questions;
        ZERO_TRY(grade_lesson(c, s, &numbers, n, &right, &answered));
    }
    fprintf(g->out, "%s%d of %d right", g->by_question ? "" : "  ", right, asked);
    if (answered < all) fprintf(g->out, ", %d of %d answered", answered, all);
    fputc('\n', g->out);
    c->students++;
    c->all_right += right == all;
    c->wrong += asked - right;
    return ZERO_OK;
}

/* ---- reading ---- */

/* In `cat *.txt` the name tells whose file it is. */
static zero_status refuse(const class_state *c, const student *s, const char *why)
{
    return zero_fail(ZERO_ERR_FORMAT, "%.200s, line %d%s%.200s: %s", c->grading->path,
                     c->line, s->name[0] ? ", answers of " : "", ZERO_SHOWN(s->name), why);
}

/* The words after a keyword; NULL for another line. */
static const char *after(const char *line, const char *keyword)
{
    size_t length = strlen(keyword);
    if (strncasecmp(line, keyword, length) != 0) return NULL;
    if (line[length] != ' ' && line[length] != '\t' && line[length] != ':') return NULL;
    return line + length + strspn(line + length, " \t:");
}

static zero_status begin_student(class_state *c, student *s, const char *name,
                                 bool has_variant)
{
    ZERO_TRY(grade_student(c, s));
    json_decref(s->answers);
    *s = (student){.has_variant = has_variant, .answers = json_object()};
    if (*name == '\0' || strlen(name) >= sizeof s->name)
        return refuse(c, s, "expected a name of at most 63 bytes");
    strncpy(s->name, name, sizeof s->name - 1);
    return ZERO_OK;
}

static zero_status read_lines(class_state *c, student *s, FILE *in)
{
    zero_answer_line line;
    while (zero_answer_read(in, &line)) {
        const char *text = line.text, *name;
        c->line++;
        if (line.is_whole && (text[0] == '\0' || text[0] == '#')) continue;
        if ((name = after(text, "NAME")))
            ZERO_TRY(begin_student(c, s, name, false));
        else if ((name = after(text, "STUDENT")))
            ZERO_TRY(begin_student(c, s, name, true));
        else {
            /* "1.2 = 4800" */
            static const char *const keywords[] = {"NAME", "STUDENT"};
            char *end, place[48];
            long lesson = strtol(line.text, &end, 10), question = 0;
            bool is_place = end != line.text && *end == '.';
            if (is_place) {
                const char *from = end + 1;
                question = strtol(from, &end, 10);
                is_place = end != from;
            }
            end += strspn(end, " \t");
            if (!is_place || (*end != '=' && *end != ':'))
                return refuse(
                    c, s,
                    "expected an answer such as 1.2 = 4800, NAME or STUDENT and a name");
            if (lesson < 1 || lesson > (long)json_array_size(c->grading->lessons) ||
                question < 1 || question > questions_of(c, (int)lesson))
                return refuse(c, s, "there is no such question; zero lesson lists lessons");
            end += 1 + strspn(end + 1, " \t");
            /* "4800STUDENT ben": a file that does not end with a newline, and the next one
             * of `cat *.txt`. */
            for (int k = 0; k < 2; k++)
                for (const char *at = end; (at = strstr(at, keywords[k])); at++)
                    if (after(at, keywords[k]))
                        return refuse(c, s,
                                      "two files meet in this line, since the first does "
                                      "not end with a newline; awk 1 *.txt adds it");
            zero_print(place, "%ld.%ld", lesson, question);
            json_object_set_new(s->answers, place,
                                line.is_whole ? json_stringn_nocheck(end, strlen(end))
                                              : json_null());
        }
    }
    ZERO_FAIL_IF(ferror(in), ZERO_ERR_IO, "%.200s: %s", c->grading->path, strerror(errno));
    ZERO_TRY(grade_student(c, s));
    ZERO_FORMAT_IF(c->students <= 0, "%.200s has no answers; they look like 1.2 = 4800",
                   c->grading->path);
    return ZERO_OK;
}

/* ---- the class ---- */

static int by_number(const void *a, const void *b)
{
    const common *x = a, *y = b;
    if (x->n != y->n) return y->n - x->n;
    if (x->lesson != y->lesson) return x->lesson - y->lesson;
    return x->question != y->question ? x->question - y->question : x->mistake - y->mistake;
}

/* The mistakes that were made most, in the words of the class's numbers. */
static zero_status say_common(class_state *c)
{
    const zero_grading *g = c->grading;
    zero_course_numbers numbers = zero_course_standard(g->given);
    if (g->by_question || c->n_common == 0) return ZERO_OK;
    zero_sort(c->list, c->n_common, by_number);
    fputs("\nthe usual mistakes, and how many made them\n", g->out);
    for (int k = 0; k < c->n_common && k < 20; k++) {
        const common *m = &c->list[k];
        json_t *lesson;
        ZERO_TRY(zero_course_fill(json_array_get(g->lessons, (size_t)m->lesson - 1),
                                  &numbers, g->planner, &lesson));
        const json_t *q = json_array_get(json_object_get(lesson, "questions"),
                                         (size_t)m->question),
                     *own = json_object_get(q, "mistakes"),
                     *shared = json_object_get(q, "common");
        size_t at = (size_t)m->mistake, n = json_array_size(own);
        fprintf(g->out, "%5d x  %d.%d\n", m->n, m->lesson, m->question + 1);
        zero_say(
            zero_said(at < n ? json_array_get(own, at) : json_array_get(shared, at - n),
                      "why"),
            9, g->out);
        json_decref(lesson);
    }
    return ZERO_OK;
}

zero_status zero_grade_file(const zero_grading *grading)
{
    class_state *c = calloc(1, sizeof *c);
    student s = {.answers = json_object()};
    bool is_stdin = zero_same_text(grading->path, "-");
    ZERO_FAIL_IF(!c, ZERO_ERR_NOMEM, "no memory for the grades");
    c->grading = grading;
    FILE *in = is_stdin ? stdin : fopen(grading->path, "rb");
    zero_status st =
        in ? read_lines(c, &s, in)
           : zero_fail(ZERO_ERR_IO, "%.200s: %s", grading->path, strerror(errno));
    json_decref(s.answers);
    if (in && !is_stdin) fclose(in);
    if (st == ZERO_OK) st = say_common(c);
    if (st == ZERO_OK && c->wrong > 0)
        st = zero_fail(ZERO_ERR_DIFFERENT,
                       "%" PRId64
                       " answers are wrong or missing; %d of %d students have all right",
                       c->wrong, c->all_right, c->students);
    free(c);
    return st;
}
