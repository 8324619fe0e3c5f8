/* --shard-ranks and --node-parameters: what a configuration makes of them, and what is refused. */
#include "support/test.h"

#include "support/options_test.h"

TEST(what_goes_together_is_taken)
{
    parsed o;
    const char *right[] = {"--shard-ranks 2 --partition slice --stage 0",
                           "--node-parameters --stage 3",
                           "--node-parameters --stage 3 --collectives shm --shard-ranks 4",
                           "--node-parameters --stage 3 --collectives hier",
                           "--node-parameters=off --stage 1 --collectives p2p"};
    for (size_t i = 0; i < COUNT(right); i++) {
        accepted(right[i], &o);
        if (zero_config_check(&o.config) != ZERO_OK)
            fail_msg("%s: %s", right[i], zero_last_error());
    }
}

/* `line` for a number of ranks. */
static zero_status complete(const char *line, int n_ranks, parsed *o)
{
    accepted(line, o);
    return zero_config_complete(&o->config, n_ranks);
}

TEST(a_plan_shards_over_as_many_ranks_as_are_asked_for)
{
    const struct {
        const char *line;
        int n_ranks, shard_ranks;
    } right[] = {
        {"", 6, 6},
        {"--shard-ranks 6", 6, 6}, /* all, though no power of two */
        {"--shard-ranks 2", 6, 2},
        {"--shard-ranks 1 --stage 3", 4, 1},
        {"--shard-ranks 4 --tp 2 --stage 3 --node-parameters", 16, 4},
    };
    for (size_t i = 0; i < COUNT(right); i++) {
        parsed o;
        zero_model none = {.n_groups = 0};
        if (complete(right[i].line, right[i].n_ranks, &o) != ZERO_OK)
            fail_msg("%s: %s", right[i].line, zero_last_error());
        assert_int_equal(zero_config_shard_ranks(&o.config), right[i].shard_ranks);
        zero_plan_input in = o.config.plan;
        in.model = &none;
        zero_config_plan(&o.config, &in);
        assert_int_equal(in.shard_ranks, right[i].shard_ranks);
        assert_int_equal(in.node_parameters, o.config.plan.node_parameters);
        assert_int_equal(in.n_ranks, o.config.plan.n_ranks);
    }
}

/* A checkpoint names them, and ranks must be given them alike. */
TEST(they_are_part_of_a_runs_identity)
{
    parsed plain, hybrid;
    accepted("--stage 3", &plain);
    accepted("--stage 3 --shard-ranks 2 --node-parameters", &hybrid);
    assert_true(zero_run_options_fingerprint(&plain.config) !=
                zero_run_options_fingerprint(&hybrid.config));
    json_t *a = zero_run_options_identity(&plain.config);
    json_t *b = zero_run_options_identity(&hybrid.config);
    assert_null(json_object_get(a, "shard-ranks"));
    assert_string_equal(json_string_value(json_object_get(b, "shard-ranks")), "2");
    assert_string_equal(json_string_value(json_object_get(a, "node-parameters")), "off");
    assert_string_equal(json_string_value(json_object_get(b, "node-parameters")), "on");
    json_decref(a);
    json_decref(b);
}

/* The options of a run that was saved before there were groups of ranks. */
static const char *const first_options[] = {"model",
                                            "layers",
                                            "hidden",
                                            "heads",
                                            "seq",
                                            "dropout",
                                            "backend",
                                            "data",
                                            "tokenizer",
                                            "shuffle",
                                            "seed",
                                            "steps",
                                            "global-batch",
                                            "micro-batch",
                                            "lr",
                                            "lr-min",
                                            "warmup",
                                            "beta1",
                                            "beta2",
                                            "eps",
                                            "weight-decay",
                                            "clip",
                                            "eval-every",
                                            "eval-batches",
                                            "eval-random",
                                            "stage",
                                            "bucket",
                                            "dtype",
                                            "partition",
                                            "prefetch",
                                            "persist",
                                            "overlap",
                                            "reproducible",
                                            "recompute",
                                            "collectives",
                                            "offload-when",
                                            "offload-parameters",
                                            "offload-activations",
                                            "offload-depth"};

static bool is_first(const char *name)
{
    for (size_t i = 0; i < COUNT(first_options); i++)
        if (strcmp(first_options[i], name) == 0) return true;
    return false;
}

/* Resuming such a run with the defaults changes nothing, and no change is told. */
TEST(defaults_of_later_options_are_what_older_runs_did)
{
    parsed o;
    const char *key;
    json_t *value;
    int later = 0;
    accepted("", &o);
    assert_ok(zero_config_complete(&o.config, 1));
    json_t *now = zero_run_options_identity(&o.config);
    json_object_foreach(now, key, value)
    {
        if (is_first(key)) continue;
        if (!zero_run_options_is_as_ever(key, json_string_value(value)))
            fail_msg("--%s %s is told as a change", key, json_string_value(value));
        assert_false(zero_run_options_is_as_ever(key, "2"));
        assert_false(zero_run_options_is_as_ever(key, "on"));
        later++;
    }
    assert_int_equal(later, 14);
    assert_false(zero_run_options_is_as_ever("recompute", "off"));
    json_decref(now);
}
