/* Answers as people write them, grades, and all questions of all lessons in many
 * variants. */

#define TEST_HAS_MAIN
#include "support/table.h"

#include "base/fail.h"
#include "cli/lesson_plans.h"
#include "course/hold.h"

/* ---- parsing ---- */

TEST(numbers_are_read_as_people_write_them)
{
    static const char *const kinds[] = {[ZERO_ANSWER_WHOLE] = "whole",
                                        [ZERO_ANSWER_REAL] = "real",
                                        [ZERO_ANSWER_FINE] = "fine",
                                        [ZERO_ANSWER_SECONDS] = "seconds"};
    for (test_table t = table_open("course/answers.txt"); table_next(&t);) {
        zero_answer a = {.value = NAN};
        double value = strtod(t.field[2], NULL);
        int kind = 0;
        while (!kinds[kind] || strcmp(kinds[kind], t.field[0]) != 0) kind++;
        if (!zero_answer_parse((zero_answer_kind)kind, "bytes", t.field[1], &a))
            fail_msg("'%s' was not read", t.field[1]);
        if (fabs(a.value - value) > 1e-9 * fabs(value))
            fail_msg("'%s' is %g", t.field[1], a.value);
        assert_int_equal(a.is_rounded, strcmp(t.field[3], "rounded") == 0);
    }
}

TEST(numbers_are_read_with_the_unit_of_their_question)
{
    static const struct {
        zero_answer_kind kind;
        const char *unit, *text;
        double value;
    } rows[] = {
        {ZERO_ANSWER_REAL, "percent", "66.6 %", 66.6},
        {ZERO_ANSWER_REAL, "percent", "66.6 percent", 66.6},
        {ZERO_ANSWER_REAL, "percent", "66,6 per cent", 66.6},
        {ZERO_ANSWER_REAL, "times", "256 %", 2.56},
        {ZERO_ANSWER_WHOLE, "instructions", "3 instructions", 3.0},
        {ZERO_ANSWER_WHOLE, "digests", "1 digest", 1.0},
        {ZERO_ANSWER_WHOLE, "all-reduces", "4 all-reduces", 4.0},
        {ZERO_ANSWER_SECONDS, "s", "0.9 seconds", 0.9},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        zero_answer a;
        assert_true(zero_answer_parse(rows[i].kind, rows[i].unit, rows[i].text, &a));
        assert_true(fabs(a.value - rows[i].value) < 1e-9);
    }
    zero_answer a;
    assert_false(zero_answer_parse(ZERO_ANSWER_WHOLE, "bytes", "3 instructions", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WHOLE, "bytes", "3 seconds", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WHOLE, "digits", "digits", &a));
}

TEST(everything_else_is_refused)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "abc",
                                        "inf",
                                        "-inf",
                                        "nan",
                                        "NaN",
                                        "0x10",
                                        "1e999",
                                        "1/0",
                                        "1/",
                                        "/2",
                                        "4,8,0",
                                        "4800 apples",
                                        "--5",
                                        "1e",
                                        "KiB",
                                        "4800;",
                                        "$(id)",
                                        "%s%n",
                                        "\x1b[2J",
                                        "1.2.3",
                                        "9999999999999999999999999999999999e400"};
    for (size_t i = 0; i < COUNT(texts); i++)
        for (int kind = ZERO_ANSWER_WHOLE; kind <= ZERO_ANSWER_WORD; kind++) {
            zero_answer a = {.value = 7.0};
            if (zero_answer_parse((zero_answer_kind)kind, "yes|no", texts[i], &a))
                fail_msg("'%s' was read as %g (kind %d)", texts[i], a.value, kind);
            assert_true(a.value == 7.0);
        }
}

