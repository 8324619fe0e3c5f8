/* Answers as people write them, grades, and all questions of all lessons in many variants. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/lesson_plans.h"
#include "lesson/answer.h"
#include "lesson/course.h"
#include "lesson/say.h"

/* ---- parsing ---- */

static void numbers_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        zero_answer_kind kind;
        const char *text;
        double value;
        bool is_rounded;
    } rows[] = {
        {ZERO_ANSWER_WHOLE, "4800", 4800, false},
        {ZERO_ANSWER_WHOLE, "4,800", 4800, false},
        {ZERO_ANSWER_WHOLE, "1,234,567", 1234567, false},
        {ZERO_ANSWER_WHOLE, "4_800 bytes", 4800, false},
        {ZERO_ANSWER_WHOLE, "4800B", 4800, false},
        {ZERO_ANSWER_WHOLE, "12 KiB", 12288, true},
        {ZERO_ANSWER_WHOLE, "12kib", 12288, true},
        {ZERO_ANSWER_WHOLE, "4.8k", 4800, true},
        {ZERO_ANSWER_WHOLE, "-3", -3, false},
        {ZERO_ANSWER_REAL, "1.375", 1.375, true},
        {ZERO_ANSWER_REAL, "1,375", 1.375, true},
        {ZERO_ANSWER_REAL, "1.375x", 1.375, true},
        {ZERO_ANSWER_REAL, "x 1.375", 1.375, true},
        {ZERO_ANSWER_REAL, "11/8", 1.375, true},
        {ZERO_ANSWER_REAL, "137.5 %", 1.375, true},
        {ZERO_ANSWER_FINE, "-2.6e-4", -2.6e-4, true},
        {ZERO_ANSWER_SECONDS, "1.749", 1.749, true},
        {ZERO_ANSWER_SECONDS, "1.749 s", 1.749, true},
        {ZERO_ANSWER_SECONDS, "1749ms", 1.749, true},
        {ZERO_ANSWER_SECONDS, "3 us", 3e-6, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zero_answer a = {.value = NAN};
        if (!zero_answer_parse(rows[i].kind, "bytes", rows[i].text, &a))
            fail_msg("'%s' was not read", rows[i].text);
        if (fabs(a.value - rows[i].value) > 1e-9 * fabs(rows[i].value))
            fail_msg("'%s' is %g", rows[i].text, a.value);
        assert_int_equal(a.is_rounded, rows[i].is_rounded);
    }
}

static void numbers_are_read_with_the_unit_of_their_question(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zero_answer a;
        assert_true(zero_answer_parse(rows[i].kind, rows[i].unit, rows[i].text, &a));
        assert_true(fabs(a.value - rows[i].value) < 1e-9);
    }
    zero_answer a;
    assert_false(zero_answer_parse(ZERO_ANSWER_WHOLE, "bytes", "3 instructions", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WHOLE, "bytes", "3 seconds", &a));
    assert_false(zero_answer_parse(ZERO_ANSWER_WHOLE, "digits", "digits", &a));
}

static void everything_else_is_refused(void **state)
{
    (void)state;
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
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (int kind = ZERO_ANSWER_WHOLE; kind <= ZERO_ANSWER_WORD; kind++) {
            zero_answer a = {.value = 7.0};
            if (zero_answer_parse((zero_answer_kind)kind, "yes|no", texts[i], &a))
                fail_msg("'%s' was read as %g (kind %d)", texts[i], a.value, kind);
            assert_true(a.value == 7.0);
        }
}

