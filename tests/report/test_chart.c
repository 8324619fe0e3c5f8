/* The staircase of memory: what it draws, and that its numbers are the plan's. */

#include "support/test.h"

#include "base/number.h"
#include "report/plan_facts.h"
#include "report/text.h"
#include "sharding/stages.h"
#include "support/plan_request.h"
#include "support/within.h"

#define TEXT_SIZE 16384
#define LABEL     12 /* columns before the first panel */

static void draw(const zero_plan_report *report, char text[TEXT_SIZE])
{
    FILE *out = fmemopen(text, TEXT_SIZE, "w");
    assert_non_null(out);
    assert_ok(zero_plan_show_chart(report, out));
    assert_false(ferror(out));
    assert_int_equal(fclose(out), 0);
    assert_true(strlen(text) < TEXT_SIZE - 1);
}

static void make(zero_plan_report *report, const zero_plan_request *asked,
                 char text[TEXT_SIZE])
{
    assert_ok(zero_plan_report_make(report, asked));
    draw(report, text);
}

static void assert_plain(const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t width = strcspn(line, "\n");
        assert_within(width, 0, ZERO_CHART_COLUMNS);
        if (width > 0) assert_true(line[width - 1] != ' ');
        for (size_t i = 0; i < width; i++) assert_within(line[i], ' ', '~');
    }
}

/* The line that begins with this heading. */
static const char *line_of(const char *text, const char *heading)
{
    char begin[16];
    snprintf(begin, sizeof begin, "\n%11s ", heading);
    const char *line = strstr(text, begin);
    if (!line) fail_msg("no line '%s'", heading);
    return line + 1;
}

static int panel_width(const zero_plan_report *r)
{
    return (ZERO_CHART_COLUMNS - LABEL + 1) / r->n;
}

static void assert_peaks(const zero_plan_report *r, const char *text)
{
    const char *bytes = line_of(text, "bytes") + LABEL, *at = line_of(text, "instruction");
    for (int i = 0; i < r->n; i++) {
        const zero_schedule *s = &r->stages[i].schedule;
        char peak[32]; /* its end is on the next line if it is wider than the panel */
        int digits = snprintf(peak, sizeof peak, "%zu", s->peak_bytes), number = 0;
        size_t shown = (size_t)zero_min(digits, panel_width(r) - 1);
        assert_int_equal(s->peak_program, ZERO_PROGRAM_STEP);
        assert_memory_equal(bytes + i * panel_width(r), peak, shown);
        assert_int_equal(sscanf(at + LABEL + i * panel_width(r), "%d of", &number), 1);
        assert_int_equal(number, s->peak_at + 1);
    }
}

static const struct {
    const char *model;
    int n_ranks;
} plans[] = {{"tiny", 1}, {"tiny", 3}, {"gpt2", 4}, {"gpt2-xl", 64}, {"paper-1t", 1024}};
#define N_PLANS (sizeof plans / sizeof plans[0])

TEST(the_chart_fits_a_plain_terminal_and_names_the_plan_s_peaks)
{
    for (size_t i = 0; i < N_PLANS; i++) {
        zero_plan_request asked = plan_request(plans[i].model, plans[i].n_ranks);
        zero_plan_report r;
        char text[TEXT_SIZE];
        make(&r, &asked, text);
        assert_int_equal(r.n, ZERO_STAGE_COUNT);
        assert_plain(text);
        assert_peaks(&r, text);
        zero_plan_report_destroy(&r);
    }
}

/* The rows that memory takes in a panel's column, and those of model states. */
static int height_of(const char *text, int column, bool states_only)
{
    int height = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t width = strcspn(line, "\n");
        if (width <= (size_t)(LABEL + column) || line[LABEL - 1] != '|') continue;
        char mark = line[LABEL + column];
        height += states_only ? mark == '#' : mark == '#' || mark == 'o' || mark == '.';
    }
    return height;
}

static int highest(const zero_plan_report *r, const char *text, int panel)
{
    int most = 0, width = panel_width(r);
    for (int k = 0; k < width - 1; k++) {
        int height = height_of(text, panel * width + k, false);
        if (height > most) most = height;
    }
    return most;
}

TEST(stages_are_drawn_on_one_scale)
{
    zero_plan_request asked = plan_request("gpt2-xl", 64);
    zero_plan_report r;
    char text[TEXT_SIZE];
    make(&r, &asked, text);
    double most = (double)r.stages[0].schedule.peak_bytes;
    for (int i = 0; i < r.n; i++) {
        const zero_plan_stage *stage = &r.stages[i];
        double rows = 16.0 * (double)stage->schedule.peak_bytes / most;
        double states = 16.0 * (double)stage->ledger.states / most;
        assert_within(highest(&r, text, i), (int)(rows - 0.5), (int)(rows + 0.5));
        assert_within(height_of(text, i * panel_width(&r), true), (int)(states - 0.5),
                      (int)(states + 0.5));
    }
    zero_plan_report_destroy(&r);
}

TEST(one_stage_takes_the_whole_width)
{
    zero_plan_request asked = plan_request("gpt2", 4);
    zero_plan_report r;
    char text[TEXT_SIZE];
    asked.all_stages = false;
    asked.config.plan.stage = 3;
    make(&r, &asked, text);
    assert_plain(text);
    assert_peaks(&r, text);
    const char *ground = strstr(text, "0+");
    assert_non_null(ground);
    assert_int_equal(strcspn(ground, "\n"), 2 + ZERO_CHART_COLUMNS - LABEL);
    assert_non_null(strstr(text, "\n      stage 3 P_os+g+p\n"));
    zero_plan_report_destroy(&r);
}

/* A column shows the worst of its instructions: the peak is never lost among them. */
TEST(long_programs_keep_their_peak)
{
    zero_plan_request asked = plan_request("tiny", 2);
    zero_plan_report r;
    char text[TEXT_SIZE];
    asked.config.plan.micro_batch = 1;
    asked.config.global_batch = 4096;
    make(&r, &asked, text);
    assert_plain(text);
    assert_peaks(&r, text);
    assert_true(r.stages[0].schedule.programs[ZERO_PROGRAM_STEP].length > 10000);
    assert_int_equal(highest(&r, text, 0) == 16 || highest(&r, text, 3) == 16, 1);
    zero_plan_report_destroy(&r);
}

TEST(a_peak_outside_the_step_is_told)
{
    zero_plan_request asked = plan_request("tiny", 2);
    zero_plan_report r;
    char text[TEXT_SIZE];
    make(&r, &asked, text);
    assert_null(strstr(text, "needs more"));
    r.stages[1].schedule.peak_program = ZERO_PROGRAM_EVALUATE;
    r.stages[1].schedule.peak_bytes = (size_t)1 << 30;
    draw(&r, text);
    assert_non_null(
        strstr(text, "stage 1 needs more to evaluate: 1.00 GiB (1073741824 bytes)\n"));
    zero_plan_report_destroy(&r);
}
