/* zero lesson: a course that grades itself. It needs no MPI. */
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include "base/legible.h"
#include "cli/lesson_plans.h"
#include "cli/options.h"
#include "course/answer_file.h"
#include "course/hold.h"
#include "io/file.h"

typedef struct {
    zero_course_numbers given; /* 0: the course's, or drawn */
    const char *student;
    bool answers, no_questions;
    int64_t from, tries; /* 0: 1; 2 at a terminal, else 1 */
    const char *save, *check, *grade;
} lesson_options;

/* ---- values ---- */

#define NAME_BYTES 64 /* of a student, in a file of answers */

/* Blanks around a name do not come back from a file, and would draw other numbers. */
static zero_status check(void *options, ZERO_UNUSED const zero_options *given)
{
    const char *name = ((const lesson_options *)options)->student;
    size_t n = name ? strlen(name) : 0;
    if (n == 0 ||
        (n < NAME_BYTES && !strchr(" \t", name[0]) && !strchr(" \t", name[n - 1])))
        return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--student: expected a name of at most %d bytes, without blanks around it",
        NAME_BYTES - 1);
}

/* ---- lessons ---- */

/* Answers to other numbers than those before them would be graded with those. */
static zero_status check_owner(const lesson_options *o, FILE *file)
{
    zero_answer_line line;
    bool is_drawn = false;
    char owner[sizeof line.text] = "";
    rewind(file);
    while (zero_answer_read(file, &line)) {
        bool draws = strncasecmp(line.text, "STUDENT ", 8) == 0;
        if (!draws && strncasecmp(line.text, "NAME ", 5) != 0) continue;
        is_drawn = draws;
        zero_print(owner, "%s", line.text + (draws ? 8 : 5));
    }
    if (owner[0] == '\0' || (!is_drawn && !o->student)) return ZERO_OK;
    if (is_drawn && o->student && zero_same_text(owner, o->student)) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--save %.200s: the file has answers to the numbers of %s%.200s; give %s", o->save,
        is_drawn ? "--student " : "the class, by ", ZERO_SHOWN(owner),
        is_drawn ? "the same name, or another file" : "another file");
}

static zero_status open_save(const lesson_options *o, FILE **save)
{
    zero_lock lock;
    *save = NULL;
    if (!o->save) return ZERO_OK;
    int fd = zero_file_open_to_append(o->save, O_RDWR);
    FILE *file = fd >= 0 ? fdopen(fd, "a+b") : NULL;
    ZERO_INVALID_IF(!file, "--save %.200s: %s", o->save,
                    errno == ELOOP ? ZERO_FILE_IS_LINK : strerror(errno));
    /* Line by line, so that a lesson that is interrupted has saved what was answered. */
    setvbuf(file, NULL, _IOLBF, BUFSIZ);
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    zero_status st = zero_lock_take(fd, o->save, &lock);
    if (st == ZERO_OK && lock == ZERO_LOCK_BUSY)
        st = zero_fail(ZERO_ERR_ENV, "--save %.200s: another lesson writes to it", o->save);
    if (st == ZERO_OK && size > 0) st = check_owner(o, file);
    if (st != ZERO_OK) {
        fclose(file);
        return st;
    }
    fseek(file, 0, SEEK_END); /* between reading and writing */
    /* A new file begins with the student, or its own name, "class/anna.txt": anna. In `cat
     * *.txt` nobody's answers follow another's name. */
    const char *name = o->student ? o->student : o->save;
    if (!o->student && strrchr(name, '/')) name = strrchr(name, '/') + 1;
    const char *dot = o->student ? NULL : strrchr(name, '.');
    char shown[NAME_BYTES];
    zero_print(shown, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name),
               name);
    if (size == 0)
        fprintf(file, "%s %s\n", o->student ? "STUDENT" : "NAME", ZERO_SHOWN(shown));
    *save = file;
    return ZERO_OK;
}

/* One lesson, or all of them. */
static zero_status hold_all(const json_t *lessons, int number, int from,
                            const zero_course_numbers *numbers,
                            const zero_course_options *course, zero_course_tally *tally)
{
    int n = (int)json_array_size(lessons);
    for (int k = number > 0 ? number : 1; k <= (number > 0 ? number : n); k++) {
        const json_t *lesson = json_array_get(lessons, (size_t)k - 1);
        int questions = zero_course_questions(lesson);
        json_auto_t *held = NULL;
        ZERO_INVALID_IF(from > questions, "--from %d: lesson %d has %d questions", from, k,
                        questions);
        ZERO_TRY(zero_course_fill(lesson, numbers, &zero_lesson_planner, &held));
        ZERO_TRY(zero_course_hold(k, held, course, tally));
    }
    return ZERO_OK;
}