static void words_may_be_shortened_but_not_guessed(void **state)
{
    (void)state;
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

static void lines_may_be_long_or_have_nul_bytes(void **state)
{
    (void)state;
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

static void a_mark_of_utf8_is_no_part_of_a_line(void **state)
{
    (void)state;
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

static zero_graded grade(const zero_question *q, const zero_course_world *w, double value)
{
    zero_answer_line line = {.is_whole = true};
    if (q->kind == ZERO_ANSWER_WORD)
        zero_course_answer(q, value, line.text);
    else
        snprintf(line.text, sizeof line.text, "%.17g", value);
    return zero_grade_answer(q, w, &line);
}

static void assert_expands(const zero_lesson *l, const zero_question *q,
                           const zero_course_world *w, const char *template)
{
    char text[ZERO_COURSE_TEXT];
    if (template && !zero_course_expand(l, q, w, template, text)) fail_msg("%s", text);
}

static void assert_fits_a_terminal(const zero_lesson *l, const zero_question *q,
                                   const zero_course_world *w)
{
    char *text = NULL;
    size_t size = 0;
    int lines = 2; /* the head, and the prompt */
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    zero_say_screen(&(zero_speaker){l, q, w, out});
    fclose(out);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++)
        if (strlen(line) > 80) fail_msg("more than 80 columns: %s", line);
    for (char *c = text; c + 1 < text + size; c++) lines += c[0] == '\0' && c[1] == '\n';
    if (lines > 22) fail_msg("%s: %d lines: %s", l->title, lines, q->ask);
    free(text);
}

/* The grade of question k of lesson 1, in the course's own numbers. */
static zero_graded grade_text(int k, const char *text)
{
    zero_course_numbers given = {.ranks = 0}, n = zero_course_standard(&given);
    zero_course_world w;
    zero_answer_line line = {.is_whole = true};
    snprintf(line.text, sizeof line.text, "%s", text);
    assert_int_equal(zero_course_open(&w, zero_course_lesson(1), &n, &zero_lesson_planner),
                     ZERO_OK);
    zero_graded g = zero_grade_answer(&zero_course_lesson(1)->questions[k], &w, &line);
    zero_course_close(&w);
    return g;
}

static void whole_numbers_are_exact_and_others_to_one_percent(void **state)
{
    (void)state;
    assert_int_equal(grade_text(0, "4800").grade, ZERO_GRADE_RIGHT);
    assert_int_equal(grade_text(0, "4801").grade, ZERO_GRADE_WRONG);
    assert_int_equal(grade_text(0, "-4800").grade, ZERO_GRADE_WRONG);
    assert_int_equal(grade_text(0, "4.7 KiB").grade, ZERO_GRADE_RIGHT);
    assert_int_equal(grade_text(0, "5 KiB").grade, ZERO_GRADE_WRONG);
    assert_int_equal(grade_text(6, "2.58").grade, ZERO_GRADE_RIGHT);
    assert_int_equal(grade_text(6, "2.6").grade, ZERO_GRADE_WRONG);
    assert_int_equal(grade_text(0, "").grade, ZERO_GRADE_MISSING);
    assert_int_equal(grade_text(0, "yes").grade, ZERO_GRADE_UNREADABLE);
    assert_int_equal(grade_text(6, "1e999").grade, ZERO_GRADE_UNREADABLE);
}

static void usual_mistakes_are_named(void **state)
{
    (void)state;
    static const struct {
        int question;
        const char *text, *why;
    } rows[] = {
        {0, "3600", "12 Psi"},
        {0, "38400", "bits"},
        {0, "14400", "one rank"},
        {1, "1600", "Stage 1 divides only"},
        {4, "4800", "forgets the padding"},
        {5, "1024", "numbers, not bytes"},
        {6, "1.56", "padding alone"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zero_graded g = grade_text(rows[i].question, rows[i].text);
        assert_int_equal(g.grade, ZERO_GRADE_MISTAKE);
        if (!strstr(g.why, rows[i].why)) fail_msg("%s: %s", rows[i].text, g.why);
    }
}

/* Returns how many mistakes can be named. */
static int check_mistakes(const zero_question *q, const zero_course_world *w)
{
    int n = 0;
    zero_answer right = {.value = q->answer(w)};
    for (int k = 0; k < ZERO_MISTAKES && q->mistakes[k].value; k++) {
        zero_answer wrong = {.value = q->mistakes[k].value(w)};
        if (isnan(wrong.value)) continue;
        zero_graded g = grade(q, w, wrong.value);
        bool is_right = zero_grade_is_right(q, right.value, &wrong);
        if (g.grade != (is_right ? ZERO_GRADE_RIGHT : ZERO_GRADE_MISTAKE))
            fail_msg("%s: %g is graded %d", q->ask, wrong.value, g.grade);
        n += !is_right;
    }
    return n;
}

/* A lesson accepts the text that it prints as the answer, with its unit. */
static void assert_takes_its_own(const zero_question *q, const zero_course_world *w)
{
    zero_answer_line line = {.is_whole = true};
    char value[32];
    bool has_unit = q->kind != ZERO_ANSWER_WORD;
    zero_course_answer(q, q->answer(w), value);
    snprintf(line.text, sizeof line.text, "%s %s", value, has_unit ? q->unit : "");
    if (!has_unit || !q->unit[0]) line.text[strlen(value)] = '\0';
    if (zero_grade_answer(q, w, &line).grade != ZERO_GRADE_RIGHT)
        fail_msg("'%s' is not taken: %s", line.text, q->ask);
}

static void check_lessons(const zero_course_numbers *numbers, bool needs_mistakes)
{
    for (int n = 1; n <= zero_course_lessons(); n++) {
        const zero_lesson *l = zero_course_lesson(n);
        zero_course_world w;
        if (zero_course_open(&w, l, numbers, &zero_lesson_planner) != ZERO_OK)
            fail_msg("lesson %d: %s", n, zero_last_error());
        for (int k = 0; k < l->n; k++) {
            const zero_question *q = &l->questions[k];
            double right = q->answer(&w);
            if (!isfinite(right)) fail_msg("%d.%d is not finite", n, k + 1);
            assert_int_equal(grade(q, &w, right).grade, ZERO_GRADE_RIGHT);
            assert_takes_its_own(q, &w);
            assert_expands(l, q, &w, q->screen);
            assert_expands(l, q, &w, q->ask);
            assert_expands(l, q, &w, q->because);
            assert_expands(l, q, &w, q->against);
            for (int i = 0; i < ZERO_MISTAKES; i++)
                assert_expands(l, q, &w, q->mistakes[i].why);
            assert_fits_a_terminal(l, q, &w);
            if (check_mistakes(q, &w) == 0 && needs_mistakes)
                fail_msg("%d.%d has no mistake that can be named", n, k + 1);
        }
        zero_course_close(&w);
    }
}

static const char *const types[] = {"fp32", "bf16", "fp16"};

static void every_question_holds_for_all_classes(void **state)
{
    (void)state;
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

static void every_question_holds_for_students(void **state)
{
    (void)state;
    for (int k = 0; k < 24; k++) {
        char name[16];
        snprintf(name, sizeof name, "student %d", k);
        zero_course_numbers given = {.ranks = 0}, n = zero_course_variant(&given, name);
        check_lessons(&n, false);
    }
}

static void variants_depend_on_the_name_alone(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_as_people_write_them),
        cmocka_unit_test(numbers_are_read_with_the_unit_of_their_question),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(words_may_be_shortened_but_not_guessed),
        cmocka_unit_test(lines_may_be_long_or_have_nul_bytes),
        cmocka_unit_test(a_mark_of_utf8_is_no_part_of_a_line),
        cmocka_unit_test(whole_numbers_are_exact_and_others_to_one_percent),
        cmocka_unit_test(usual_mistakes_are_named),
        cmocka_unit_test(every_question_holds_for_all_classes),
        cmocka_unit_test(every_question_holds_for_students),
        cmocka_unit_test(variants_depend_on_the_name_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
