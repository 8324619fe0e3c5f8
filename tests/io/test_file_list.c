/* Whether a path is, or would be, among the files that a path, a directory or a pattern stands for. */
#define TEST_HAS_MAIN
#include "support/table.h"

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

TEST(files_are_found_by_their_paths_lists_and_patterns)
{
    for (test_table t = table_open("io/file_list.txt"); table_next(&t);) {
        bool (*ask)(const char *, const char *) =
            strcmp(t.field[1], "has") == 0  ? zero_files_have
            : strcmp(t.field[1], "is") == 0 ? zero_file_is_same
                                            : zero_files_would_have;
        if (ask(t.field[2], t.field[3]) != (strcmp(t.field[0], "true") == 0))
            fail_msg("%s %s %s", t.field[2], t.field[1], t.field[3]);
    }
}

TEST(whole_paths_are_paths_too)
{
    char whole[128];
    snprintf(whole, sizeof whole, "%s/way/a.txt", place);
    assert_true(zero_files_have("data", whole));
    snprintf(whole, sizeof whole, "%s/data/new", place);
    assert_true(zero_files_would_have("way", whole));
}

int main(void)
{
    return run_here(set_up, tear_down);
}
