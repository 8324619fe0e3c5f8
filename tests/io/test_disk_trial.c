/* A disk's trial gives rates and leaves nothing; blocks are moved as asked and keep their bytes. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "io/disk_trial.h"

#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/magic.h>

#include "io/scratch_place.h"
#include "support/disk_place.h"
#include "support/refused_call.h"

#define BLOCKS 7

enum { GOOD, BAD, NO_SECCOMP = 77 };

static char place[] = "zero_test_trial_XXXXXX";
static char *block;

static zero_scratch_file opened(void)
{
    zero_scratch_file file;
    zero_status st = zero_scratch_file_open(place, BLOCKS * ZERO_DISK_BLOCK, &file);
    assert_ok(st);
    return file;
}

static zero_disk_moved moved_by(const zero_scratch_file *file, zero_disk_load load)
{
    zero_disk_moved moved;
    assert_ok(zero_disk_move(file, &load, &moved));
    assert_true(moved.seconds > 0.0);
    return moved;
}

/* ---- moving ---- */

TEST(each_block_is_moved_once)
{
    zero_scratch_file file = opened();
    for (int threads = 1; threads <= BLOCKS; threads += 2) {
        zero_disk_load load = {.n_blocks = BLOCKS, .threads = threads, .seconds = INFINITY};
        uint64_t all = BLOCKS * ZERO_DISK_BLOCK;
        load.work = ZERO_DISK_WRITE;
        assert_int_equal(moved_by(&file, load).bytes, all);
        load.work = ZERO_DISK_READ;
        assert_int_equal(moved_by(&file, load).bytes, all);
        load.work = ZERO_DISK_MIXED;
        assert_int_equal(moved_by(&file, load).bytes, 2 * all);
    }
    assert_int_equal(disk_place_names(place), 0);
    zero_scratch_file_close(&file);
}

TEST(a_limit_of_time_leaves_each_thread_a_block)
{
    zero_scratch_file file = opened();
    zero_disk_load load = {
        .work = ZERO_DISK_WRITE, .n_blocks = BLOCKS, .threads = 3, .seconds = 0.0};
    assert_int_equal(moved_by(&file, load).bytes, 3 * ZERO_DISK_BLOCK);
    load.repeats = true;
    assert_int_equal(moved_by(&file, load).bytes, 3 * ZERO_DISK_BLOCK);
    load.seconds = 0.05;
    zero_disk_moved moved = moved_by(&file, load);
    assert_true(moved.seconds >= 0.05);
    assert_int_equal(moved.bytes % ZERO_DISK_BLOCK, 0);
    zero_scratch_file_close(&file);
}

TEST(reading_and_writing_keeps_the_bytes)
{
    zero_scratch_file file = opened();
    for (size_t b = 0; b < BLOCKS; b++) {
        memset(block, 'a' + (int)b, ZERO_DISK_BLOCK);
        assert_ok(
            zero_scratch_file_write(&file, b * ZERO_DISK_BLOCK, block, ZERO_DISK_BLOCK));
    }
    zero_disk_load load = {
        .work = ZERO_DISK_MIXED, .n_blocks = BLOCKS, .threads = 2, .seconds = INFINITY};
    moved_by(&file, load);
    for (size_t b = 0; b < BLOCKS; b++) {
        assert_ok(
            zero_scratch_file_read(&file, b * ZERO_DISK_BLOCK, block, ZERO_DISK_BLOCK));
        for (size_t i = 0; i < ZERO_DISK_BLOCK; i++)
            if (block[i] != 'a' + (int)b) fail_msg("block %zu, byte %zu", b, i);
    }
    zero_scratch_file_close(&file);
}

