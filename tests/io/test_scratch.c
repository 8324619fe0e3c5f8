/* A scratch file returns what was written, names what a disk got wrong, and leaves nothing. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "io/scratch.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <fcntl.h>
#include <linux/magic.h>

#include "support/disk_place.h"

#define BLOCKS 24
#define DEPTH  4

static char place[] = "zero_test_scratch_XXXXXX";
static size_t bytes_of[BLOCKS];
static size_t offset_of[BLOCKS + 1];
static char *slot[DEPTH];
static char *expected; /* [offset_of[BLOCKS]] */

static zero_scratch_input input(void)
{
    return (zero_scratch_input){.directory = place,
                                .n_blocks = BLOCKS,
                                .bytes = bytes_of,
                                .depth = DEPTH,
                                .threads = 2};
}

static zero_scratch *opened(zero_scratch_input in)
{
    zero_scratch *s = NULL;
    assert_ok(zero_scratch_open(&in, &s));
    return s;
}

static void fill_expected(unsigned seed)
{
    for (size_t i = 0; i < offset_of[BLOCKS]; i++) {
        seed = seed * 1664525u + 1013904223u;
        expected[i] = (char)(seed >> 24);
    }
}

static zero_status write_block(zero_scratch *s, int block)
{
    int t;
    memcpy(slot[0], expected + offset_of[block], bytes_of[block]);
    zero_status st = zero_scratch_begin_write(s, block, slot[0], &t);
    return st == ZERO_OK ? zero_scratch_end(s, t) : st;
}

static zero_status read_block(zero_scratch *s, int block)
{
    int t;
    memset(slot[1], 0, bytes_of[block]);
    zero_status st = zero_scratch_begin_read(s, block, slot[1], &t);
    return st == ZERO_OK ? zero_scratch_end(s, t) : st;
}

static void write_all(zero_scratch *s)
{
    for (int b = 0; b < BLOCKS; b++) assert_ok(write_block(s, b));
}

static void assert_same(int block, const char *data)
{
    assert_memory_equal(data, expected + offset_of[block], bytes_of[block]);
}

/* Opens the file without a name that this process has in `place`. */
static int open_the_file(void)
{
    char here[4096], link[4096], path[64];
    assert_non_null(realpath(place, here));
    for (int fd = 3; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n < 0) continue;
        link[n] = '\0';
        if (strncmp(link, here, strlen(here)) == 0 && strstr(link, "(deleted)"))
            return open(path, O_RDWR | O_CLOEXEC);
    }
    return -1;
}

/* ---- transfers ---- */

/* Transfer k moves block (7 k) mod BLOCKS: reads and writes of several rounds, DEPTH in flight. */
TEST(blocks_come_back_in_any_order)
{
    for (int threads = 1; threads <= DEPTH; threads++) {
        zero_scratch_input in = input();
        in.threads = threads;
        zero_scratch *s = opened(in);
        for (int round = 0; round < 3; round++) {
            int t[DEPTH];
            fill_expected((unsigned)round);
            for (int k = 0; k < 2 * BLOCKS; k++) {
                int slot_of_k = k % DEPTH, b = 7 * k % BLOCKS;
                if (k >= DEPTH) {
                    int before = 7 * (k - DEPTH) % BLOCKS;
                    assert_ok(zero_scratch_end(s, t[slot_of_k]));
                    if (k - DEPTH >= BLOCKS) assert_same(before, slot[slot_of_k]);
                }
                bool is_write = k < BLOCKS;
                char *data = slot[slot_of_k];
                if (is_write) memcpy(data, expected + offset_of[b], bytes_of[b]);
                zero_status st = is_write
                                     ? zero_scratch_begin_write(s, b, data, &t[slot_of_k])
                                     : zero_scratch_begin_read(s, b, data, &t[slot_of_k]);
                assert_ok(st);
            }
            for (int k = 2 * BLOCKS - DEPTH; k < 2 * BLOCKS; k++) {
                assert_ok(zero_scratch_end(s, t[k % DEPTH]));
                assert_same(7 * k % BLOCKS, slot[k % DEPTH]);
            }
        }
        zero_scratch_traffic traffic = zero_scratch_get_traffic(s);
        assert_int_equal(traffic.bytes_written, 3 * offset_of[BLOCKS]);
        assert_int_equal(traffic.bytes_read, 3 * offset_of[BLOCKS]);
        assert_int_equal(traffic.reads, 3 * BLOCKS);
        assert_int_equal(traffic.writes, 3 * BLOCKS);
        assert_int_equal(disk_place_names(place), 0);
        zero_scratch_close(s);
    }
}

TEST(a_transfer_ends_without_being_waited_for)
{
    zero_scratch *s = opened(input());
    int t;
    assert_ok(zero_scratch_begin_write(s, 3, slot[0], &t));
    while (!zero_scratch_has_ended(s, t)) usleep(100);
    assert_ok(zero_scratch_end(s, t));
    assert_ok(zero_scratch_begin_write(s, 3, slot[0], &t));
    zero_scratch_close(s); /* with a transfer in flight */
}

