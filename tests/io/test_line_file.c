/* Lines of a file or a pipe are there completely or not at all, and lost ones are counted. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "io/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static char place[] = "/tmp/zero_test_lines_XXXXXX"; /* also the current directory */

static void write_line(zero_line_file *file, const char *line, double patience)
{
    zero_line_file_write(file, strdup(line), strlen(line), patience);
}

/* A line of n bytes, all `c` but the last. */
static char *long_line(char c, size_t n)
{
    char *text = malloc(n + 1);
    memset(text, c, n);
    memcpy(text + n - 1, "\n", 2);
    return text;
}

static void holds(const char *path, const char *expected)
{
    char text[4096];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(n >= 0);
    text[n] = '\0';
    assert_string_equal(text, expected);
}

/* The limit of the size stands for a disk that is full, then not. */
static void limit_size(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(a_line_that_does_not_fit_is_cut_off_and_counted)
{
    zero_line_file file;
    signal(SIGXFSZ, SIG_IGN);
    assert_ok(zero_line_file_open(&file, "--metrics", "m"));
    zero_line_file_begin(&file, false);
    write_line(&file, "one\n", 0.0);
    limit_size(9);
    write_line(&file, "two two\n", 0.0); /* a part fits */
    write_line(&file, "three three\n", 0.0);
    assert_int_equal(file.lost, 2);
    assert_int_equal(file.error, EFBIG);
    holds("m", "one\n");
    write_line(&file, "four\n", 0.0);
    assert_int_equal(file.lost, 0);
    limit_size(RLIM_INFINITY);
    zero_line_file_write(&file, NULL, 0, 0.0); /* no memory for it */
    assert_int_equal(file.lost, 1);
    write_line(&file, "five\n", 0.0);
    zero_line_file_close(&file);
    holds("m", "one\nfour\nfive\n");
}

TEST(a_half_line_of_another_run_gets_an_end)
{
    zero_line_file file;
    for (int turn = 0; turn < 3; turn++) {
        assert_ok(zero_line_file_open(&file, "--metrics", "half"));
        zero_line_file_begin(&file, true);
        if (turn == 0) assert_int_equal(write(file.fd, "ab", 2), 2);
        if (turn > 0) write_line(&file, "cd\n", 0.0);
        zero_line_file_close(&file);
    }
    holds("half", "ab\ncd\ncd\n");
    assert_ok(zero_line_file_open(&file, "--metrics", "half"));
    holds("half", "ab\ncd\ncd\n"); /* until the first line */
    zero_line_file_begin(&file, false);
    write_line(&file, "ef\n", 0.0);
    zero_line_file_close(&file);
    holds("half", "ef\n");
}

static int open_reader(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

TEST(a_pipe_without_a_reader_is_refused)
{
    zero_line_file file;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(zero_line_file_open(&file, "--metrics", "pipe"), ZERO_ERR_INVALID);
    assert_string_equal(zero_last_error(),
                        "--metrics pipe: nobody reads this pipe: start its reader first");
    assert_false(file.is_open);
    assert_int_equal(zero_line_file_open(&file, "--metrics", "no/m"), ZERO_ERR_INVALID);
    assert_non_null(
        strstr(zero_last_error(), "no/m: cannot be opened for writing: No such"));
}

/* Reads everything that is there. Each line must consist of one character, as it was written.
 * Returns their number. */
static int read_lines(int fd, char *partial)
{
    static char text[1 << 20];
    size_t n = strlen(partial);
    int lines = 0;
    memcpy(text, partial, n);
    for (ssize_t more; (more = read(fd, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)more;
    text[n] = '\0';
    char *line = text;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++)
        for (char *c = line; c < end; c++) assert_int_equal(*c, *line);
    assert_true(strlen(line) < 1 << 17);
    strcpy(partial, line);
    return lines;
}

TEST(a_slow_reader_costs_lines_and_neither_time_nor_halves)
{
    static char partial[1 << 17];
    zero_line_file file;
    int reader = open_reader("pipe"), got = 0, told = 0;
    assert_ok(zero_line_file_open(&file, "--metrics", "pipe"));
    zero_line_file_begin(&file, false);
    double start = zero_clock_seconds();
    for (int i = 0; i < 300; i++) {
        size_t len = i % 3 == 0 ? 9000 : 200; /* more, and less, than a pipe takes whole */
        int64_t lost = file.lost;
        zero_line_file_write(&file, long_line((char)('a' + i % 26), len), len, 0.0);
        if (file.lost == 0) told += (int)lost;
        if (i % 50 == 49) got += read_lines(reader, partial);
    }
    assert_true(zero_clock_seconds() - start < 20.0);
    assert_int_equal(file.error, EAGAIN);
    int left = (int)file.lost;
    write_line(&file, "z\n", 0.0); /* ends the line that was begun */
    got += read_lines(reader, partial);
    assert_int_equal(strlen(partial), 0);
    assert_int_equal(got + told + left, 301);
    assert_true(got > 20 && told > 20);
    zero_line_file_close(&file);
    close(reader);
}

/* With patience the line waits for its reader. */
TEST(the_last_line_waits_for_its_reader)
{
    zero_line_file file;
    int reader = open_reader("pipe");
    assert_ok(zero_line_file_open(&file, "--metrics", "pipe"));
    while (file.lost == 0) write_line(&file, "x\n", 0.0);
    double start = zero_clock_seconds();
    write_line(&file, "y\n", 0.3);
    assert_true(zero_clock_seconds() - start >= 0.3);
    assert_int_equal(file.lost, 2);
    pid_t child = fork();
    if (child == 0) {
        usleep(200000);
        for (char text[4096]; read(reader, text, sizeof text) > 0;) continue;
        pause();
    }
    close(reader);
    write_line(&file, "y\n", 60.0);
    assert_int_equal(file.lost, 0);
    zero_line_file_close(&file);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(a_reader_that_is_gone_costs_lines_and_not_the_process)
{
    zero_line_file file;
    char text[64] = "";
    int reader = open_reader("pipe");
    assert_ok(zero_line_file_open(&file, "--metrics", "pipe"));
    zero_line_file_write(&file, long_line('a', 200000), 200000, 0.0); /* is begun */
    assert_non_null(file.rest);
    close(reader);
    write_line(&file, "b\n", 0.0);
    write_line(&file, "c\n", 0.0);
    assert_int_equal(file.error, EPIPE);
    assert_int_equal(file.lost, 3);
    reader = open_reader("pipe");
    write_line(&file, "d\n", 0.0);
    assert_int_equal(file.lost, 0);
    assert_int_equal(read(reader, text, sizeof text - 1), 2);
    assert_string_equal(text, "d\n");
    zero_line_file_close(&file);
    close(reader);
}

/* Leads to `to`, and belongs to this user. */
static void link_as(uid_t owner, const char *to, const char *link)
{
    assert_int_equal(symlink(to, link), 0);
    if (geteuid() == 0) assert_int_equal(lchown(link, owner, (gid_t)-1), 0);
}

static zero_status try_line(const char *path)
{
    zero_line_file file;
    zero_status st = zero_line_file_open(&file, "--metrics", path);
    if (st == ZERO_OK) zero_line_file_begin(&file, false);
    if (st == ZERO_OK) zero_line_file_close(&file);
    return st;
}

/* Another user who may add names to a directory could lead us to any file of ours. */
TEST(a_link_is_followed_only_if_nobody_else_can_make_it)
{
    const uid_t nobody = 65534, own = geteuid();
    const struct {
        uid_t folder, link;
        mode_t mode;
        bool follows;
    } cases[] = {{own, own, 0755, true},     {own, own, 01777, true},
                 {own, own, 0777, false},    {own, own, 0775, false},
                 {nobody, own, 0755, false}, {own, nobody, 0755, false},
                 {own, nobody, 01777, false}};
    assert_int_equal(mkdir("shared", 0755), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool has_others = cases[i].folder == nobody || cases[i].link == nobody;
        if (has_others && own != 0) continue;
        int fd = open("m", O_CREAT | O_TRUNC | O_WRONLY, 0600);
        assert_int_equal(write(fd, "mine\n", 5), 5);
        close(fd);
        link_as(cases[i].link, "../m", "shared/link");
        assert_int_equal(chmod("shared", cases[i].mode), 0);
        if (own == 0) assert_int_equal(chown("shared", cases[i].folder, (gid_t)-1), 0);
        zero_status st = try_line("shared/link");
        if (st != (cases[i].follows ? ZERO_OK : ZERO_ERR_INVALID))
            fail_msg("case %zu: %s", i, zero_last_error());
        if (!cases[i].follows)
            assert_non_null(
                strstr(zero_last_error(), "it is a link in a directory that other users"));
        holds("m", cases[i].follows ? "" : "mine\n");
        assert_int_equal(unlink("shared/link"), 0);
    }
    /* Nor may a second name of a file be a trap; a file that has one name is written. */
    assert_int_equal(chmod("shared", 0777), 0);
    assert_int_equal(link("m", "shared/link"), 0);
    assert_int_equal(try_line("shared/link"), ZERO_ERR_INVALID);
    assert_int_equal(unlink("shared/link"), 0);
    assert_ok(try_line("shared/link"));
    unlink("shared/link");
    /* What a shell's >(command) names is such a link. */
    char path[32];
    const int fd = open("m", O_WRONLY);
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    assert_ok(try_line(path));
    close(fd);
    assert_int_equal(rmdir("shared"), 0);
}

static int enter(void **state)
{
    (void)state;
    return mkdtemp(place) && chdir(place) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    unlink("m");
    unlink("half");
    unlink("pipe");
    return rmdir(place);
}

int main(void)
{
    return run_here(enter, leave);
}
