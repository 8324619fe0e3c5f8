/* A scratch file where the file system lacks something, or the disk fails. Each case runs in a
 * child whose system calls the kernel refuses. */
#define TEST_HAS_MAIN
#define _GNU_SOURCE /* O_TMPFILE, O_DIRECT */
#include "support/test.h"

#include "io/scratch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include "support/disk_place.h"
#include "support/refused_call.h"

#define BYTES  ((size_t)64 * ZERO_SCRATCH_ALIGN)
#define BLOCKS 4

enum { GOOD, BAD, NO_SECCOMP = 77 };

static char place[] = "zero_test_refused_XXXXXX";

typedef struct {
    refused_call refused;
    bool is_direct, had_no_name;
} lack;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            printf("line %d: %s (%s)\n", __LINE__, #condition, zero_last_error()); \
            return BAD; \
        } \
    } while (0)

static zero_status open_it(zero_scratch **s)
{
    static const size_t bytes[BLOCKS] = {BYTES, BYTES, BYTES, BYTES};
    zero_scratch_input in = {
        .directory = place, .n_blocks = BLOCKS, .bytes = bytes, .depth = 2, .threads = 2};
    return zero_scratch_open(&in, s);
}

static zero_status move(zero_scratch *s, bool is_write, int block, char *data)
{
    int t;
    zero_status st = is_write ? zero_scratch_begin_write(s, block, data, &t)
                              : zero_scratch_begin_read(s, block, data, &t);
    return st == ZERO_OK ? zero_scratch_end(s, t) : st;
}

static char *page_aligned(void)
{
    void *data = NULL;
    return posix_memalign(&data, ZERO_SCRATCH_ALIGN, BYTES) == 0 ? data : NULL;
}

/* ---- what a file system lacks ---- */

static int use_it(const lack *l)
{
    zero_scratch *s;
    char *data = page_aligned();
    CHECK(open_it(&s) == ZERO_OK);
    const zero_scratch_file *file = zero_scratch_get_file(s);
    /* Some file systems lack more than the case takes away. */
    CHECK(!file->had_no_name || l->had_no_name);
    CHECK(!file->is_direct || l->is_direct);
    for (int b = 0; b < BLOCKS; b++) {
        memset(data, 'a' + b, BYTES);
        CHECK(move(s, true, b, data) == ZERO_OK);
    }
    for (int b = 0; b < BLOCKS; b++) {
        memset(data, 0, BYTES);
        CHECK(move(s, false, b, data) == ZERO_OK);
        CHECK(data[0] == 'a' + b && data[BYTES - 1] == 'a' + b);
    }
    CHECK(disk_place_cached_pages(file->fd, BLOCKS * BYTES) == 0);
    CHECK(disk_place_names(place) == 0);
    zero_scratch_close(s);
    free(data);
    return GOOD;
}

static int in_a_child(int (*work)(const lack *), const lack *l)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int result = refuse_call(l->refused) ? work(l) : NO_SECCOMP;
        fflush(stdout);
        _exit(result);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_SECCOMP) skip();
    return WEXITSTATUS(status);
}

TEST(it_works_where_the_file_system_lacks_something)
{
    const uint32_t nameless = O_TMPFILE & ~(uint32_t)O_DIRECTORY, any = 0;
    const lack lacks[] = {
        {{SYS_getpgid, 0, any, any, EPERM}, true, true}, /* nothing that matters */
        {{SYS_openat, 2, nameless, nameless, EOPNOTSUPP}, true, false},
        {{SYS_openat, 2, nameless, nameless, EISDIR}, true, false},
        {{SYS_fcntl, 2, O_DIRECT, O_DIRECT, EINVAL}, false, true},
        {{SYS_fallocate, 0, any, any, EOPNOTSUPP}, true, true},
        {{SYS_statx, 0, any, any, ENOSYS}, true, true},
    };
    for (size_t i = 0; i < COUNT(lacks); i++)
        if (in_a_child(use_it, &lacks[i]) != GOOD) fail_msg("lack %zu", i);
}

/* ---- a disk that fails ---- */

#define FAILS_AT (2 * BYTES) /* the first byte of block 2 */

static int meet_the_error(const lack *l)
{
    zero_scratch *s;
    char *data = page_aligned(), text[128];
    bool is_write = l->refused.call == SYS_pwrite64;
    CHECK(open_it(&s) == ZERO_OK);
    for (int b = 0; b < BLOCKS; b++) {
        zero_status st = move(s, true, b, data);
        CHECK(st == (is_write && b == 2 ? ZERO_ERR_ENV : ZERO_OK));
    }
    snprintf(text, sizeof text, "the scratch file cannot be %s at byte %zu: %s",
             is_write ? "written" : "read", (size_t)FAILS_AT, strerror(EIO));
    if (!is_write) CHECK(move(s, false, 2, data) == ZERO_ERR_ENV);
    CHECK(strstr(zero_last_error(), text));
    CHECK(move(s, false, 1, data) == ZERO_OK);
    /* what could not be written must not be read */
    if (is_write) CHECK(move(s, false, 2, data) == ZERO_ERR_INVALID);
    zero_scratch_close(s);
    free(data);
    return GOOD;
}

TEST(an_error_of_the_disk_names_the_byte)
{
    const int calls[] = {SYS_pwrite64, SYS_pread64};
    for (int i = 0; i < 2; i++) {
        lack l = {.refused = {calls[i], 3, UINT32_MAX, FAILS_AT, EIO}};
        if (in_a_child(meet_the_error, &l) != GOOD) fail_msg("call %d", calls[i]);
    }
}

static int find_no_space(const lack *l)
{
    (void)l;
    zero_scratch *s;
    CHECK(open_it(&s) == ZERO_ERR_ENV);
    CHECK(strstr(zero_last_error(), "a scratch file of 1.0 MiB cannot be reserved"));
    CHECK(disk_place_names(place) == 0);
    return GOOD;
}

TEST(a_full_disk_is_an_error_when_it_is_opened)
{
    lack l = {.refused = {SYS_fallocate, 0, 0, 0, ENOSPC}};
    assert_int_equal(in_a_child(find_no_space, &l), GOOD);
}

/* ---- setting up ---- */

static int set_up(void **state)
{
    (void)state;
    return disk_place_make(place) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(place);
}

int main(void)
{
    return run_here(set_up, tear_down);
}
