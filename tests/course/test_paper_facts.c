#define _GNU_SOURCE /* asprintf */
/* Lessons and homework quote the paper rightly: the rows of course/paper.txt. */

#include "support/table.h"

#include "cli/lesson_plans.h"
#include "course/answer.h"
#include "course/homework.h"
#include "facts/facts.h"

typedef struct {
    json_t *lessons, *exercises;
} course;

/* Question "12.3", for the caller to release its lesson. */
static const json_t *question(const course *c, const char *place, json_t **held)
{
    zero_course_numbers n = zero_course_standard(&(zero_course_numbers){.ranks = 0});
    int lesson, k;
    assert_int_equal(sscanf(place, "%d.%d", &lesson, &k), 2);
    assert_ok(zero_course_fill(json_array_get(c->lessons, (size_t)lesson - 1), &n,
                               &zero_lesson_planner, held));
    const json_t *q = json_array_get(json_object_get(*held, "questions"), (size_t)k - 1);
    assert_non_null(q);
    return q;
}

static const json_t *exercise(const course *c, const char *number)
{
    return json_array_get(c->exercises, (size_t)atoi(number) - 1);
}

static void check_answer(const course *c, const test_table *t)
{
    json_t *held;
    double expected = atof(t->field[2]), within = atof(t->field[3]);
    double answer = zero_question_answer(question(c, t->field[1], &held));
    json_decref(held);
    if (!(fabs(answer - expected) <= within * expected))
        fail_msg("lesson %s: %g, the paper has %g", t->field[1], answer, expected);
}

/* Lines of a text may break anywhere. */
static void check_words(const char *text, const test_table *t)
{
    char *flat = strdup(text);
    assert_non_null(flat);
    for (char *at = flat; *at; at++)
        if (*at == '\n') *at = ' ';
    if (!strstr(flat, t->field[2]))
        fail_msg("%s does not say '%s'", t->field[1], t->field[2]);
    free(flat);
}

/* The closed form that a solution is held to, of very many ranks. */
static void check_volume(const course *c, const test_table *t)
{
    const double ranks = 1e6, n = 1e6, layers = 7;
    json_t *scope = json_pack("{s:f, s:f, s:f, s:{s:i}}", "N", ranks, "n", n, "layers",
                              layers, "reference", "rounds", 1);
    const char *limits =
        json_string_value(json_object_get(exercise(c, t->field[1]), "limits"));
    json_t *most = zero_facts_pick(&(zero_scope){.node = scope}, limits);
    double bytes = json_number_value(json_object_get(most, "bytes"));
    double volume = bytes / (4 * ranks * n) / (strstr(limits, "layers") ? layers : 1);
    if (fabs(volume - atof(t->field[2])) > 1e-3)
        fail_msg("exercise %s: %g Psi, the paper has %s", t->field[1], volume, t->field[2]);
    json_decref(most);
    json_decref(scope);
}

TEST(lessons_and_homework_say_what_the_paper_says)
{
    course c;
    int rows = 0;
    assert_ok(zero_course_read(&c.lessons));
    assert_ok(zero_homework_read(&c.exercises));
    for (test_table t = table_open("course/paper.txt"); table_next(&t); rows++) {
        const char *kind = t.field[0];
        if (strcmp(kind, "answer") == 0) check_answer(&c, &t);
        if (strcmp(kind, "volume") == 0) check_volume(&c, &t);
        if (strcmp(kind, "text") == 0)
            check_words(zero_said(exercise(&c, t.field[1]), "text"), &t);
        if (strcmp(kind, "says") == 0) {
            json_t *held;
            const json_t *q = question(&c, t.field[1], &held);
            char *text = NULL;
            const char *screen = zero_said(q, "screen");
            assert_true(asprintf(&text, "%s %s", screen ? screen : "",
                                 zero_said(q, "because")) > 0);
            check_words(text, &t);
            free(text);
            json_decref(held);
        }
    }
    assert_int_equal(rows, 30);
    json_decref(c.lessons);
    json_decref(c.exercises);
}
