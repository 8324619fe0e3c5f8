/* One reader of files: a mistake has one status and one wording, whatever reads. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "io/bytes.h"
#include "io/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

static char place[] = "/tmp/zero_test_file_XXXXXX"; /* also the current directory */
static zero_storage_dir dir;

/* ---- readers ---- */

static zero_status by_path(const char *name)
{
    zero_file file;
    zero_status st = zero_file_open(name, &file);
    if (st == ZERO_OK) zero_file_close(&file);
    return st;
}

static zero_status within_a_directory(const char *name)
{
    zero_file file;
    zero_status st = zero_file_open_in(&dir, name, &file);
    if (st == ZERO_OK) zero_file_close(&file);
    return st;
}

static zero_status as_bytes(const char *name)
{
    zero_bytes bytes = {0};
    zero_status st = zero_bytes_read(&bytes, name);
    zero_bytes_destroy(&bytes);
    return st;
}

static zero_status as_bounded_bytes(const char *name)
{
    zero_bytes bytes = {0};
    zero_status st = zero_bytes_read_at_most(&bytes, name, 100);
    zero_bytes_destroy(&bytes);
    return st;
}

static zero_status as_safetensors(const char *name)
{
    zero_file file;
    zero_bytes header = {0};
    zero_status st = zero_file_open(name, &file);
    if (st == ZERO_OK) st = zero_safetensors_read_header(&file, &header);
    zero_file_close(&file);
    zero_bytes_destroy(&header);
    return st;
}

static zero_status (*const readers[])(const char *) = {
    by_path, within_a_directory, as_bytes, as_bounded_bytes, as_safetensors};

static void check_all(const char *name, const char *text)
{
    for (size_t i = 0; i < COUNT(readers); i++) {
        assert_fails(readers[i](name), ZERO_ERR_IO, text);
    }
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

TEST(a_mistake_has_one_status_and_one_wording)
{
    assert_int_equal(mkdir("directory", 0700), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    check_all("directory", "directory: expected a regular file, found a directory");
    check_all("pipe", "pipe: expected a regular file, found a device, pipe or socket");
    check_all("nosuch", "nosuch: cannot be opened for reading: No such file or directory");
    assert_int_equal(rmdir("directory") + unlink("pipe"), 0);
}

/* A longer file that begins like a pointer is read, and so is a shorter one. */
TEST(a_pointer_of_git_lfs_is_not_the_file)
{
    char page[1025] = "version https://git-lfs.github.com/spec/v1\n";
    put("pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
    check_all("pointer", "pointer: a pointer of Git LFS in place of the file");
    check_all("pointer", "'git lfs pull'");
    memset(page + strlen(page), 'x', sizeof page - 1 - strlen(page));
    put("pointer", page);
    assert_ok(by_path("pointer"));
    put("pointer", "version https://git-lfs");
    assert_ok(as_bytes("pointer"));
    assert_int_equal(unlink("pointer"), 0);
}

TEST(links_are_followed_only_where_users_name_files)
{
    put("file", "0123456789");
    assert_int_equal(symlink("file", "link"), 0);
    assert_ok(by_path("link"));
    assert_fails(within_a_directory("link"), ZERO_ERR_IO,
                 "expected a regular file, found a link");
    assert_int_equal(unlink("link") + unlink("file"), 0);
}

/* ---- reading ---- */

TEST(parts_are_read_at_offsets)
{
    char part[11] = "";
    size_t n;
    zero_file file;
    put("file", "0123456789");
    assert_ok(zero_file_open_in(&dir, "file", &file));
    assert_int_equal(file.bytes, 10);
    assert_ok(zero_file_read(&file, 3, part, 4));
    assert_string_equal(part, "3456");
    assert_ok(zero_file_read_some(&file, 8, part, 10, &n));
    assert_int_equal(n, 2);
    assert_ok(zero_file_read_some(&file, 10, part, 10, &n));
    assert_int_equal(n, 0);
    assert_int_equal(zero_file_read(&file, 8, part, 3), ZERO_ERR_IO);
    assert_non_null(
        strstr(zero_last_error(), "the file ends after 10 bytes: expected at least 11"));
    zero_file_close(&file);
    assert_int_equal(unlink("file"), 0);
}

TEST(a_failed_read_leaves_the_bytes_that_were_there)
{
    zero_bytes bytes = {0};
    put("file", "0123456789");
    assert_ok(zero_bytes_append(&bytes, "ab", 2));
    assert_int_equal(zero_bytes_read_at_most(&bytes, "file", 9), ZERO_ERR_FORMAT);
    assert_int_equal(bytes.len, 2);
    assert_ok(zero_bytes_read_at_most(&bytes, "file", 10));
    assert_int_equal(bytes.len, 12);
    assert_memory_equal(bytes.bytes, "ab0123456789", 12);
    zero_bytes_destroy(&bytes);
    assert_int_equal(unlink("file"), 0);
}

/* Files in /proc have bytes although their length is 0. */
TEST(the_end_is_where_reading_ends)
{
    zero_bytes bytes = {0};
    assert_int_equal(zero_bytes_read_at_most(&bytes, "/proc/self/status", 9),
                     ZERO_ERR_FORMAT);
    assert_int_equal(bytes.len, 0);
    assert_ok(zero_bytes_read(&bytes, "/proc/self/status"));
    assert_true(bytes.len > 100);
    zero_bytes_destroy(&bytes);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(place) && chdir(place) == 0 && zero_storage_open(".", &dir) == ZERO_OK
               ? 0
               : -1;
}

/* Memory that is reserved ahead counts: it is touched later. */
TEST(bytes_take_no_more_than_they_may)
{
    zero_bytes b = {.most = 1000};
    for (int i = 0; i < 100; i++) {
        assert_ok(zero_bytes_append(&b, "0123456789", 10));
        assert_true(b.room <= 1000);
    }
    assert_int_equal(zero_bytes_append(&b, "x", 1), ZERO_ERR_NOMEM);
    assert_int_equal(b.len, 1000);
    zero_bytes_destroy(&b);
}

static int end(void **state)
{
    (void)state;
    zero_storage_close(&dir);
    return rmdir(place);
}

int main(void)
{
    return run_here(begin, end);
}
