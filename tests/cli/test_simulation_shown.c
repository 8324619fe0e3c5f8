/* Pictures of a simulation whose numbers are set by hand: text, JSON. */
#include "support/laws.h"

#include "base/fail.h"
#include "cli/simulate_options.h"

static const zero_simulated example = {
    .step = 2.0,
    .slowest = 1,
    .of_slowest = {2.0, 1.0, 0.5, 0.25, 0.125, 0.0625},
    .mean = {2.0, 0.75, 0.5, 0.25, 0.375, 0.125},
    .busiest = {ZERO_LINK_NODE_IN, 3, 0.5, 2048},
    .messages = 10,
    .events = 20,
    .plan = {.step = 1.6, .compute = 1.5, .exposed = 0.1},
};

/* A report with the plan of a line of options, and these results for all stages. */
static void make(const char *line, const zero_simulated *results, zero_simulate_options *o,
                 char *words, zero_simulation_report *r)
{
    zero_options given; /* no files */
    char *argv[32];
    int argc = 0;
    snprintf(words, 512, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    assert_ok(zero_options_read(&zero_command_simulate, argc, argv, o, &given));
    *r = (zero_simulation_report){.request = o->request, .input = o->request.input};
    r->request.plan.simulated = true;
    assert_ok(zero_plan_report_make(&r->plan, &r->request.plan));
    r->input.machine = r->plan.request.machine;
    r->results = calloc((size_t)r->plan.n, sizeof *r->results);
    assert_non_null(r->results);
    for (int k = 0; k < r->plan.n; k++) r->results[k] = *results;
}

/* Returns the printed text, which the caller frees. */
static char *text_of(const zero_simulation_report *r, bool json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_ok(zero_simulation_show(r, json, out));
    fclose(out);
    return text;
}

#define RATES "--network 1us,12.5G --flops 1T --vocab 256 "

TEST(the_json_has_every_number)
{
    zero_simulate_options o;
    zero_simulation_report r;
    char words[512];
    make(RATES "--ranks 8 --fake-nodes 4 --stage 3 --slow 5:0.8 --adapter 2G --switch 2:4 "
               "--poll 1ms --memory-bandwidth 3G --json",
         &example, &o, words, &r);
    char *text = text_of(&r, true);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    LAWS(root, "ranks == 8 && nodes == 4 && !rank && !memory_limit",
         "simulation/slow/0/rank == 5 && simulation/slow/0/factor == 0.8",
         "simulation/steps == 2 && simulation/poll_seconds == 1e-3",
         "simulation/adapter_bytes_per_second == 2e9",
         "simulation/memory_bytes_per_second == 3e9",
         "simulation/switch_nodes == 2 && simulation/switch_ratio == 4",
         "stages/0/stage == 3 && stages/0/simulated_step_seconds == 2",
         "stages/0/simulated_tokens_per_second == tokens_per_step / 2",
         "stages/0/slowest_rank == 1 && stages/0/messages == 10 && stages/0/events == 20",
         "stages/0/of_slowest_rank/step_seconds == 2",
         "stages/0/of_slowest_rank/compute_seconds == 1",
         "stages/0/of_slowest_rank/sums_seconds == 0.5",
         "stages/0/of_slowest_rank/exposed_seconds == 0.25",
         "stages/0/of_slowest_rank/waiting_seconds == 0.125",
         "stages/0/of_slowest_rank/disk_seconds == 0.0625",
         "stages/0/mean_of_ranks/step_seconds == 2",
         "stages/0/mean_of_ranks/compute_seconds == 0.75",
         "stages/0/mean_of_ranks/sums_seconds == 0.5",
         "stages/0/mean_of_ranks/exposed_seconds == 0.25",
         "stages/0/mean_of_ranks/waiting_seconds == 0.375",
         "stages/0/mean_of_ranks/disk_seconds == 0.125",
         "stages/0/busiest_link/kind == \"adapter_in\" && stages/0/busiest_link/which == 3",
         "stages/0/busiest_link/busy_seconds == 0.5 && stages/0/busiest_link/bytes == 2048",
         "stages/0/busiest_link/busy_share == 0.25",
         "stages/0/alpha_beta/step_seconds == 1.6",
         "stages/0/simulated_to_alpha_beta == 2 / 1.6");
    json_decref(root);
    free(text);
    zero_simulation_report_destroy(&r);
}

TEST(what_limits_nothing_is_left_out)
{
    zero_simulated alone = example;
    zero_simulate_options o;
    zero_simulation_report r;
    char words[512];
    alone.busiest.busy = 0.0;
    make(RATES "--stage all", &alone, &o, words, &r);
    char *text = text_of(&r, true);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    LAWS(root, "count(stages) == 4 && count(simulation) == 3 && stages/3/stage == 3");
    assert_true(json_is_null(zero_fact_at(root, "stages/3/busiest_link")));
    json_decref(root);
    free(text);

    text = text_of(&r, false);
    assert_non_null(strstr(text, "simulated, seconds (step 2 of 2)"));
    assert_non_null(strstr(text, "none was used"));
    assert_null(strstr(text, "adapters"));
    assert_null(strstr(text, "this is rank"));
    free(text);
    zero_simulation_report_destroy(&r);
}

TEST(the_text_has_the_slowest_rank_and_the_busiest_link)
{
    static const char *const lines[] = {
        "simulated      2 s per step; ",
        "rank 1:        compute 1 + sums 0.5 + exposed 0.25 + waiting 0.125\n",
        "mean of ranks: compute 0.75 + sums 0.5 + exposed 0.25 + waiting 0.375\n",
        "alpha-beta     1.6 s per step = compute 1.5 + exposed 0.1\n",
        "simulated / alpha-beta = 1.2500",
        "slowest rank   1: it waits least",
        "adapter of node 3, in: busy for 25.0 % of the step, 2.00 KiB",
        "messages       10, 20 events in 2 steps",
        "rank 5: 0.8 times that",
    };
    zero_simulate_options o;
    zero_simulation_report r;
    char words[512];
    make(RATES "--ranks 8 --slow 5:0.8", &example, &o, words, &r);
    char *text = text_of(&r, false);
    for (size_t k = 0; k < COUNT(lines); k++)
        if (!strstr(text, lines[k])) fail_msg("no '%s' in\n%s", lines[k], text);
    free(text);
    zero_simulation_report_destroy(&r);
}

TEST(every_link_has_a_name)
{
    static const char *const names[] = {"rank 3, out: busy",
                                        "rank 3, in: busy",
                                        "rank 3, out, within its node: busy",
                                        "rank 3, in, within its node: busy",
                                        "adapter of node 3, out: busy",
                                        "adapter of node 3, in: busy",
                                        "uplink of switch 3, up: busy",
                                        "uplink of switch 3, down: busy"};
    for (int k = 0; k <= ZERO_LINK_SWITCH_DOWN; k++) {
        zero_simulate_options o;
        zero_simulation_report r;
        zero_simulated results = example;
        char words[512];
        results.busiest.kind = (zero_link_kind)k;
        make(RATES "--ranks 8", &results, &o, words, &r);
        char *text = text_of(&r, false);
        if (!strstr(text, names[k])) fail_msg("no '%s' in\n%s", names[k], text);
        free(text);
        zero_simulation_report_destroy(&r);
    }
}