TEST(words_may_be_shortened_but_not_guessed)
{
    zero_answer a;
    assert_true(zero_answer_parse(ZERO_ANSWER_WORD, "REDUCE|BACKWARD", "backward", &a));
    assert_true(a.value == 1.0);
    assert_true(zero_answer_parse(ZERO_ANSWER_WORD, "yes|no", "Y", &a) && a.value == 0.0);
    assert_true(
        zero_answer_parse(ZERO_ANSWER_WORD, "nothing|tenth|third|half", "Third", &a));
    assert_true(a.value == 2.0);
    assert_true(
        zero_answer_parse(ZERO_ANSWER_WORD, "nothing|tenth|third|half", "a third", &a));
    assert_true(a.value == 2.0);
    assert_false(zero_answer_parse(ZERO_ANSWER_WORD, "nothing|tenth|third|half", "a ", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WORD, "nothing|tenth|third|half", "t", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WORD, "yes|no", "maybe", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WORD, "yes|no", "0", &a));
}

TEST(lines_may_be_long_or_have_nul_bytes)
{
    static char text[5000];
    memset(text, '7', sizeof text);
    memcpy(text + 3000,
           "\n48\0"
           "00\n  5 \r\n",
           12);
    FILE *in = fmemopen(text, 3012, "r");
    zero_answer_line line;
    assert_non_null(in);
    assert_true(zero_answer_read(in, &line) && !line.is_whole);
    assert_true(strlen(line.text) < ZERO_ANSWER_BYTES);
    assert_true(zero_answer_read(in, &line) && !line.is_whole);
    assert_true(zero_answer_read(in, &line) && line.is_whole);
    assert_string_equal(line.text, "5");
    assert_false(zero_answer_read(in, &line));
    fclose(in);
}

TEST(a_mark_of_utf8_is_no_part_of_a_line)
{
    static char text[] = "\xEF\xBB\xBF NAME a\r\n\xEF\xBB\xBF\n\xEF\xBB";
    FILE *in = fmemopen(text, sizeof text - 1, "r");
    zero_answer_line line;
    assert_non_null(in);
    assert_true(zero_answer_read(in, &line) && line.is_whole);
    assert_string_equal(line.text, "NAME a");
    assert_true(zero_answer_read(in, &line) && line.is_whole);
    assert_string_equal(line.text, "");
    assert_true(zero_answer_read(in, &line));
    assert_string_equal(line.text, "\xEF\xBB");
    fclose(in);
}

/* ---- all questions ---- */

static json_t *lessons; /* owned by main() */

static json_t *fill(int lesson, const zero_course_numbers *numbers)
{
    json_t *held = NULL;
    assert_ok(zero_course_fill(json_array_get(lessons, (size_t)lesson), numbers,
                               &zero_lesson_planner, &held));
    return held;
}

static zero_grade grade(const json_t *q, const char *text)
{
    zero_answer_line line = {.is_whole = true};
    snprintf(line.text, sizeof line.text, "%s", text);
    return zero_grade_answer(q, &line).grade;
}

static void assert_fits_a_terminal(const json_t *q)
{
    char *text = NULL;
    size_t size = 0;
    int lines = 2; /* the head, and the prompt */
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    zero_say_screen(q, out);
    fclose(out);
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, lines++)
        if (end - line > 80) fail_msg("more than 80 columns: %s", line);
    if (lines > 22) fail_msg("%d lines: %s", lines, text);
    free(text);
}

/* The grade of question k of lesson 1, in the course's own numbers; `why` must be in the
 * hint. */
static zero_grade grade_text(int k, const char *text, const char *why)
{
    zero_course_numbers given = {.ranks = 0}, n = zero_course_standard(&given);
    zero_answer_line line = {.is_whole = true};
    json_t *held = fill(0, &n);
    snprintf(line.text, sizeof line.text, "%s", text);
    zero_graded g = zero_grade_answer(
        json_array_get(json_object_get(held, "questions"), (size_t)k), &line);
    if (why && (!g.why || !strstr(g.why, why))) fail_msg("%s: %s", text, g.why);
    json_decref(held);
    return g.grade;
}

/* Whole numbers are exact, others right to one percent: 2400 bytes are 2.34 KiB, 3200 are 3.125, each
 * with as many digits as it is given, but two. */
