/* Checkpoints of shared models, whose shards TP and ZeRO groups of any sizes wrote, are read into
 * groups of any others. */
#define TEST_HAS_MAIN
#include "support/shared_checkpoint.h"

#include <sys/types.h>

enum { TIMES = 4 }; /* tensors of several extents */

/* ---- what is read ---- */

static uint64_t bytes_read;

ssize_t __real_pread(int fd, void *data, size_t n, off_t at);
ssize_t __real_pread64(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *data, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *data, size_t n, off_t at)
{
    bytes_read += n;
    return __real_pread(fd, data, n, at);
}

ssize_t __wrap_pread64(int fd, void *data, size_t n, off_t at)
{
    bytes_read += n;
    return __real_pread64(fd, data, n, at);
}

/* ---- any groups ---- */

TEST(any_groups_read_what_any_others_wrote)
{
    for (size_t from = 0; from < COUNT(layouts); from++) {
        zero_model whole;
        int64_t times = from < 2 ? TIMES : 1; /* to save time */
        assert_ok(cut_model_describe_long(times, &whole));
        write_checkpoint(&whole, &layouts[from]);
        check_sound();
        for (size_t to = 0; to < COUNT(layouts); to++)
            for (int rank = 0; rank < layouts[to].n_ranks; rank++)
                check_part(&whole, &layouts[to], rank, false);
        zero_model_destroy(&whole);
    }
}

/* Also where a row of columns lies in four shards, or part of a rank's row in one. */
TEST(each_extent_is_read_once)
{
    const zero_state_layout wide = {ZERO_PARTITION_SLICE, 8, 4, 4, 0, 1, NULL},
                            alone = {ZERO_PARTITION_SLICE, 1, 1, 1, 0, 1, NULL};
    zero_model whole;
    assert_ok(cut_model_describe_long(TIMES, &whole));
    uint64_t data = (uint64_t)whole.n_params * ZERO_STATES * sizeof(float);
    const uint64_t headers = 1 << 20; /* and the manifest; extents are longer */
    write_checkpoint(&whole, &wide);
    bytes_read = 0;
    check_part(&whole, &alone, 0, true);
    assert_true(bytes_read > data && bytes_read < data + headers);

    write_checkpoint(&whole, &alone);
    bytes_read = 0;
    check_part(&whole, &wide, 3, true);
    assert_true(bytes_read < data + headers);
    zero_model_destroy(&whole);
}

TEST(whole_tensors_are_read_whatever_groups_wrote_them)
{
    zero_model whole;
    assert_ok(cut_model_describe(&whole));
    for (size_t from = 0; from < 4; from++) {
        write_checkpoint(&whole, &layouts[from]);
        zero_checkpoint c = open_step();
        for (int i = 0; i < whole.n_tensors; i++) {
            int64_t n = whole.tensors[i].rows * whole.tensors[i].cols, begin = n / 3;
            float *got = malloc((size_t)n * sizeof *got);
            assert_non_null(got);
            assert_ok(zero_checkpoint_tensor(&c, i, (ZERO_STATES - 1), begin, n, got));
            for (int64_t at = begin; at < n; at++)
                if (got[at - begin] != value(i, (ZERO_STATES - 1), at))
                    fail_msg("%s: element %lld", whole.tensors[i].name, (long long)at);
            free(got);
        }
        zero_checkpoint_close(&c);
    }
    zero_model_destroy(&whole);
}

/* ---- versions ---- */

static bool has_text(const char *text)
{
    zero_checkpoint c = open_step();
    bool has = find_text(c.text.bytes, c.text.len, text) != NULL;
    zero_checkpoint_close(&c);
    return has;
}

TEST(a_model_that_is_not_shared_is_written_as_version_1)
{
    zero_model whole;
    assert_ok(cut_model_describe(&whole));
    write_checkpoint(&whole, &layouts[5]);
    assert_true(has_text("\"version\": 1,") && !has_text("\"tp\""));
    assert_true(has_text("[\"h.qkv\",300,288,1]"));
    write_checkpoint(&whole, &layouts[0]);
    assert_true(has_text("\"version\": 2,"));
    assert_true(has_text("\"tp\": {\"size\":2,\"slices\":4}"));
    assert_true(has_text("[\"h.qkv\",300,288,1,\"cols\",3]"));
    assert_true(has_text("[\"h.proj\",96,733,1,\"rows\",1]"));
    assert_true(has_text("[\"h.gain\",1,96,1,\"none\",1]"));
    zero_model_destroy(&whole);
}

int main(void)
{
    return run_here(open_place, close_place);
}
