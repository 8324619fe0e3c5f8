#include "lesson/course.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/legible.h"
#include "lesson/say.h"

/* A lesson in progress. */
typedef struct {
    const zero_course_options *options;
    const zero_lesson *lesson;
    const zero_course_world *world;
    int number;
    zero_course_tally tally;
} hour;

static zero_speaker speaker_of(const hour *h, int k)
{
    return (zero_speaker){h->lesson, &h->lesson->questions[k], h->world, h->options->out};
}

/* ---- asking ---- */

static bool is_command(const zero_answer_line *line, const char *a, const char *b)
{
    return strcmp(line->text, a) == 0 || strcmp(line->text, b) == 0;
}

/* Tells on which side a wrong number lies. */
static const char *compare(const zero_speaker *s, const zero_answer_line *line)
{
    const zero_question *q = s->question;
    zero_answer answer;
    bool is_number = q->kind != ZERO_ANSWER_WORD &&
                     zero_answer_parse(q->kind, q->unit, line->text, &answer);
    if (!is_number) return "";
    return answer.value > q->answer(s->world) ? ": too large" : ": too small";
}

static void say_reply(const zero_speaker *s, zero_graded graded,
                      const zero_answer_line *line)
{
    FILE *out = s->out;
    switch (graded.grade) {
    case ZERO_GRADE_RIGHT: break;
    case ZERO_GRADE_MISTAKE:
        fputs("  Not this.\n", out);
        zero_say(s, 2, graded.why);
        break;
    case ZERO_GRADE_WRONG: fprintf(out, "  Not this%s.\n", compare(s, line)); break;
    case ZERO_GRADE_MISSING: fputs("  No answer.\n", out); break;
    default:
        if (s->question->kind == ZERO_ANSWER_WORD)
            fprintf(out, "  '%.40s' is not one of these words: %s.\n",
                    ZERO_SHOWN(line->text), s->question->unit);
        else
            fprintf(out, "  '%.40s' is not a number, such as 4800 or 4.7 KiB.\n",
                    ZERO_SHOWN(line->text));
    }
}

static void prompt(const hour *h, int k)
{
    const zero_question *q = &h->lesson->questions[k];
    fprintf(h->options->out, "%d.%d %s%s%s= ", h->number, k + 1, q->unit[0] ? "(" : "",
            q->unit, q->unit[0] ? ") " : "");
    fflush(h->options->out);
}

/* At a terminal a key that was hit by mistake costs no try. */
static bool is_slip(const hour *h, zero_grade grade)
{
    return h->options->waits &&
           (grade == ZERO_GRADE_MISSING || grade == ZERO_GRADE_UNREADABLE);
}

/* After n - 1 wrong ones of n words the answer is plain. */
static int tries_of(const hour *h, const zero_question *q)
{
    int choices = 0;
    if (q->kind != ZERO_ANSWER_WORD) return h->options->tries;
    for (const char *c = q->unit; *c; c++) choices += *c == '|';
    return h->options->tries < choices ? h->options->tries : choices;
}

static void save(const hour *h, int k, const zero_answer_line *line)
{
    if (!h->options->save || line->text[0] == '\0') return;
    fprintf(h->options->save, "%d.%d = %s\n", h->number, k + 1, ZERO_SHOWN(line->text));
}

/* Asks question k up to `tries` times. False if no more can be asked. */
static bool ask(hour *h, int k)
{
    zero_speaker s = speaker_of(h, k);
    const char *words = "The answer is";
    zero_answer_line line = {.is_whole = true}, last = line;
    int tries = tries_of(h, s.question);
    for (int try = 0; try < tries;) {
        prompt(h, k);
        if (!zero_answer_read(h->options->in, &line)) return false;
        if (!h->options->waits) fprintf(s.out, "%.60s\n", ZERO_SHOWN(line.text));
        if (is_command(&line, "quit", "q")) return false;
        if (is_command(&line, "?", "help")) break;
        zero_graded graded = zero_grade_answer(s.question, s.world, &line);
        say_reply(&s, graded, &line);
        last = line;
        if (graded.grade == ZERO_GRADE_RIGHT) {
            h->tally.right++;
            h->tally.second += try > 0;
            words = "Right:";
            break;
        }
        try += !is_slip(h, graded.grade);
    }
    save(h, k, &last);
    zero_say_answer(&s, words);
    return true;
}

