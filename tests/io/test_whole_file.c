/* A file that is there completely or not at all. */
#include "io/whole_file.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

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

static void a_file_replaces_an_older_one_when_it_is_whole(void **state)
{
    (void)state;
    zero_whole_file file;
    assert_int_equal(zero_whole_file_begin(&file, "a"), ZERO_OK);
    assert_int_equal(zero_whole_file_write(&file, "old", 3), ZERO_OK);
    assert_int_equal(access("a", F_OK), -1);
    assert_int_equal(zero_whole_file_end(&file), ZERO_OK);
    zero_whole_file_abandon(&file); /* does nothing any more */
    holds("a", "old");

    char path[128];
    snprintf(path, sizeof path, "%s/a", place);
    assert_int_equal(zero_whole_file_begin(&file, path), ZERO_OK);
    assert_int_equal(zero_whole_file_write(&file, "new ", 4), ZERO_OK);
    holds("a", "old");
    assert_int_equal(zero_whole_file_write(&file, "text", 4), ZERO_OK);
    assert_int_equal(zero_whole_file_end(&file), ZERO_OK);
    holds("a", "new text");
    assert_int_equal(count_names(), 1);
}

static void an_abandoned_file_leaves_nothing(void **state)
{
    (void)state;
    zero_whole_file file;
    assert_int_equal(zero_whole_file_begin(&file, "b"), ZERO_OK);
    assert_int_equal(zero_whole_file_write(&file, "part", 4), ZERO_OK);
    assert_int_equal(count_names(), 2);
    zero_whole_file_abandon(&file);
    assert_int_equal(count_names(), 1);
    file = (zero_whole_file){0};
    zero_whole_file_abandon(&file);
}

/* The limit of the size stands for a full disk. */
static void a_full_disk_leaves_the_older_file(void **state)
{
    (void)state;
    zero_whole_file file;
    struct rlimit limit, tight;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    tight = limit;
    tight.rlim_cur = 4;
    assert_int_equal(zero_whole_file_begin(&file, "a"), ZERO_OK);
    setrlimit(RLIMIT_FSIZE, &tight);
    assert_int_equal(zero_whole_file_write(&file, "too long", 8), ZERO_ERR_ENV);
    setrlimit(RLIMIT_FSIZE, &limit);
    zero_whole_file_abandon(&file);
    holds("a", "new text");
    assert_int_equal(count_names(), 1);
}

static void only_regular_files_are_replaced(void **state)
{
    (void)state;
    zero_whole_file file;
    char dots[] = "..", folder[] = "folder/", name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(symlink("a", "link"), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    char *const paths[] = {"link", "folder", "/dev/null", dots, folder, "", name};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        assert_int_equal(zero_whole_file_begin(&file, paths[i]), ZERO_ERR_INVALID);
        assert_non_null(strstr(zero_last_error(), "expected"));
    }
    assert_int_equal(zero_whole_file_begin(&file, "no/such"), ZERO_ERR_IO);
    assert_int_equal(count_names(), 3);
    rmdir("folder");
    unlink("link");
    unlink("a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_replaces_an_older_one_when_it_is_whole),
        cmocka_unit_test(an_abandoned_file_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_the_older_file),
        cmocka_unit_test(only_regular_files_are_replaced),
    };
    if (!mkdtemp(place) || chdir(place) != 0) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(place) != 0 || failed;
}