TEST(a_flipped_bit_on_the_disk_is_found)
{
    for (int block = 0; block < BLOCKS; block += 5) {
        zero_scratch *s = opened(input());
        write_all(s);
        char byte, text[64];
        off_t at = (off_t)(offset_of[block] + bytes_of[block] - 1);
        int fd = open_the_file();
        if (fd < 0) skip(); /* the kernel shows its path otherwise */
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte = (char)(byte ^ 16);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_int_equal(fsync(fd), 0);
        close(fd);
        for (int b = 0; b < BLOCKS; b++)
            assert_int_equal(read_block(s, b), b == block ? ZERO_ERR_FORMAT : ZERO_OK);
        assert_int_equal(read_block(s, block), ZERO_ERR_FORMAT);
        snprintf(text, sizeof text, "block %d of the scratch file", block);
        assert_told(text);
        assert_ok(write_block(s, block));
        assert_ok(read_block(s, block));
        zero_scratch_close(s);
    }
}

TEST(a_file_that_was_cut_is_an_error)
{
    zero_scratch *s = opened(input());
    write_all(s);
    int fd = open_the_file(), last = BLOCKS - 1;
    if (fd < 0) skip();
    assert_int_equal(ftruncate(fd, (off_t)offset_of[last]), 0);
    close(fd);
    assert_ok(read_block(s, last - 1));
    assert_fails(read_block(s, last), ZERO_ERR_ENV, "the file ends there");
    zero_scratch_close(s);
}

/* ---- misuse ---- */

TEST(wrong_transfers_are_refused)
{
    zero_scratch *s = opened(input());
    int t[DEPTH], more;
    assert_fails(zero_scratch_begin_read(s, 0, slot[0], &more), ZERO_ERR_INVALID,
                 "never written");
    assert_int_equal(zero_scratch_begin_write(s, 0, slot[0] + 512, &more),
                     ZERO_ERR_INVALID);
    for (int i = 0; i < DEPTH; i++)
        assert_ok(zero_scratch_begin_write(s, i, slot[i], &t[i]));
    assert_fails(zero_scratch_begin_write(s, 1, slot[0], &more), ZERO_ERR_INVALID,
                 "moving already");
    assert_fails(zero_scratch_begin_write(s, DEPTH, slot[0], &more), ZERO_ERR_INVALID,
                 "in flight");
    for (int i = 0; i < DEPTH; i++) assert_ok(zero_scratch_end(s, t[i]));
    zero_scratch_close(s);
}

TEST(wrong_sizes_are_refused)
{
    const size_t odd[] = {4096, 4095}, none[] = {0};
    zero_scratch_input wrong[6];
    for (int i = 0; i < 6; i++) wrong[i] = input();
    wrong[0].n_blocks = 0;
    wrong[1].depth = 0;
    wrong[2].threads = DEPTH + 1;
    wrong[3].depth = ZERO_SCRATCH_MAX_DEPTH + 1;
    wrong[4].bytes = odd, wrong[4].n_blocks = 2;
    wrong[5].bytes = none, wrong[5].n_blocks = 1;
    for (int i = 0; i < 6; i++) {
        zero_scratch *s;
        assert_int_equal(zero_scratch_open(&wrong[i], &s), ZERO_ERR_INVALID);
    }
}

/* ---- directories ---- */

static void expect_failure(const char *directory, size_t bytes, zero_status status,
                           const char *text)
{
    zero_scratch *s;
    zero_scratch_input in = {
        .directory = directory, .n_blocks = 1, .bytes = &bytes, .depth = 1, .threads = 1};
    assert_int_equal(zero_scratch_open(&in, &s), status);
    assert_told(text);
}

TEST(directories_that_cannot_serve_are_refused)
{
    struct statfs fs;
    if (statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC)
        expect_failure("/dev/shm", 4096, ZERO_ERR_INVALID, "lies in memory");
    expect_failure("no/such/directory", 4096, ZERO_ERR_ENV, "No such file or directory");
    expect_failure("/proc/self/exe", 4096, ZERO_ERR_ENV, "Not a directory");
    expect_failure("/proc", 4096, ZERO_ERR_ENV, "/proc: cannot be used for a scratch file");
}

/* 2^52 bytes are more than any disk of today has. */
TEST(too_little_space_is_an_error_before_anything_is_written)
{
    expect_failure(place, (size_t)1 << 52, ZERO_ERR_ENV, "cannot be reserved");
    assert_told("MiB are free there");
    assert_int_equal(disk_place_names(place), 0);
}

/* ---- setting up ---- */

static int set_up(void **state)
{
    (void)state;
    if (!disk_place_make(place)) return -1;
    for (int b = 0; b < BLOCKS; b++) {
        bytes_of[b] = (size_t)(1 + b * b % 5) * ZERO_SCRATCH_ALIGN + (b == 9 ? 3 << 20 : 0);
        offset_of[b + 1] = offset_of[b] + bytes_of[b];
    }
    expected = malloc(offset_of[BLOCKS]);
    for (int i = 0; i < DEPTH; i++)
        if (posix_memalign((void **)&slot[i], ZERO_SCRATCH_ALIGN, 4 << 20)) return -1;
    for (int i = 0; i < DEPTH; i++) memset(slot[i], i, 4 << 20);
    if (expected) fill_expected(1);
    return expected ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < DEPTH; i++) free(slot[i]);
    free(expected);
    return rmdir(place); /* fails if anything was left */
}

int main(void)
{
    return run_here(set_up, tear_down);
}