/* ---- the other modes ---- */

static void tell_mistakes(const zero_speaker *s)
{
    char before[32] = "";
    const zero_question *q = s->question;
    double right = q->answer(s->world);
    for (int k = 0; k < ZERO_MISTAKES && q->mistakes[k].value; k++) {
        zero_answer wrong = {.value = q->mistakes[k].value(s->world)};
        char value[32];
        if (isnan(wrong.value) || zero_grade_is_right(q, right, &wrong)) continue;
        zero_course_answer(q, wrong.value, value);
        bool is_new = strcmp(value, before) != 0;
        if (is_new) fprintf(s->out, "  If the answer is %s:\n", value);
        memcpy(before, value, sizeof before);
        zero_say(s, 6, q->mistakes[k].why);
    }
    if (!q->against) return;
    fputs("  It corrects:\n", s->out);
    zero_say(s, 6, q->against);
}

static void tell(const hour *h, int k)
{
    zero_speaker s = speaker_of(h, k);
    char value[32];
    zero_course_answer(s.question, s.question->answer(s.world), value);
    fprintf(s.out, "%d.%d = %s\n", h->number, k + 1, value);
    zero_say_answer(&s, "The answer is");
    tell_mistakes(&s);
}

/* ---- the lesson ---- */

static void head(const hour *h, int k)
{
    FILE *out = h->options->out;
    int column = fprintf(out, "---- lesson %d: %s ", h->number, h->lesson->title);
    char place[32];
    int length = snprintf(place, sizeof place, " %d of %d ----", k + 1, h->lesson->n);
    for (; column + length < ZERO_SAY_COLUMNS; column++) fputc('-', out);
    fprintf(out, "%s\n", place);
}

static void narrate(const zero_speaker *s)
{
    const zero_question *q = s->question;
    zero_say_screen(s);
    zero_say_answer(s, q->kind == ZERO_ANSWER_WORD ? "So:" : "It is");
}

static bool wait(const hour *h)
{
    zero_answer_line line;
    if (!h->options->waits) return true;
    fputs("\n[Enter goes on, q ends]", h->options->out);
    fflush(h->options->out);
    return zero_answer_read(h->options->in, &line) && !is_command(&line, "quit", "q");
}

/* False if the lesson ends here. */
static bool hold_question(hour *h, int k)
{
    zero_speaker s = speaker_of(h, k);
    head(h, k);
    if (h->options->mode == ZERO_COURSE_NARRATE) {
        narrate(&s);
        fputc('\n', s.out);
        return true;
    }
    zero_say_screen(&s);
    if (h->options->mode == ZERO_COURSE_TELL) {
        tell(h, k);
        fputc('\n', s.out);
        return true;
    }
    if (!ask(h, k)) {
        h->tally.ended = true;
        fprintf(s.out,
                "\nThe answers end here: question %d.%d and those after it are open.\n",
                h->number, k + 1);
        return false;
    }
    bool goes_on = k + 1 == h->lesson->n || wait(h);
    fputc('\n', s.out);
    if (!goes_on) h->tally.ended = true;
    return goes_on;
}

zero_status zero_course_hold(int n, const zero_course_numbers *numbers,
                             const zero_course_planner *planner,
                             const zero_course_options *options, zero_course_tally *tally)
{
    zero_course_world world;
    const zero_lesson *lesson = zero_course_lesson(n);
    ZERO_TRY(zero_course_open(&world, lesson, numbers, planner));
    hour h = {options, lesson, &world, n, {.asked = lesson->n}};
    for (int k = 0; k < lesson->n && hold_question(&h, k); k++) {
    }
    if (options->mode == ZERO_COURSE_NARRATE && lesson->tells_step) {
        fputs("The whole step, with numbers of all ranks:\n", options->out);
        zero_say_step(&(zero_speaker){lesson, NULL, &world, options->out});
    }
    zero_course_close(&world);
    *tally = h.tally;
    return ZERO_OK;
}
