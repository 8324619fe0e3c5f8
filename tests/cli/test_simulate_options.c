/* The options of `zero simulate`: lists, rates, what is refused. */

#include "support/test.h"

#include "base/fail.h"
#include "cli/simulate_options.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RATES        "--network 1us,12.5G --flops 1T "

/* words[512] is borrowed by *o. */
static zero_status parse(zero_simulate_options *o, const char *line, char *words)
{
    zero_options given; /* no files */
    char *argv[32];
    int argc = 0;
    snprintf(words, 512, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    return zero_options_read(&zero_command_simulate, argc, argv, o, &given);
}

static void take(zero_simulate_options *o, const char *line, char *words)
{
    if (parse(o, line, words) != ZERO_OK) fail_msg("%s: %s", line, zero_last_error());
}

TEST(what_is_left_out_limits_nothing)
{
    zero_simulate_options o;
    char words[512];
    take(&o, RATES, words);
    const zero_simulate_input *in = &o.request.input;
    assert_true(isinf(in->adapter) && isinf(in->memory_bandwidth));
    assert_true(in->poll == 0.0 && in->n_slow == 0 && in->switch_nodes == 0);
    assert_int_equal(in->steps, 2);
    assert_true(in->memory_limit == 8000000000 && in->most_messages == 500000000);
    assert_null(o.trace);
    const zero_plan_request *plan = &o.request.plan;
    assert_true(plan->machine.latency == 1e-6 && plan->machine.bandwidth == 12.5e9);
    assert_true(plan->machine.flops == 1e12 && plan->has_time && plan->has_network);
    assert_int_equal(plan->n_ranks, 1);
}

TEST(all_values_are_taken)
{
    zero_simulate_options o;
    char words[512];
    take(&o,
         RATES
         "--ranks 100 --stage 2 --tp 2 --slow 5:0.8,99:2 --adapter 25G --switch 16:2.5 "
         "--poll 2ms --memory-bandwidth 10G --simulated-steps 5 --trace t.json "
         "--trace-ranks 0-7,64,98-99 --memory-limit 1G --most-messages 2M --json",
         words);
    const zero_simulate_input *in = &o.request.input;
    const zero_trace_ranks *traced = &o.traced;
    assert_int_equal(in->n_slow, 2);
    assert_true(in->slow[0].rank == 5 && in->slow[0].factor == 0.8);
    assert_true(in->slow[1].rank == 99 && in->slow[1].factor == 2.0);
    assert_true(in->adapter == 25e9 && in->memory_bandwidth == 10e9);
    assert_true(in->switch_nodes == 16 && in->switch_ratio == 2.5);
    assert_true(in->poll == 2e-3 && in->steps == 5);
    assert_true(in->memory_limit == 1000000000 && in->most_messages == 2000000);
    assert_string_equal(o.trace, "t.json");
    assert_int_equal(traced->n, 3);
    assert_true(traced->range[0].first == 0 && traced->range[0].last == 7);
    assert_true(traced->range[1].first == 64 && traced->range[1].last == 64);
    assert_true(traced->range[2].first == 98 && traced->range[2].last == 99);
    assert_true(o.json && o.request.plan.n_ranks == 100);
    assert_true(o.request.plan.config.plan.stage == 2 &&
                o.request.plan.config.tp.ranks == 2);

    take(&o, RATES "--stage all --switch 4 --adapter 1G --memory-limit 0", words);
    assert_true(o.request.plan.all_stages && o.request.input.switch_ratio == 1.0);
    assert_true(o.request.input.memory_limit == INT64_MAX);

    take(&o, "--machine v100-dgx2 --ranks 4", words);
    assert_true(o.request.plan.has_file);
}

TEST(without_a_list_64_ranks_are_traced)
{
    zero_simulate_options o;
    char words[512];
    take(&o, RATES "--ranks 100 --trace t.json", words);
    assert_int_equal(o.traced.n, 1);
    assert_int_equal(o.traced.range[0].first, 0);
    assert_int_equal(o.traced.range[0].last, 63);
}

TEST(mistakes_name_the_option)
{
    static const char *const lines[][2] = {
        {"--ranks 4", "--network is missing"},
        {"--network 1us,1G", "--flops is missing"},
        {"--flops 1T", "--network is missing"},
        {"--network 1us --flops 1T", "--network 1us: expected LATENCY,BANDWIDTH"},
        {RATES "--ranks 4 --slow 4:0.5", "--slow: rank 4: --ranks 4 has ranks 0 to 3"},
        {RATES "--ranks 4 --slow 1:0", "--slow 1:0: expected RANK:FACTOR"},
        {RATES "--ranks 4 --slow 1:-0.5", "a factor from 0.001 to 1000"},
        {RATES "--ranks 4 --slow 1:0.0009", "a factor from 0.001 to 1000"},
        {RATES "--ranks 4 --slow 1:1001", "a factor from 0.001 to 1000"},
        {RATES "--ranks 4 --slow 1:nan", "a factor from 0.001 to 1000"},
        {RATES "--ranks 4 --slow -1:1", "expected RANK:FACTOR"},
        {RATES "--ranks 4 --slow 1", "expected RANK:FACTOR"},
        {RATES "--ranks 4 --slow 1:0.5,", "expected RANK:FACTOR"},
        {RATES "--ranks 4 --slow 1:0.5,1:0.6", "rank 1 is there twice"},
        {RATES "--ranks 64 --slow 0:1,1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1,9:1,10:1,11:1,12:1,"
               "13:1,14:1,15:1,16:1",
         "at most 16 ranks"},
        {RATES "--adapter 0", "--adapter 0"},
        {RATES "--adapter 1G --switch 0", "--switch 0: expected NODES[:RATIO]"},
        {RATES "--adapter 1G --switch 4:0.5", "an oversubscription from 1 on"},
        {RATES "--adapter 1G --switch 4:2,4", "expected NODES[:RATIO]"},
        {RATES "--poll soon", "--poll soon: expected a time"},
        {RATES "--poll -1ms", "expected a time from 0 on"},
        {RATES "--memory-bandwidth 0", "--memory-bandwidth 0"},
        {RATES "--simulated-steps 1",
         "--simulated-steps 1: expected a whole number from 2"},
        {RATES "--trace-ranks 0", "give --trace FILE as well"},
        {RATES "--trace t --stage all", "one stage"},
        {RATES "--ranks 4 --trace t --trace-ranks 0-4", "--ranks 4 has ranks 0 to 3"},
        {RATES "--ranks 4 --trace t --trace-ranks 3-1", "--trace-ranks 3-1: expected"},
        {RATES "--ranks 4 --trace t --trace-ranks 1,,2", "--trace-ranks 1,,2: expected"},
        {RATES "--collectives mpi", "--collectives mpi: MPI chooses its own messages"},
        {RATES "--device cuda", "--device cuda: copies to a device are not simulated"},
        {RATES "--disk 1G,1G", "--disk without --offload"},
        {RATES "--rank 1", "did you mean --ranks"},
        {RATES "--chart", "no such option"},
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        zero_simulate_options o;
        char words[512];
        assert_int_equal(parse(&o, lines[i][0], words), ZERO_ERR_INVALID);
        if (!strstr(zero_last_error(), lines[i][1]))
            fail_msg("%s: %s", lines[i][0], zero_last_error());
    }
}

int main(void)
{
    return run_here(NULL, NULL);
}
