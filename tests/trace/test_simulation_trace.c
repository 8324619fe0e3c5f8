/* The trace of a simulation has the ranks that were asked for, and each rank's own plan. */
#define TEST_HAS_MAIN
#include <unistd.h>

#include "support/test.h"

#include "base/fail.h"
#include "report/plan_program.h"
#include "report/text.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"
#include "support/plan_request.h"
#include "support/planned.h"
#include "trace/simulation_trace.h"
#include "trace/trace_read.h"

static char place[] = "/tmp/zero_test_simulated_XXXXXX"; /* also the current directory */

static zero_simulation_request request_of(int ranks, int stage)
{
    zero_simulation_request r = {.plan = plan_request("gpt2", ranks),
                                 .input = {.adapter = INFINITY,
                                           .switch_ratio = 1.0,
                                           .memory_bandwidth = INFINITY,
                                           .steps = 3,
                                           .memory_limit = INT64_MAX,
                                           .most_messages = 1000000,
                                           .n_slow = 1,
                                           .slow = {{.rank = 1, .factor = 0.5}}}};
    zero_config *c = &r.plan.config;
    c->shape.layers = 2;
    c->shape.hidden = 16;
    c->shape.heads = 2;
    c->shape.seq = 8;
    c->shape.vocab = 256;
    c->plan.stage = stage;
    r.plan.all_stages = false;
    r.plan.has_time = r.plan.has_network = true;
    r.plan.machine = (zero_plan_machine){.latency = 1e-6, .bandwidth = 1e9, .flops = 1e9};
    return r;
}

static zero_status make(zero_simulation_report *report, zero_simulation_request *request,
                        const zero_simulation_trace_input *input)
{
    return zero_simulation_trace_make(input, request, report);
}

static zero_simulation_trace_input input_of(int first, int last)
{
    return (zero_simulation_trace_input){
        .path = "t.json",
        .ranks = {.n = 1, .range = {{.first = first, .last = last}}},
        .command = "zero simulate",
        .commit = "abc"};
}

/* Instructions of a rank in its own plan: names, bytes, what is alive. */
static void check_instructions(const zero_simulation_report *r, const zero_schedule *s,
                               const zero_traced_rank *rank)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    size_t(*live)[ZERO_CLASSES] = calloc((size_t)p->length, sizeof *live);
    int64_t sample = -1;
    char name[ZERO_PLAN_TEXT];
    assert_non_null(live);
    zero_schedule_live(s, ZERO_PROGRAM_STEP, live);
    for (int64_t k = 0; k < rank->n_spans; k++) {
        const zero_traced_span *span = &rank->spans[k];
        const zero_instruction *i = &p->code[span->at - 1];
        zero_text_instruction(&r->plan.model, i, name);
        assert_string_equal(span->name, name);
        assert_true(span->step == 3 && span->group == i->group);
        assert_true(span->bytes == zero_plan_instruction_bytes(s, i));
        assert_true(span->live == (int64_t)i->live_bytes);
        while (sample + 1 < rank->n_samples && rank->samples[sample + 1].at <= span->begin)
            sample++;
        assert_true(sample >= 0);
        for (int c = 0; c < ZERO_CLASSES; c++)
            assert_true(rank->samples[sample].of_class[c] ==
                        (int64_t)live[span->at - 1][c]);
    }
    free(live);
}

/* Spans tile the step; the flights that it begins send what the plan says. */
static void check_rank(const zero_simulation_report *r, const zero_traced_rank *rank)
{
    zero_plan_input input = r->plan.stages[0].schedule.input;
    int64_t sum = 0, sent = 0;
    input.rank = rank->rank;
    zero_schedule s = compiled(&input);
    check_instructions(r, &s, rank);
    for (int64_t k = 0; k < rank->n_spans; k++) {
        sum += rank->spans[k].end - rank->spans[k].begin;
        if (k > 0) assert_true(rank->spans[k].begin == rank->spans[k - 1].end);
    }
    assert_true(fabs(1e-9 * (double)sum - r->results[0].step) < 1e-7);
    for (int64_t k = 0; k < rank->n_flights; k++)
        if (rank->flights[k].step == 3) sent += rank->flights[k].bytes;
    zero_traffic reduce = zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
    zero_traffic gather = zero_schedule_traffic(&s, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
    assert_true(sent == zero_traffic_total(&reduce).bytes_sent +
                            zero_traffic_total(&gather).bytes_sent);
    zero_schedule_destroy(&s);
}

TEST(each_rank_has_its_own_plan)
{
    for (int stage = 0; stage < 4; stage++)
        for (int owner = 0; owner < 2; owner++) {
            zero_simulation_request request = request_of(3, stage);
            zero_simulation_trace_input input = input_of(0, 63);
            zero_simulation_report report;
            zero_traced t;
            if (owner) request.plan.config.plan.partition = ZERO_PARTITION_OWNER;
            assert_ok(make(&report, &request, &input));
            assert_ok(zero_traced_read(&t, "t.json"));
            assert_true(t.is_simulated && !t.is_cut && t.n_ranks == 3 && t.world == 3);
            assert_true(t.first_step == 3 && t.last_step == 3);
            assert_string_equal(t.command, "zero simulate");
            int64_t waited = 0;
            for (int rank = 0; rank < 3; rank++) {
                check_rank(&report, &t.ranks[rank]);
                for (int64_t k = 0; k < t.ranks[rank].n_spans; k++)
                    waited += t.ranks[rank].spans[k].waited;
            }
            assert_true(waited > 0);
            zero_traced_destroy(&t);
            zero_simulation_report_destroy(&report);
            unlink("t.json");
        }
}

TEST(only_ranks_that_are_asked_for_are_there)
{
    zero_simulation_request request = request_of(8, 3);
    zero_simulation_trace_input input = input_of(2, 3);
    zero_simulation_report report;
    zero_traced t;
    input.ranks.n = 2;
    input.ranks.range[1].first = input.ranks.range[1].last = 6;
    assert_ok(make(&report, &request, &input));
    assert_ok(zero_traced_read(&t, "t.json"));
    assert_int_equal(t.n_ranks, 3);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(t.ranks[k].rank, k < 2 ? k + 2 : 6);
        assert_true(t.ranks[k].n_spans > 0 && t.ranks[k].n_flights > 0);
    }
    zero_traced_destroy(&t);
    zero_simulation_report_destroy(&report);
    unlink("t.json");
}

TEST(a_failure_leaves_no_file)
{
    zero_simulation_request request = request_of(3, 3);
    zero_simulation_trace_input input = input_of(0, 63);
    zero_simulation_report report;
    request.input.most_messages = 1;
    assert_int_equal(make(&report, &request, &input), ZERO_ERR_INVALID);
    assert_int_equal(access("t.json", F_OK), -1);
    request = request_of(3, 3);
    request.plan.machine.bandwidth = 1e-300;
    assert_int_equal(make(&report, &request, &input), ZERO_ERR_INVALID);
    assert_int_equal(access("t.json", F_OK), -1);
    request = request_of(3, 3);
    input.path = "no/such/t.json";
    assert_fails(make(&report, &request, &input), ZERO_ERR_INVALID, "--trace no/such");
}

int main(void)
{
    if (!mkdtemp(place) || chdir(place) != 0) return 1;
    int failed = run_here(NULL, NULL);
    return rmdir(place) != 0 || failed;
}
