/* The options of `zero simulate`: lists, rates, what is refused. */

#include "support/table.h"

#include "base/fail.h"
#include "cli/simulate_options.h"

#define RATES "--network 1us,12.5G --flops 1T "

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
    for (test_table t = table_open("cli/refused_simulations.txt"); table_next(&t);) {
        zero_simulate_options o;
        char words[512];
        assert_fails(parse(&o, t.field[0], words), ZERO_ERR_INVALID, t.field[1]);
    }
}
