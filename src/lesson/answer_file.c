#include "lesson/answer_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/legible.h"
#include "lesson/course.h"
#include "lesson/say.h"

#define LESSONS   16 /* at most */
#define QUESTIONS 12 /* of a lesson, at most */

/* A student's answers; an empty text: none. */
typedef struct {
    char name[64];
    bool has_variant;
    int n_answers;
    zero_answer_line answers[LESSONS][QUESTIONS];
    bool is_given[LESSONS][QUESTIONS];
} student;

/* A mistake and how many made it. */
typedef struct {
    int lesson, question, n;
    const char *why; /* a template */
} common;

#define COMMON 256

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

/* ---- grading ---- */

static void count_common(class_state *c, int lesson, int question, const char *why)
{
    for (int k = 0; k < c->n_common; k++) {
        if (c->list[k].why != why || c->list[k].lesson != lesson) continue;
        c->list[k].n += c->list[k].question == question;
        if (c->list[k].question == question) return;
    }
    if (c->n_common < COMMON) c->list[c->n_common++] = (common){lesson, question, 1, why};
}

static bool is_counted(const class_state *c, const student *s, int lesson)
{
    if (c->grading->lesson > 0 && c->grading->lesson != lesson) return false;
    for (int k = 0; k < QUESTIONS; k++)
        if (s->is_given[lesson - 1][k]) return true;
    return false;
}

static const char *const words[ZERO_GRADES] = {"no answer", "right", "a usual mistake",
                                               "wrong", "not readable"};
static const char marks[ZERO_GRADES] = {'-', '=', 'm', 'x', '?'};

static void say_question(const class_state *c, const zero_speaker *s, int lesson, int k,
                         const zero_answer_line *line, zero_graded graded)
{
    FILE *out = c->grading->out;
    char place[16];
    snprintf(place, sizeof place, "%d.%d", lesson, k + 1);
    fprintf(out, "%-5s %-16.40s %s\n", place, ZERO_SHOWN(line->text), words[graded.grade]);
    if (graded.why) zero_say(s, 6, graded.why);
}

#define NAME_COLUMNS 20

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

/* Marks of a lesson that would pass the right margin begin a line of their own. */
static void begin_marks(class_state *c, int number, int n)
{
    FILE *out = c->grading->out;
    if (c->column + 4 + n > 60) c->column = fprintf(out, "\n%*s", NAME_COLUMNS, "") - 1;
    c->column += fprintf(out, " %d:", number) + n;
}

/* The questions of one lesson; returns how many are right. */
static zero_status grade_lesson(class_state *c, const student *s,
                                const zero_course_numbers *numbers, int n, int *right)
{
    const zero_lesson *lesson = zero_course_lesson(n);
    zero_course_world world;
    ZERO_TRY(zero_course_open(&world, lesson, numbers, c->grading->planner));
    if (!c->grading->by_question) begin_marks(c, n, lesson->n);
    for (int k = 0; k < lesson->n; k++) {
        const zero_question *q = &lesson->questions[k];
        const zero_answer_line *line = &s->answers[n - 1][k];
        zero_graded graded = {ZERO_GRADE_MISSING, NULL};
        if (s->is_given[n - 1][k]) graded = zero_grade_answer(q, &world, line);
        zero_speaker speaker = {lesson, q, &world, c->grading->out};
        if (c->grading->by_question)
            say_question(c, &speaker, n, k, line, graded);
        else
            fputc(marks[graded.grade], c->grading->out);
        if (graded.why) count_common(c, n, k, graded.why);
        *right += graded.grade == ZERO_GRADE_RIGHT;
    }
    zero_course_close(&world);
    return ZERO_OK;
}

static zero_course_numbers numbers_of(const class_state *c, const student *s)
{
    const zero_grading *g = c->grading;
    if (s->has_variant) return zero_course_variant(g->given, s->name);
    if (g->student) return zero_course_variant(g->given, g->student);
    return zero_course_standard(g->given);
}

static void say_head(class_state *c)
{
    if (c->has_head || c->grading->by_question) return;
    fputs("= right, m a usual mistake, x wrong, ? not readable, - no answer\n\n",
          c->grading->out);
    c->has_head = true;
}

/* Grades a student who has answered something. */
static zero_status grade_student(class_state *c, const student *s)
{
    int right = 0, asked = 0;
    zero_course_numbers numbers = numbers_of(c, s);
    FILE *out = c->grading->out;
    if (s->n_answers == 0) return ZERO_OK;
    say_head(c);
    if (c->grading->by_question)
        fprintf(out, "%s\n", s->name[0] ? ZERO_SHOWN(s->name) : "answers");
    else
        c->column = say_name(s->name[0] ? ZERO_SHOWN(s->name) : "(no name)", out);
    for (int n = 1; n <= zero_course_lessons(); n++) {
        if (!is_counted(c, s, n)) continue;
        asked += zero_course_lesson(n)->n;
        ZERO_TRY(grade_lesson(c, s, &numbers, n, &right));
    }
    fprintf(out, "%s%d of %d right\n", c->grading->by_question ? "" : "  ", right, asked);
    c->students++;
    c->all_right += right == asked;
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
    *s = (student){.has_variant = has_variant};
    if (*name == '\0' || strlen(name) >= sizeof s->name)
        return refuse(c, s, "expected a name of at most 63 bytes");
    strncpy(s->name, name, sizeof s->name - 1);
    return ZERO_OK;
}

