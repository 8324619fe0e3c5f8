/* Whether a path is, or would be, among the files that a path, a directory or a pattern stands for. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "io/file_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"

static char place[] = "/tmp/zero_test_list_XXXXXX"; /* also the current directory */

static void make(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

/* Makes a directory `data` with a file, a hidden one and a directory, and `else` beside it. */
static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(place) || chdir(place) != 0) return -1;
    mkdir("data", 0700);
    mkdir("data/deep", 0700);
    mkdir("data/.git", 0700);
    mkdir("else", 0700);
    make("data/a.txt");
    make("data/.hidden");
    make("else/b");
    return symlink("data", "way") + symlink("../else/b", "data/linked") +
           symlink("../else", "data/beyond") + link("else/b", "else/b2");
}

static int tear_down(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", place);
    return chdir("/") + system(command);
}

TEST(files_are_found_under_any_name)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s/way/a.txt", place);
    assert_true(zero_files_have("data", "data/a.txt"));
    assert_true(zero_files_have("data", whole));
    assert_true(zero_files_have("way", "./data/../data/a.txt"));
    assert_true(zero_files_have("da*/*.txt", "way/a.txt"));
    assert_true(zero_files_have("data/a.txt", "way/a.txt"));
    assert_true(zero_files_have("data", "else/b")); /* by a link in data */
    assert_true(zero_files_have("data", "else/b2"));
    assert_false(zero_files_have("data", "data/.hidden"));
    assert_false(zero_files_have("data", "data/new"));
    assert_false(zero_files_have("data/*.md", "data/a.txt"));
    assert_false(zero_files_have("nosuch", "data/a.txt"));
}

TEST(new_files_would_be_found_where_a_listing_comes)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s/data/new", place);
    assert_true(zero_files_would_have("data", "data/new"));
    assert_true(zero_files_would_have("data", "way/deep/new"));
    assert_true(zero_files_would_have("way", whole));
    assert_true(zero_files_would_have(".", "data/new"));
    assert_true(zero_files_would_have("data", "data")); /* a directory that gets files */
    assert_true(zero_files_would_have("data", "data/deep/"));
    assert_true(zero_files_would_have("data", "data/newer/"));
    assert_false(zero_files_would_have("data", "new"));
    assert_false(zero_files_would_have("data", "data/.new"));
    assert_false(zero_files_would_have("data", "data/.git/new"));
    assert_false(zero_files_would_have("data", "data/beyond/new")); /* a link */
    assert_false(zero_files_would_have("data/a.txt", "data/new"));
    assert_false(zero_files_would_have("data/deep", "data/deeper"));
    assert_false(zero_files_would_have("data", "no/such/folder"));
}

TEST(new_files_may_match_a_pattern)
{
    assert_true(zero_files_would_have("data/*.txt", "way/new.txt"));
    assert_true(zero_files_would_have("d*/*", "data/new"));
    assert_true(zero_files_would_have("d*", "data/deep/new")); /* all of a directory */
    assert_true(zero_files_would_have("*", "new"));
    assert_true(zero_files_would_have("da?a/d*", "data/deep"));
    assert_true(zero_files_would_have("da?a/*", "data/newer"));
    assert_false(zero_files_would_have("data/*.txt", "data/new.md"));
    assert_false(zero_files_would_have("data/*.txt", "else/new.txt"));
    assert_false(zero_files_would_have("data/*", "data/.new"));
    assert_false(zero_files_would_have("e*", "data/new"));
}

TEST(two_paths_may_name_one_file_that_is_to_come)
{
    assert_true(zero_file_is_same("data/new", "way/new"));
    assert_true(zero_file_is_same("new", "./new"));
    assert_true(zero_file_is_same("data/linked", "else/b2"));
    assert_false(zero_file_is_same("data/new", "else/new"));
    assert_false(zero_file_is_same("data/a.txt", "way/new"));
    assert_false(zero_file_is_same("no/such", "no/such"));
}

int main(void)
{
    return run_here(set_up, tear_down);
}
