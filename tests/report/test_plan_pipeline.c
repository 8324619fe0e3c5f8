/* Pipelines beside ZeRO: the numbers are the pipelines'. */

#include "support/test.h"

#include "report/json_put.h"
#include "report/plan_facts.h"
#include "report/text.h"
#include "support/plan_request.h"

#define TEXT_SIZE 65536

static zero_plan_request request(int n_ranks, int n_stages)
{
    zero_plan_request asked = plan_request("tiny", n_ranks);
    asked.config.plan.micro_batch = 1;
    asked.config.global_batch = 24;
    asked.config.plan.pp = n_stages;
    return asked;
}

static void make(zero_plan_report *report, const zero_plan_request *asked)
{
    assert_ok(zero_plan_report_make(report, asked));
}

static void draw(const zero_plan_report *report, char text[TEXT_SIZE])
{
    FILE *out = fmemopen(text, TEXT_SIZE, "w");
    assert_non_null(out);
    assert_ok(zero_report_print("pipelines", zero_plan_facts(report), out));
    assert_int_equal(fclose(out), 0);
}

/* A line of the table, from its name on. */
static const char *line(const char *text, const char *name)
{
    char start[64];
    snprintf(start, sizeof start, "\n  %s ", name);
    const char *found = strstr(text, start);
    if (!found) fail_msg("no line '%s'", name);
    return found + 1;
}

static void assert_first(const char *text, const char *name, const char *expected)
{
    char word[32], unit[32] = "", both[72];
    const char *values = line(text, name) + 2 + strlen(name);
    assert_true(sscanf(values, "%31s %31s", word, unit) == 2);
    snprintf(both, sizeof both, "%s %s", word, unit);
    assert_string_equal(both, expected);
}

static int worst_of(const zero_pipeline *p)
{
    int worst = 0;
    for (int s = 1; s < p->n_stages; s++)
        if (p->stages[s].schedule.peak_bytes > p->stages[worst].schedule.peak_bytes)
            worst = s;
    return worst;
}

TEST(the_table_shows_the_extremes)
{
    static char text[TEXT_SIZE];
    zero_plan_request asked = request(6, 3);
    zero_plan_report report;
    make(&report, &asked);
    draw(&report, text);
    const zero_pipeline *p = &report.pipelines[ZERO_PIPELINE_GPIPE].pipeline;
    size_t most = 0, least = SIZE_MAX;
    int64_t sent = 0;
    assert_true(p->n_stages == 3 && p->plan.n_ranks == 2 && p->plan.accumulation == 12);
    for (int s = 0; s < 3; s++) {
        const zero_plan_ledger *l = &p->stages[s].ledger;
        zero_plan_exchange data = zero_plan_data_of(l);
        const int64_t all =
            zero_traffic_sent(&data.traffic) + zero_traffic_sent(&l->send.traffic);
        size_t peak = p->stages[s].schedule.peak_bytes;
        most = peak > most ? peak : most;
        least = peak < least ? peak : least;
        sent = all > sent ? all : sent;
    }
    assert_true(most > least);
    char expected[ZERO_PLAN_TEXT];
    zero_text_bytes((double)most, expected);
    assert_first(text, "overall peak", expected);
    zero_text_bytes((double)least, expected);
    assert_first(text, "  stage that needs least", expected);
    zero_text_bytes((double)sent, expected);
    assert_first(text, "all", expected);
    const zero_plan_ledger *middle = &p->stages[1].ledger; /* it sends both ways */
    zero_text_bytes((double)zero_traffic_sent(&middle->send.traffic), expected);
    assert_first(text, "between stages", expected);
    int worst = worst_of(p);
    assert_int_not_equal(worst, 0);
    zero_text_bytes((double)p->stages[worst].ledger.at_peak[ZERO_CLASS_PARAMETERS],
                    expected);
    assert_first(text, zero_class_name(ZERO_CLASS_PARAMETERS), expected);
    snprintf(expected, sizeof expected, "%.1f %%", 100.0 * report.pipelines[0].bubble);
    assert_first(text, "bubble", expected);
    zero_plan_report_destroy(&report);
}

/* The classes of a column add up to its peak. */
TEST(a_column_adds_up)
{
    zero_plan_request asked = request(4, 4);
    zero_plan_report report;
    make(&report, &asked);
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        const zero_pipeline *p = &report.pipelines[k].pipeline;
        const zero_pipe_stage *s = &p->stages[worst_of(p)];
        size_t sum = 0;
        for (int c = 0; c < ZERO_CLASSES; c++) sum += s->ledger.at_peak[c];
        assert_int_equal(sum, s->schedule.peak_bytes);
    }
    zero_plan_report_destroy(&report);
}

/* A slow network makes pipelines slower, and changes no bubble. */
TEST(time_has_messages_and_the_bubble_has_not)
{
    zero_plan_time before = {0};
    double bubble = 0.0, step = 0.0;
    for (int slow = 0; slow < 2; slow++) {
        zero_plan_request asked = request(4, 2);
        zero_plan_report report;
        asked.has_time = asked.has_network = true;
        asked.machine = (zero_plan_machine){.bandwidth = slow ? 1e6 : 1e12, .flops = 1e9};
        make(&report, &asked);
        const zero_plan_pipeline *p = &report.pipelines[ZERO_PIPELINE_1F1B];
        assert_true(p->time.step > p->time.compute);
        assert_true(p->bubble > 0.0 && p->time.idle > p->bubble);
        assert_true(slow == 0 || (p->bubble == bubble && p->time.step > step));
        assert_true(slow == 0 || report.stages[0].time.compute == before.compute);
        bubble = p->bubble;
        step = p->time.step;
        before = report.stages[0].time;
        zero_plan_report_destroy(&report);
    }
}