/* "4800STUDENT ben": a file that does not end with a newline, and the next one of `cat *.txt`. */
static bool is_two_files(const char *text)
{
    static const char *const keywords[] = {"NAME", "STUDENT"};
    for (int k = 0; k < 2; k++)
        for (const char *at = text; (at = strstr(at, keywords[k])); at++)
            if (after(at, keywords[k])) return true;
    return false;
}

/* "1.2 = 4800" */
static zero_status take_answer(class_state *c, student *s, const zero_answer_line *line)
{
    char *end;
    long lesson = strtol(line->text, &end, 10), question = 0;
    bool is_place = end != line->text && *end == '.';
    if (is_place) {
        const char *from = end + 1;
        question = strtol(from, &end, 10);
        is_place = end != from;
    }
    end += strspn(end, " \t");
    if (!is_place || (*end != '=' && *end != ':'))
        return refuse(c, s,
                      "expected an answer such as 1.2 = 4800, NAME or STUDENT and a name");
    const zero_lesson *found =
        lesson > 0 && lesson <= LESSONS ? zero_course_lesson((int)lesson) : NULL;
    if (!found || question < 1 || question > found->n)
        return refuse(c, s, "there is no such question; zero lesson lists lessons");
    assert(zero_course_lessons() <= LESSONS && found->n <= QUESTIONS);
    zero_answer_line *to = &s->answers[lesson - 1][question - 1];
    end += 1 + strspn(end + 1, " \t");
    if (is_two_files(end))
        return refuse(c, s,
                      "two files meet in this line, since the first does not end with a "
                      "newline; awk 1 *.txt adds it");
    *to = (zero_answer_line){.is_whole = line->is_whole};
    strncpy(to->text, end, sizeof to->text - 1);
    s->is_given[lesson - 1][question - 1] = true;
    s->n_answers++;
    return ZERO_OK;
}

static zero_status take_line(class_state *c, student *s, const zero_answer_line *line)
{
    const char *text = line->text, *name;
    if (line->is_whole && (text[0] == '\0' || text[0] == '#')) return ZERO_OK;
    if ((name = after(text, "NAME"))) return begin_student(c, s, name, false);
    if ((name = after(text, "STUDENT"))) return begin_student(c, s, name, true);
    return take_answer(c, s, line);
}

static zero_status read_lines(class_state *c, student *s, FILE *in)
{
    zero_answer_line line;
    while (zero_answer_read(in, &line)) {
        c->line++;
        ZERO_TRY(take_line(c, s, &line));
    }
    if (ferror(in))
        return zero_fail(ZERO_ERR_IO, "%.200s: %s", c->grading->path, strerror(errno));
    ZERO_TRY(grade_student(c, s));
    if (c->students > 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_FORMAT, "%.200s has no answers; they look like 1.2 = 4800",
                     c->grading->path);
}

/* ---- the class ---- */

static int by_number(const void *a, const void *b)
{
    const common *x = a, *y = b;
    if (x->n != y->n) return y->n - x->n;
    if (x->lesson != y->lesson) return x->lesson - y->lesson;
    return x->question - y->question;
}

/* The mistakes that were made most, in the words of the class's numbers. */
static zero_status say_common(class_state *c)
{
    zero_course_numbers numbers = zero_course_standard(c->grading->given);
    if (c->grading->by_question || c->n_common == 0) return ZERO_OK;
    qsort(c->list, (size_t)c->n_common, sizeof c->list[0], by_number);
    fputs("\nthe usual mistakes, and how many made them\n", c->grading->out);
    for (int k = 0; k < c->n_common && k < 20; k++) {
        const common *m = &c->list[k];
        const zero_lesson *lesson = zero_course_lesson(m->lesson);
        zero_course_world world;
        ZERO_TRY(zero_course_open(&world, lesson, &numbers, c->grading->planner));
        zero_speaker s = {lesson, &lesson->questions[m->question], &world, c->grading->out};
        fprintf(c->grading->out, "%5d x  %d.%d\n", m->n, m->lesson, m->question + 1);
        zero_say(&s, 9, m->why);
        zero_course_close(&world);
    }
    return ZERO_OK;
}

static zero_status grade_class(class_state *c, FILE *in)
{
    student *s = calloc(1, sizeof *s);
    if (!s) return zero_fail(ZERO_ERR_NOMEM, "no memory for a student's answers");
    zero_status st = read_lines(c, s, in);
    free(s);
    if (st == ZERO_OK) st = say_common(c);
    if (st != ZERO_OK || c->wrong == 0) return st;
    return zero_fail(ZERO_ERR_DIFFERENT,
                     "%" PRId64
                     " answers are wrong or missing; %d of %d students have all right",
                     c->wrong, c->all_right, c->students);
}

zero_status zero_grade_file(const zero_grading *grading)
{
    class_state *c = calloc(1, sizeof *c);
    bool is_stdin = strcmp(grading->path, "-") == 0;
    if (!c) return zero_fail(ZERO_ERR_NOMEM, "no memory for the grades");
    c->grading = grading;
    FILE *in = is_stdin ? stdin : fopen(grading->path, "rb");
    zero_status st =
        in ? grade_class(c, in)
           : zero_fail(ZERO_ERR_IO, "%.200s: %s", grading->path, strerror(errno));
    if (in && !is_stdin) fclose(in);
    free(c);
    return st;
}
