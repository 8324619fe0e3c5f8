/* A file that is there completely or not at all. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "io/whole_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"

static char place[] = "/tmp/zero_test_whole_XXXXXX"; /* also the current directory */

static void holds(const char *path, const char *expected)
{
    char text[64];
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    assert_string_equal(text, expected);
}

static int count_names(void)
{
    int n = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static zero_status begin(zero_whole_file *file, const char *path)
{
    return zero_whole_file_begin(file, path, ZERO_WHOLE_FILE_ALONE, NULL);
}

TEST(a_file_replaces_an_older_one_when_it_is_whole)
{
    zero_whole_file file;
    assert_ok(begin(&file, "a"));
    assert_ok(zero_whole_file_write(&file, "old", 3));
    assert_int_equal(access("a", F_OK), -1);
    assert_ok(zero_whole_file_end(&file));
    zero_whole_file_abandon(&file); /* does nothing any more */
    holds("a", "old");

    char path[128];
    snprintf(path, sizeof path, "%s/a", place);
    assert_ok(begin(&file, path));
    assert_ok(zero_whole_file_write(&file, "new ", 4));
    holds("a", "old");
    assert_ok(zero_whole_file_write(&file, "text", 4));
    assert_ok(zero_whole_file_end(&file));
    holds("a", "new text");
    assert_int_equal(count_names(), 1);
}

TEST(an_abandoned_file_leaves_nothing)
{
    zero_whole_file file;
    assert_ok(begin(&file, "b"));
    assert_ok(zero_whole_file_write(&file, "part", 4));
    assert_int_equal(count_names(), 2);
    zero_whole_file_abandon(&file);
    assert_int_equal(count_names(), 1);
    file = (zero_whole_file){0};
    zero_whole_file_abandon(&file);
}

/* The limit of the size stands for a full disk. */
TEST(a_full_disk_leaves_the_older_file)
{
    zero_whole_file file;
    struct rlimit limit, tight;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 4;
    assert_ok(begin(&file, "a"));
    setrlimit(RLIMIT_FSIZE, &tight);
    assert_int_equal(zero_whole_file_write(&file, "too long", 8), ZERO_ERR_ENV);
    setrlimit(RLIMIT_FSIZE, &limit);
    zero_whole_file_abandon(&file);
    holds("a", "new text");
    assert_int_equal(count_names(), 1);
}

/* Another process, as of a container, may have had our number. */
TEST(what_a_killed_process_left_is_replaced)
{
    zero_whole_file file;
    for (int turn = 0; turn < 2; turn++) {
        const pid_t child = fork();
        if (child == 0) {
            bool ok = begin(&file, "b") == ZERO_OK &&
                      zero_whole_file_write(&file, "half", 4) == ZERO_OK;
            if (ok) kill(getpid(), SIGKILL);
            _exit(1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        holds(".b.tmp", "half");
    }
    assert_ok(zero_whole_file_put("b", "whole", 5));
    holds("b", "whole");
    assert_int_equal(unlink("b"), 0);
    assert_int_equal(count_names(), 1);
}

TEST(one_process_at_a_time_writes_a_file)
{
    zero_whole_file file, other;
    zero_lock lock;
    assert_ok(begin(&file, "b"));
    assert_int_equal(zero_whole_file_begin(&other, "./b", ZERO_WHOLE_FILE_ALONE, &lock),
                     ZERO_ERR_ENV);
    assert_int_equal(lock, ZERO_LOCK_BUSY);
    assert_string_equal(zero_last_error(), "./b: another process writes this file");
    /* Ranks of one job do not wait for each other. */
    assert_ok(zero_whole_file_begin(&other, "b", ZERO_WHOLE_FILE_BESIDE, &lock));
    assert_ok(zero_whole_file_write(&other, "beside", 6));
    assert_ok(zero_whole_file_end(&other));
    holds("b", "beside");
    assert_ok(zero_whole_file_write(&file, "alone", 5));
    assert_ok(zero_whole_file_end(&file));
    holds("b", "alone");
    assert_int_equal(unlink("b"), 0);
    assert_int_equal(count_names(), 1);
}

/* Links, directories and other users' files have the temporary name: they stay as they are. */
TEST(what_is_not_a_leftover_of_ours_stays)
{
    const uid_t nobody = 65534;
    assert_int_equal(symlink("a", ".b.tmp"), 0);
    assert_int_equal(mkdir(".b.2.tmp", 0700), 0);
    assert_int_equal(mkfifo(".b.3.tmp", 0600), 0);
    int theirs = open(".b.4.tmp", O_CREAT | O_WRONLY, 0666);
    assert_true(theirs >= 0);
    assert_int_equal(close(theirs), 0);
    if (geteuid() == 0) assert_int_equal(chown(".b.4.tmp", nobody, nobody), 0);
    assert_ok(zero_whole_file_put("b", "whole", 5));
    holds("b", "whole");
    holds("a", "new text");
    assert_int_equal(count_names(), geteuid() == 0 ? 6 : 5);
    unlink(".b.tmp");
    rmdir(".b.2.tmp");
    unlink(".b.3.tmp");
    unlink(".b.4.tmp");
    unlink("b");
    assert_int_equal(count_names(), 1);
}

TEST(only_regular_files_are_replaced)
{
    zero_whole_file file;
    char dots[] = "..", folder[] = "folder/", name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    char *const paths[] = {"link", "folder", "/dev/null", dots, folder, "", name};
    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_fails(begin(&file, paths[i]), ZERO_ERR_INVALID, "expected");
    }
    assert_int_equal(begin(&file, "no/such"), ZERO_ERR_IO);
    assert_int_equal(count_names(), 3);
    rmdir("folder");
    unlink("link");
    unlink("a");
}

int main(void)
{
    if (!mkdtemp(place) || chdir(place) != 0) return 1;
    int failed = run_here(NULL, NULL);
    return rmdir(place) != 0 || failed;
}
