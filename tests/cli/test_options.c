#define TEST_HAS_MAIN
#include "support/table.h"

#include "cli/prompts.h"
#include "facts/facts.h"
#include "support/options_test.h"

#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "test_options.json"

static void write_file(const char *text)
{
    FILE *file = fopen(FILE_NAME, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST(without_options_everything_is_default)
{
    parsed o;
    accepted("", &o);
    const zero_config *c = &o.config;
    assert_string_equal(c->model, "tiny");
    assert_string_equal(c->backend, "cpu");
    assert_string_equal(c->data, "stories");
    assert_string_equal(c->progress, "auto");
    assert_true(!c->tokenizer && !c->metrics && !c->shuffle);
    assert_true(c->shape.layers == 0 && c->shape.hidden == 0 && c->shape.heads == 0 &&
                c->shape.seq == 0);
    assert_true(c->shape.vocab == 0 && c->steps == -1 && c->global_batch == 0 &&
                c->plan.micro_batch == 0);
    assert_true(c->warmup == -1 && c->eval_every == -1 && c->eval_batches == 0);
    assert_true(c->lr == -1.0 && c->lr_min == -1.0 && c->dropout == 0.0);
    assert_true(c->beta1 < 0.0 && c->beta2 < 0.0 && c->eps == 1e-8); /* the optimizer's */
    assert_true(c->weight_decay == 0.1 && c->clip == 1.0);
    assert_true(c->seed == 1337 && c->plan.stage == 0 && c->plan.bucket == 0 &&
                !c->bucket_grows && c->plan.threads == 0);
    assert_true(c->log_every == 0 && c->sample == -1);
    for (int i = 0; i < ZERO_OPTIONS_MOST; i++) assert_false(o.given.set[i]);
    zero_options_destroy(&o.given);
}

TEST(both_forms_of_an_option_mean_the_same)
{
    parsed a, b;
    accepted("--steps 7 --lr 3e-4 --data x=y --shuffle --progress none --seed 5", &a);
    accepted("--steps=7 --lr=3e-4 --data=x=y --shuffle=on --progress=none --seed=5", &b);
    assert_true(a.config.steps == 7 && b.config.steps == 7);
    assert_true(a.config.lr == 3e-4 && b.config.lr == 3e-4);
    assert_string_equal(b.config.data, "x=y");
    assert_string_equal(b.config.progress, "none");
    assert_true(a.config.shuffle && b.config.shuffle);
    assert_memory_equal(a.given.set, b.given.set, sizeof a.given.set);
    assert_true(zero_options_is_set(&a.given, "steps") &&
                !zero_options_is_set(&a.given, "stage"));
    accepted("--shuffle=off --lr 0 --warmup 0", &a);
    assert_true(!a.config.shuffle && a.config.lr == 0.0 && a.config.warmup == 0);
}

TEST(suffixes_are_decimal)
{
    parsed o;
    accepted("--bucket 64K --steps 3M --vocab 2M --seed 9223372036854775807", &o);
    assert_true(o.config.plan.bucket == 64000 && o.config.steps == 3000000);
    assert_true(o.config.shape.vocab == 2000000 && o.config.seed == INT64_MAX);
}

TEST(binary_suffixes_are_powers_of_1024)
{
    parsed o;
    accepted("--bucket 64KiB --steps 3MiB --memory-limit 16GiB --persist 0TiB", &o);
    assert_true(o.config.plan.bucket == 65536 && o.config.steps == 3145728);
    assert_true(o.config.memory_limit == INT64_C(17179869184));
    accepted("--memory-limit 8GB --bucket 1.5K", &o);
    assert_true(o.config.memory_limit == INT64_C(8000000000) &&
                o.config.plan.bucket == 1500);
}

TEST(tp_is_taken_before_ranks_are_known)
{
    parsed o;
    accepted("--tp 4 --tp-slices 8 --tp-across-nodes --heads 8", &o);
    assert_true(o.config.tp.ranks == 4 && o.config.tp.across_nodes);
    assert_ok(zero_config_check(&o.config));
}

/* Rows: ranks (0: they are not known yet), the line, and two parts of the message. */
TEST(contradictions_are_refused_with_what_to_give)
{
    for (test_table t = table_open("cli/refused_configs.txt"); table_next(&t);) {
        parsed o;
        const int n_ranks = atoi(t.field[0]);
        zero_status st = parse(t.field[1], &o);
        if (st == ZERO_OK)
            st = n_ranks > 0 ? zero_config_complete(&o.config, n_ranks)
                             : zero_config_check(&o.config);
        assert_int_equal(st, ZERO_ERR_INVALID);
        must_contain(t.field[1], t.field[2]);
        must_contain(t.field[1], t.field[3]);
    }
    assert_int_equal(zero_exit_code(ZERO_ERR_INVALID), 2);
}

TEST(the_last_one_of_an_option_given_more_than_once_counts)
{
    parsed o;
    accepted("--steps 5 --lr=1 --steps=7 --shuffle --steps 6 --shuffle=off", &o);
    assert_true(o.config.steps == 6 && o.config.lr == 1.0 && !o.config.shuffle);
    accepted("--steps none --steps 6", &o);
    assert_true(o.config.steps == 6);
    write_file("{\"steps\": 9, \"seed\": 4}");
    accepted("--config " FILE_NAME " --steps 5 --steps 6", &o);
    assert_true(o.config.steps == 6 && o.config.seed == 4);
    zero_options_destroy(&o.given);
    remove(FILE_NAME);
}

/* Conditions of idle options are expressions, and ask for nothing but options and facts of
 * a run. */
static int check_idle(const zero_option *rows, const void *values)
{
    int n = 0;
    json_t *run = zero_options_typed(rows, values);
    static const char *const facts[] = {"ranks", "over", "shards", "nodes"};
    for (size_t i = 0; i < 4; i++) json_object_set_new(run, facts[i], json_integer(1));
    json_object_set_new(run, "used", json_string("shm"));
    for (const zero_option *row = rows; row->name; row++) {
        for (size_t i = 0; i < sizeof row->idle / sizeof row->idle[0]; i++, n++) {
            const char *when = row->idle[i].when;
            zero_fact fact;
            if (!when) break;
            assert_non_null(row->idle[i].words);
            assert_ok(zero_fact_of(when, strlen(when), &(zero_scope){.node = run}, &fact));
            for (const char *at = when; *at; at += strcspn(at, " !()"), at += *at != 0) {
                char name[64];
                snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " !()"), at);
                if (name[0] >= 'a' && name[0] <= 'z' && !json_object_get(run, name))
                    fail_msg("--%s: '%s' asks for %s", row->name, when, name);
            }
        }
    }
    json_decref(run);
    return n;
}

