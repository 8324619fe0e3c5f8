/* Programs of all stages side by side: every program is there, in its order, and every word that is
 * printed has a line in the legend. */

#include "support/test.h"

#include "report/plan_facts.h"
#include "report/plan_program.h"
#include "sharding/freed.h"
#include "sharding/schedule_memory.h"
#include "support/plan_request.h"

enum { COLUMNS = 80, WIDEST = 88 }; /* with the longest names of instructions */

typedef zero_status picture(const zero_plan_report *report, FILE *out);

static char *draw(const zero_plan_report *report, picture *show)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_ok(show(report, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t widest(const char *text)
{
    size_t most = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t width = strcspn(line, "\n");
        if (width > most) most = width;
        if (width > 0) assert_true(line[width - 1] != ' ');
    }
    return most;
}

/* ---- what is planned ---- */

/* Requests whose programs have all instructions that a plan without a device or a file can have. */
static zero_plan_request requests(size_t i)
{
    zero_plan_request asked = plan_request(i == 2 ? "gpt2-xl" : "tiny", i == 2 ? 64 : 4);
    if (i == 1) asked.config.plan.type = ZERO_FP32;
    if (i == 3) asked.config.global_batch = 64;
    if (i == 3) asked.config.plan.micro_batch = 4;
    if (i == 4) asked.config.plan.shard_ranks = 2;
    if (i == 5) {
        asked.config.tp.ranks = 2;
        asked.config.plan.recompute = asked.config.plan.partition_activations = true;
    }
    return asked;
}
enum { REQUESTS = 6 };

static void make(zero_plan_report *report, size_t i)
{
    zero_plan_request asked = requests(i);
    assert_ok(zero_plan_report_make(report, &asked));
}

/* ---- laws ---- */

TEST(every_program_keeps_its_order_in_the_rows)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        zero_plan_report r;
        zero_plan_entries programs[ZERO_STAGE_COUNT];
        zero_plan_row *rows;
        int n_rows, next[ZERO_STAGE_COUNT] = {0}, lines = 0;
        make(&r, i);
        for (int k = 0; k < r.n; k++)
            assert_ok(zero_plan_entries_make(&programs[k], &r.stages[k].schedule,
                                             ZERO_PROGRAM_STEP));
        assert_ok(zero_plan_entries_merge(programs, r.n, &rows, &n_rows));
        for (int row = 0; row < n_rows; row++) {
            zero_plan_key key = {0};
            bool has_one = false;
            for (int k = 0; k < r.n; k++) {
                if (rows[row].of[k] < 0) continue;
                assert_int_equal(rows[row].of[k], next[k]++);
                zero_plan_key its = programs[k].list[rows[row].of[k]].key;
                if (has_one) assert_memory_equal(&its, &key, sizeof key);
                key = its;
                has_one = true;
            }
            assert_true(has_one);
        }
        for (int k = 0; k < r.n; k++) {
            assert_int_equal(next[k], programs[k].n);
            lines += programs[k].n;
            zero_plan_entries_destroy(&programs[k]);
        }
        assert_true(n_rows < lines / 2); /* most instructions are those of several stages */
        free(rows);
        zero_plan_report_destroy(&r);
    }
}

/* The gradients in flight fall by what is freed, and rise by nothing else than new ones. */
TEST(what_is_freed_leaves_the_staircase)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        zero_plan_report r;
        make(&r, i);
        for (int k = 0; k < r.n; k++) {
            const zero_schedule *s = &r.stages[k].schedule;
            int length = s->programs[ZERO_PROGRAM_STEP].length, n, next = 0;
            zero_freed *freed;
            size_t(*live)[ZERO_CLASSES] = calloc((size_t)length, sizeof *live);
            assert_ok(zero_schedule_freed(s, ZERO_PROGRAM_STEP, &freed, &n));
            zero_schedule_live(s, ZERO_PROGRAM_STEP, live);
            for (int at = 0; at < length; at++) {
                size_t gone = 0, begun = 0;
                for (; next < n && freed[next].at == at; next++) gone += freed[next].bytes;
                for (int b = 0; b < s->n_buffers; b++)
                    if (s->buffers[b].class == ZERO_CLASS_IN_FLIGHT &&
                        zero_buffer_is_of(&s->buffers[b], ZERO_PROGRAM_STEP) &&
                        s->buffers[b].first == at + 1)
                        begun += s->buffers[b].bytes;
                size_t now = live[at][ZERO_CLASS_IN_FLIGHT];
                size_t then = at + 1 < length ? live[at + 1][ZERO_CLASS_IN_FLIGHT] : 0;
                assert_true(now + begun == then + gone);
            }
            assert_int_equal(next, n);
            free(freed);
            free(live);
        }
        zero_plan_report_destroy(&r);
    }
}