TEST(answers_are_graded_and_usual_mistakes_named)
{
    static const char *const grades[] = {[ZERO_GRADE_RIGHT] = "right",
                                         [ZERO_GRADE_WRONG] = "wrong",
                                         [ZERO_GRADE_MISTAKE] = "mistake",
                                         [ZERO_GRADE_MISSING] = "missing",
                                         [ZERO_GRADE_UNREADABLE] = "unreadable"};
    for (test_table t = table_open("course/grades.txt"); table_next(&t);) {
        const char *why = *t.field[3] ? t.field[3] : NULL;
        zero_grade g = grade_text(atoi(t.field[0]), t.field[1], why);
        if (strcmp(grades[g], t.field[2]) != 0)
            fail_msg("%s: %s, not %s", t.field[1], grades[g], t.field[2]);
    }
}

/* Returns how many mistakes can be named. */
static int check_mistakes(const json_t *q)
{
    int n = 0;
    json_t *mistake;
    size_t k;
    json_array_foreach(json_object_get(q, "mistakes"), k, mistake)
    {
        char text[ZERO_ANSWER_BYTES];
        const json_t *value = json_object_get(mistake, "value");
        zero_answer wrong = {.value = json_number_value(value)};
        if (!value) continue;
        bool is_right = zero_grade_is(q, zero_question_answer(q), &wrong);
        zero_course_answer(q, wrong.value, text);
        if (zero_question_kind(q) != ZERO_ANSWER_WORD)
            snprintf(text, sizeof text, "%.17g", wrong.value);
        if (grade(q, text) != (is_right ? ZERO_GRADE_RIGHT : ZERO_GRADE_MISTAKE))
            fail_msg("%s: %s is graded %d", zero_said(q, "ask"), text, grade(q, text));
        n += !is_right;
    }
    return n;
}

/* A lesson accepts the text that it prints as the answer, with its unit. */
static void assert_takes_its_own(const json_t *q)
{
    char value[ZERO_ANSWER_BYTES], text[ZERO_ANSWER_BYTES];
    const char *unit = zero_said(q, "unit");
    zero_course_answer(q, zero_question_answer(q), value);
    bool has_unit = zero_question_kind(q) != ZERO_ANSWER_WORD && unit[0];
    snprintf(text, sizeof text, "%.60s%s%.60s", value, has_unit ? " " : "",
             has_unit ? unit : "");
    if (grade(q, text) != ZERO_GRADE_RIGHT)
        fail_msg("'%s' is not taken: %s", text, zero_said(q, "ask"));
}

/* Filling a lesson evaluates every expression and fills every text. What a question shows
 * is there. */
static void check_lessons(const zero_course_numbers *numbers, bool needs_mistakes)
{
    for (int n = 0; n < (int)json_array_size(lessons); n++) {
        json_t *held = fill(n, numbers), *q;
        size_t k;
        json_array_foreach(json_object_get(held, "questions"), k, q)
        {
            const json_t *shows = json_object_get(q, "shows");
            if (!json_object_get(q, "answer"))
                fail_msg("%d.%zu has no answer", n + 1, k + 1);
            assert_takes_its_own(q);
            assert_fits_a_terminal(q);
            if (check_mistakes(q) == 0 && needs_mistakes)
                fail_msg("%d.%zu has no mistake that can be named", n + 1, k + 1);
            if (shows && !zero_plan_line(shows, NULL))
                fail_msg("%d.%zu: the plan has no line %s", n + 1, k + 1,
                         zero_said(shows, "line"));
            if (!shows && !json_object_get(q, "command") && n != 3)
                fail_msg("%d.%zu: nothing shows the answer", n + 1, k + 1);
        }
        json_decref(held);
    }
}

static const char *const types[] = {"fp32", "bf16", "fp16"};

TEST(every_question_holds_for_all_classes)
{
    zero_course_numbers given = {.ranks = 0}, standard = zero_course_standard(&given);
    check_lessons(&standard, true);
    for (int ranks = 2; ranks <= ZERO_COURSE_RANKS; ranks += ranks == 3 ? 4 : 1)
        for (int t = 0; t < 3; t++) {
            zero_course_numbers n = {.ranks = ranks, .dtype = types[t]};
            n.layers = ranks % ZERO_COURSE_LAYERS + 1;
            n.hidden = 4 * (ranks % (ZERO_COURSE_HIDDEN / 4) + 1);
            n.microbatches = ranks;
            n = zero_course_standard(&n);
            check_lessons(&n, false);
        }
}

