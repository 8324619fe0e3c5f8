

#include "support/table.h"

#include "train/metrics_read.h"

#define PATH "test_metrics_read.jsonl"

#define RUN(done, name) \
    "{\"run\": {\"resumed_step\": " #done ", \"commit\": \"" name "\"}}\n"
#define STEP(n, loss) "{\"step\": " #n ", \"loss\": " #loss "}\n"
#define FINAL(digest) "{\"final\": true, \"digest\": \"" digest "\"}\n"

static zero_status read_text(const char *text, zero_metrics_file *file)
{
    FILE *out = fopen(PATH, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    zero_status st = zero_metrics_read(file, PATH);
    remove(PATH);
    return st;
}

/* The file has the steps 1, 2, ... with these losses. */
static void expect_losses(const zero_metrics_file *file, int n, const double *losses)
{
    assert_int_equal(file->n, n);
    for (int i = 0; i < n; i++) {
        json_t *step;
        assert_int_equal(file->steps[i].step, i + 1);
        assert_ok(zero_metrics_step_at(file, i, &step));
        assert_true(json_real_value(json_object_get(step, "loss")) == losses[i]);
        json_decref(step);
    }
}

static void expect_commit(const zero_metrics_file *file, const char *commit)
{
    assert_string_equal(json_string_value(json_object_get(file->run, "commit")), commit);
}

TEST(a_whole_run_has_its_steps_and_its_end)
{
    zero_metrics_file file;
    assert_ok(read_text(RUN(0, "a") STEP(1, 3.5) STEP(2, 2.5) FINAL("00"), &file));
    expect_losses(&file, 2, (double[]){3.5, 2.5});
    expect_commit(&file, "a");
    assert_non_null(file.final);
    zero_metrics_file_destroy(&file);
}

TEST(the_last_of_steps_taken_again_count)
{
    zero_metrics_file file;
    assert_ok(read_text(RUN(0, "a") STEP(1, 5.5) STEP(2, 4.5) STEP(3, 3.5) FINAL("00")
                            RUN(1, "b") STEP(2, 2.5),
                        &file));
    expect_losses(&file, 2, (double[]){5.5, 2.5});
    expect_commit(&file, "b");
    assert_null(file.final);
    zero_metrics_file_destroy(&file);
    assert_ok(read_text(RUN(0, "a") STEP(1, 5.5) STEP(2, 4.5) RUN(1, "b"), &file));
    expect_losses(&file, 1, (double[]){5.5});
    zero_metrics_file_destroy(&file);
}

TEST(half_a_line_of_a_killed_run_is_left_out)
{
    zero_metrics_file file;
    assert_ok(read_text(STEP(1, 1.5) "{\"step\": 2, \"lo", &file));
    expect_losses(&file, 1, (double[]){1.5});
    assert_null(file.run);
    zero_metrics_file_destroy(&file);
    assert_ok(read_text(STEP(1, 1.5) "{\"st\n" RUN(1, "a") STEP(2, 2.5), &file));
    expect_losses(&file, 2, (double[]){1.5, 2.5});
    zero_metrics_file_destroy(&file);
}

TEST(other_files_are_refused_with_their_line)
{
    zero_metrics_file file;
    for (test_table t = table_open("train/not_metrics.txt"); table_next(&t);) {
        assert_fails(read_text(t.field[0], &file), ZERO_ERR_FORMAT, t.field[1]);
        assert_told(PATH);
    }
    assert_int_equal(zero_metrics_read(&file, "nosuch.jsonl"), ZERO_ERR_IO);
}