TEST(conditions_of_idle_options_ask_for_what_is_there)
{
    zero_config config;
    zero_generate_options options;
    zero_options_reset(&zero_command_train, &config);
    zero_options_reset(&zero_command_generate, &options);
    assert_true(check_idle(zero_run_options, &config) > 20);
    assert_true(check_idle(zero_generate_table.rows, &options) > 5);
}

TEST(flags_win_over_the_file_whatever_the_order)
{
    parsed o;
    write_file(
        "{\"steps\": 10, \"model\": \"gpt2\", \"shuffle\": true, \"bucket\": \"200K\",\n"
        " \"lr\": 0.25, \"clip\": 2, \"seq\": 64.0, \"stage\": 2, \"tp\": 2,\n"
        " \"sample\": \"x\"}");
    const char *lines[] = {
        "--config " FILE_NAME " --steps 20 --stage 0 --tp 1 --shuffle=off --sample 3",
        "--steps=20 --stage 0 --shuffle=off --tp 1 --config=" FILE_NAME " --sample 3"};
    for (int i = 0; i < 2; i++) {
        accepted(lines[i], &o);
        assert_true(o.config.steps == 20 && o.config.plan.stage == 0 && !o.config.shuffle);
        assert_true(o.config.plan.bucket == 200000 && o.config.lr == 0.25 &&
                    o.config.clip == 2.0);
        assert_true(o.config.shape.seq == 64 && o.config.sample == 3 &&
                    o.config.tp.ranks == 1);
        assert_string_equal(o.config.model, "gpt2");
        assert_true(zero_options_is_set(&o.given, "bucket") &&
                    !zero_options_is_set(&o.given, "beta1"));
        zero_options_destroy(&o.given);
    }
    accepted("--sample 3 --config " FILE_NAME, &o);
    assert_true(o.config.tp.ranks == 2 && o.config.tp.slices == 0);
    zero_options_destroy(&o.given);
}