TEST(every_question_holds_for_students)
{
    for (int k = 0; k < 24; k++) {
        char name[16];
        snprintf(name, sizeof name, "student %d", k);
        zero_course_numbers given = {.ranks = 0}, n = zero_course_variant(&given, name);
        check_lessons(&n, false);
    }
}

TEST(variants_depend_on_the_name_alone)
{
    zero_course_numbers given = {.ranks = 0};
    int equal = 0;
    for (int k = 0; k < 100; k++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "student %d", k);
        snprintf(next, sizeof next, "student %d", k + 1);
        zero_course_numbers a = zero_course_variant(&given, name);
        zero_course_numbers again = zero_course_variant(&given, name);
        zero_course_numbers b = zero_course_variant(&given, next);
        assert_memory_equal(&a, &again, sizeof a);
        assert_in_range(a.ranks, 2, ZERO_COURSE_RANKS);
        assert_in_range(a.layers, 1, ZERO_COURSE_LAYERS);
        assert_in_range(a.hidden, 4, ZERO_COURSE_HIDDEN);
        equal += a.ranks == b.ranks && a.layers == b.layers && a.hidden == b.hidden &&
                 a.microbatches == b.microbatches;
    }
    assert_in_range(equal, 0, 5);
    given.ranks = 5; /* a class may fix some of them */
    assert_int_equal(zero_course_variant(&given, "anna").ranks, 5);
}

/* ---- files of lessons ---- */

#define HEAD \
    "title t\nabout a\nplan small {model} --ranks {N} --global-batch {N}\n" \
    "let twice 2 * psi\n"
#define ASKS "question\nask What?\nreply whole bytes\n"

static zero_status fill_text(const char *text)
{
    zero_course_numbers given = {.ranks = 0}, n = zero_course_standard(&given);
    json_t *lesson, *held = NULL;
    zero_status st = zero_course_parse("toy", text, &lesson);
    if (st != ZERO_OK) return st;
    st = zero_course_fill(lesson, &n, &zero_lesson_planner, &held);
    json_decref(lesson);
    json_decref(held);
    return st;
}

TEST(a_lesson_is_a_file)
{
    assert_ok(fill_text(HEAD ASKS "answer twice\nmistake psi\n    Half.\nbecause {twice}\n"
                                  "shows small model states\n"));
}

TEST(wrong_files_are_refused_with_their_line)
{
    static const char *const rows[][2] = {
        {"titel t\n", "lesson toy, line 1: there is no such keyword"},
        {"title t\nabout a\ntitle u\n", "line 3: is given twice"},
        {"    x\n", "line 1: an indented line continues nothing"},
        {HEAD ASKS "let x 1\n", "line 8: belongs before the questions"},
        {HEAD ASKS "answer twice\n", "line 5: a question needs"},
        {HEAD ASKS "answer absent\nbecause\n", "line 8: there is no such fact"},
        {HEAD ASKS "answer 1 +\nbecause\n", "line 8: \"1 +\": expected a fact"},
        {HEAD ASKS "answer \"yes\"\nbecause\n", "line 8: this is not what"},
        {HEAD ASKS "answer 1\nbecause {nothing}\n", "line 9: form \"toy\""},
        {HEAD ASKS "answer 1\nbecause {if psi}\n", "line 9: form \"toy\""},
        {HEAD ASKS "answer 1\nbecause x\nmistake y\n    z\n", "line 10: there is no"},
        {HEAD ASKS "answer 1\nbecause x\nshows large x\n",
         "line 10: there is no such plan"},
        {"title t\nabout a\nplan p --no-such-option\n", "--no-such-option"},
        {HEAD "question\nask x\nanswer 1\n", "line 7: reply comes before answer"},
        {HEAD "ask x\n", "line 5: belongs to a question"},
        {"about a\n", "there is no title"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_true(fill_text(rows[i][0]) != ZERO_OK);
        assert_told(rows[i][1]);
    }
}

int main(void)
{
    if (zero_course_read(&lessons) != ZERO_OK) return 1;
    int failed = run_here(NULL, NULL);
    json_decref(lessons);
    return failed;
}