TEST(wrong_loads_are_refused)
{
    zero_disk_moved moved;
    zero_scratch_file file = opened();
    const zero_disk_load wrong[] = {
        {.n_blocks = BLOCKS, .threads = 0, .seconds = 1.0},
        {.n_blocks = BLOCKS, .threads = ZERO_DISK_THREADS + 1, .seconds = 1.0},
        {.n_blocks = BLOCKS, .threads = BLOCKS + 1, .seconds = 1.0},
        {.n_blocks = BLOCKS + 1, .threads = 2, .seconds = 1.0},
        {.n_blocks = BLOCKS, .threads = 2, .seconds = -1.0},
        {.n_blocks = BLOCKS, .threads = 2, .seconds = NAN},
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        if (zero_disk_move(&file, &wrong[i], &moved) != ZERO_ERR_INVALID)
            fail_msg("load %zu", i);
    zero_scratch_file_close(&file);
}

/* ---- the trial ---- */

TEST(a_trial_gives_rates_and_leaves_nothing)
{
    zero_disk_rates rates;
    assert_ok(zero_disk_trial(place, &rates));
    assert_true(rates.read > 0.0 && rates.write > 0.0 && rates.mixed > 0.0);
    assert_true(isfinite(rates.read) && isfinite(rates.write) && isfinite(rates.mixed));
    assert_true(rates.bytes >= ZERO_DISK_LEAST_BLOCKS * ZERO_DISK_BLOCK);
    assert_true(rates.bytes <= ZERO_DISK_TRIAL_BLOCKS * ZERO_DISK_BLOCK);
    assert_int_equal(disk_place_names(place), 0);
}

static void expect_refusal(const char *directory, zero_status status, const char *text)
{
    zero_disk_rates rates;
    zero_scratch_place found;
    assert_int_equal(zero_scratch_place_read(directory, &found), status);
    assert_told(text);
    assert_int_equal(zero_disk_trial(directory, &rates), status);
    assert_told(text);
}

TEST(wrong_directories_are_refused)
{
    struct statfs fs;
    if (statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC)
        expect_refusal("/dev/shm", ZERO_ERR_INVALID, "/dev/shm lies in memory (tmpfs)");
    expect_refusal("no/such/directory", ZERO_ERR_ENV, "No such file or directory");
    expect_refusal("/proc/self/exe", ZERO_ERR_ENV, "Not a directory");
}

/* In a child whose kernel refuses a call. */
static int meet_an_error(refused_call refused, const char *text)
{
    zero_disk_rates rates;
    if (!refuse_call(refused)) return NO_SECCOMP;
    if (zero_disk_trial(place, &rates) != ZERO_ERR_ENV) return BAD;
    if (!strstr(zero_last_error(), text)) {
        printf("expected '%s' in: %s\n", text, zero_last_error());
        return BAD;
    }
    return disk_place_names(place) == 0 ? GOOD : BAD;
}

TEST(an_error_of_the_disk_ends_a_trial)
{
    const uint32_t at = 5 * (uint32_t)ZERO_DISK_BLOCK;
    const struct {
        refused_call refused;
        const char *text;
    } cases[] = {
        {{SYS_pwrite64, 3, UINT32_MAX, at, EIO}, "cannot be written at byte 15728640"},
        {{SYS_pread64, 3, UINT32_MAX, at, EIO}, "cannot be read at byte 15728640"},
    };
    for (int i = 0; i < 2; i++) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int result = meet_an_error(cases[i].refused, cases[i].text);
            fflush(stdout);
            _exit(result);
        }
        assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
        if (WEXITSTATUS(status) == NO_SECCOMP) skip();
        if (WEXITSTATUS(status) != GOOD) fail_msg("case %d", i);
    }
}

/* ---- the place ---- */

TEST(a_place_says_what_it_can_do)
{
    zero_scratch_place found;
    zero_scratch_file file = opened();
    assert_ok(zero_scratch_place_read(place, &found));
    assert_int_equal(found.file.is_direct, file.is_direct);
    assert_int_equal(found.file.had_no_name, file.had_no_name);
    assert_int_equal(found.file.memory_align, file.memory_align);
    assert_false(found.file.is_open);
    assert_true(found.bytes_free > 0);
    if (access("/proc/self/mountinfo", R_OK) == 0)
        assert_true(strlen(found.file_system) > 0);
    assert_int_equal(disk_place_names(place), 0);
    zero_scratch_file_close(&file);
}

/* ---- setting up ---- */

static int set_up(void **state)
{
    (void)state;
    if (!disk_place_make(place)) return -1;
    return posix_memalign((void **)&block, ZERO_SCRATCH_ALIGN, ZERO_DISK_BLOCK);
}

static int tear_down(void **state)
{
    (void)state;
    free(block);
    return rmdir(place); /* fails if anything was left */
}

int main(void)
{
    return run_here(set_up, tear_down);
}