TEST(a_file_and_flags_give_the_same_bits)
{
    parsed file, flags;
    write_file(
        "{\"lr\": 0.1, \"eps\": 1e-8, \"beta2\": 0.95, \"dropout\": 0.12345678901234567}");
    accepted("--config " FILE_NAME, &file);
    accepted("--lr 0.1 --eps 1e-8 --beta2 0.95 --dropout 0.12345678901234567", &flags);
    assert_true(file.config.lr == flags.config.lr && file.config.eps == flags.config.eps);
    assert_true(file.config.beta2 == flags.config.beta2);
    assert_true(file.config.dropout == flags.config.dropout);
    zero_options_destroy(&file.given);
}

/* Rows: the line, or the file, and two parts of the message. */
TEST(mistakes_are_refused_with_the_option_and_what_is_expected)
{
    for (test_table t = table_open("cli/refused_options.txt"); table_next(&t);)
        refused(ZERO_ERR_INVALID, t.field[0], t.field[1], t.field[2]);
}

TEST(mistakes_in_a_file_are_refused_with_their_place)
{
    for (test_table t = table_open("cli/refused_files.txt"); table_next(&t);) {
        write_file(t.field[0]);
        refused(ZERO_ERR_INVALID, "--config " FILE_NAME, t.field[1], t.field[2]);
    }
}

TEST(a_pipe_or_a_huge_file_as_configuration_is_refused_at_once)
{
    assert_int_equal(mkfifo(FILE_NAME ".pipe", 0600), 0);
    refused(ZERO_ERR_INVALID, "--config " FILE_NAME ".pipe", "regular file", "pipe");
    assert_int_equal(unlink(FILE_NAME ".pipe"), 0);
    write_file("{}");
    assert_int_equal(truncate(FILE_NAME, (64 << 20) + 1), 0);
    refused(ZERO_ERR_INVALID, "--config " FILE_NAME, "at most 67108864 bytes", "67108865");
    write_file("{}");
}

/* Only these rows are kept in checkpoints and named where a resumed run differs. */
TEST(a_runs_identity_is_what_decides_its_numbers)
{
    parsed o;
    accepted("--steps 7 --lr 0.5 --checkpoint d --metrics m --watchdog 5 --keep 3", &o);
    json_t *values = zero_run_options_identity(&o.config);
    assert_string_equal(json_string_value(json_object_get(values, "steps")), "7");
    assert_string_equal(json_string_value(json_object_get(values, "lr")), "0.5");
    assert_string_equal(json_string_value(json_object_get(values, "overlap")), "on");
    assert_string_equal(json_string_value(json_object_get(values, "tp")), "1");
    assert_null(json_object_get(values, "layers")); /* the preset's */
    const char *others[] = {"checkpoint", "keep",     "resume", "metrics", "log-every",
                            "progress",   "watchdog", "check",  "config"};
    for (size_t i = 0; i < COUNT(others); i++)
        assert_null(json_object_get(values, others[i]));
    json_decref(values);
}

/* Data are compared by content, and each node has its own memory and files. */
TEST(ranks_may_differ_in_what_is_theirs_alone)
{
    parsed a, b;
    accepted("--steps 7", &a);
    const char *same[] = {"--data x",        "--tokenizer byte",   "--memory-limit 1G",
                          "--threads 2",     "--metrics m",        "--log-every 9",
                          "--progress none", "--progress-thread 1"};
    const char *other[] = {"--lr 0.5",       "--model gpt2", "--stage 1",
                           "--checkpoint d", "--shuffle",    "--collectives p2p",
                           "--sample 3",     "--tp 2",       "--tp-slices 2"};
    uint64_t hash = zero_run_options_fingerprint(&a.config);
    for (size_t i = 0; i < COUNT(same); i++) {
        char line[64];
        snprintf(line, sizeof line, "--steps 7 %s", same[i]);
        accepted(line, &b);
        assert_true(zero_run_options_fingerprint(&b.config) == hash);
    }
    for (size_t i = 0; i < COUNT(other); i++) {
        char line[64];
        snprintf(line, sizeof line, "--steps 7 %s", other[i]);
        accepted(line, &b);
        assert_true(zero_run_options_fingerprint(&b.config) != hash);
    }
}

static int remove_file(void **state)
{
    (void)state;
    unlink(FILE_NAME);
    return 0;
}

int main(void)
{
    return run_here(NULL, remove_file);
}