/* ---- pictures ---- */

TEST(stage_two_differs_from_stage_one_by_what_it_frees)
{
    zero_plan_report r;
    int freed[ZERO_STAGE_COUNT] = {0};
    make(&r, 1);
    for (int k = 0; k < r.n; k++) {
        zero_plan_entries e;
        assert_ok(zero_plan_entries_make(&e, &r.stages[k].schedule, ZERO_PROGRAM_STEP));
        for (int i = 0; i < e.n; i++) freed[k] += e.list[i].at < 0;
        zero_plan_entries_destroy(&e);
    }
    assert_int_equal(freed[0], 0);
    assert_int_equal(freed[1], 0);
    assert_int_equal(freed[2], r.model.n_groups);
    assert_int_equal(freed[3], r.model.n_groups);
    assert_int_equal(r.stages[1].schedule.programs[ZERO_PROGRAM_STEP].length,
                     r.stages[2].schedule.programs[ZERO_PROGRAM_STEP].length);
    zero_plan_report_destroy(&r);
}

/* True if a line begins with blanks, the word and two blanks: the legend's. */
static bool has_legend(const char *text, const char *word)
{
    char line[64];
    snprintf(line, sizeof line, "\n  %-*s  ", ZERO_LEGEND_WORD, word);
    return strstr(text, line) != NULL;
}

/* The first word of each line above the legend. */
static void assert_legends(const char *text)
{
    for (int i = 0; i < ZERO_OP_KINDS; i++) {
        char word[32];
        snprintf(word, sizeof word, "%s ", zero_op_name((zero_op)i));
        bool is_shown = false;
        for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
            is_shown = is_shown || (at > text && (at[-1] == '\n' || at[-1] == ' '));
        if (is_shown) assert_true(has_legend(text, zero_op_name((zero_op)i)));
    }
    if (strstr(text, "\n" ZERO_FREED_NAME)) assert_true(has_legend(text, ZERO_FREED_NAME));
}

TEST(pictures_fit_a_terminal_and_explain_their_words)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        zero_plan_report r;
        make(&r, i);
        char *text = draw(&r, zero_plan_show_beside);
        assert_true(widest(text) <= (i == 5 ? WIDEST : COLUMNS));
        assert_legends(text);
        free(text);
        text = draw(&r, zero_plan_show_programs);
        assert_legends(text);
        free(text);
        zero_plan_report_destroy(&r);
    }
}

TEST(every_word_has_a_line_that_fits)
{
    for (int i = 0; i < ZERO_OP_KINDS; i++) {
        const char *line = zero_ops[(zero_op)i].meaning;
        if (!line) fail_msg("%s has no legend", zero_op_name((zero_op)i));
        assert_true(*line && strlen(line) <= ZERO_LEGEND_TEXT);
        assert_true(strlen(zero_op_name((zero_op)i)) <= ZERO_LEGEND_WORD);
    }
    for (int c = 0; c < ZERO_CLASSES; c++) {
        const char *line = zero_class_meaning((zero_class)c);
        if (!line) fail_msg("%s has no legend", zero_class_name((zero_class)c));
        assert_true(*line && strlen(line) <= ZERO_LEGEND_TEXT);
        assert_true(strlen(zero_class_name((zero_class)c)) <= ZERO_LEGEND_WORD);
    }
    assert_true(strlen(ZERO_FREED_MEANING) <= ZERO_LEGEND_TEXT);
}