static zero_status hold(const lesson_options *o, const json_t *lessons, int number,
                        const zero_course_numbers *numbers)
{
    bool at_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    zero_course_options course = {.mode = o->answers        ? ZERO_COURSE_TELL
                                          : o->no_questions ? ZERO_COURSE_NARRATE
                                                            : ZERO_COURSE_ASK,
                                  .in = stdin,
                                  .out = stdout,
                                  .from = o->from > 0 ? (int)o->from : 1,
                                  .tries = o->tries > 0  ? (int)o->tries
                                           : at_terminal ? 2
                                                         : 1,
                                  .waits = at_terminal};
    zero_course_tally tally;
    ZERO_TRY(open_save(o, &course.save));
    if (o->student)
        printf(
            "# the numbers of %s: --ranks %d --layers %d --hidden %d --microbatches %d\n",
            ZERO_SHOWN(o->student), (int)numbers->ranks, (int)numbers->layers,
            (int)numbers->hidden, (int)numbers->microbatches);
    zero_status st = hold_all(lessons, number, course.from, numbers, &course, &tally);
    bool is_saved = !course.save || !ferror(course.save);
    is_saved = (!course.save || fclose(course.save) == 0) && is_saved;
    ZERO_TRY(st);
    ZERO_FAIL_IF(!is_saved, ZERO_ERR_ENV, "--save %.200s: %s", o->save, strerror(errno));
    if (course.mode != ZERO_COURSE_ASK) return ZERO_OK;
    /* A lesson is over, or was left: how to go on. */
    int n_lessons = (int)json_array_size(lessons);
    printf("%d of %d right", tally.right, tally.asked);
    if (tally.second > 0) printf(", %d of them at the second try or later", tally.second);
    printf(".\n");
    if (tally.open > 0)
        printf("To go on: zero lesson %d --from %d%s%s, with the other options as now\n",
               number, tally.open, o->student ? " --student " : "",
               o->student ? ZERO_SHOWN(o->student) : "");
    else if (number < n_lessons)
        printf("The next one: zero lesson %d\n", number + 1);
    ZERO_FAIL_IF(tally.right != tally.asked, ZERO_ERR_DIFFERENT, "%d of %d answers: %s",
                 tally.asked - tally.right, tally.asked,
                 tally.open > 0 ? "wrong or missing" : "wrong");
    return ZERO_OK;
}

static zero_status lesson(const lesson_options *o, const json_t *lessons, int number)
{
    const zero_course_numbers *given = &o->given;
    if (o->check || o->grade)
        return zero_grade_file(&(zero_grading){.path = o->check ? o->check : o->grade,
                                               .lessons = lessons,
                                               .lesson = number,
                                               .by_question = o->check != NULL,
                                               .given = given,
                                               .student = o->student,
                                               .planner = &zero_lesson_planner,
                                               .out = stdout});
    zero_course_numbers numbers =
        o->student ? zero_course_variant(given, o->student) : zero_course_standard(given);
    if (number > 0 || o->answers || o->no_questions)
        return hold(o, lessons, number, &numbers);
    puts("zero lesson N holds a lesson: it asks, grades and explains. No MPI is needed.\n");
    zero_course_list(lessons, stdout);
    puts("\nAnswers are numbers, 4800, 4.7 KiB, 1.375x, 12 ms, or a word that is offered.\n"
         "? tells the answer, q ends the lesson. A calculator helps.");
    return ZERO_OK;
}

static zero_status run(void *options, const zero_options *given)
{
    json_auto_t *lessons = NULL;
    ZERO_TRY(zero_course_read(&lessons));
    const int n_lessons = (int)json_array_size(lessons);
    const char *word = given->n_operands > 0 ? given->operands[0] : NULL;
    char *end = NULL;
    long number = word ? strtol(word, &end, 10) : 0; /* 0: none was given */
    ZERO_INVALID_IF(word && (end == word || *end || number < 1 || number > n_lessons),
                    "lesson %.40s: there are lessons 1 to %d; zero lesson lists them", word,
                    n_lessons);
    return lesson(options, lessons, (int)number);
}

const zero_command zero_command_lesson = {
#include "cli/options/lesson.command"
    .check = check,
    .run = run,
};
