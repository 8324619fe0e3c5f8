#define _GNU_SOURCE
#include "support/test.h"

#include "gpu/child.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_variables(const char *variables)
{
    char *copy = strdup(variables ? variables : ""), *rest = copy;
    for (char *at; (at = strsep(&rest, " ")) != NULL;) {
        char *value = strchr(at, '=');
        if (!value) continue;
        *value = 0;
        setenv(at, value + 1, 1);
    }
    free(copy);
}

static void run_in_child(void (*body)(void), const char *variables, int error_output)
{
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(error_output, STDERR_FILENO);
    set_variables(variables);
    body();
    _exit(0);
}

/* CMocka catches signals, which a child must not. */
static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE};

bool child_runs(void (*body)(void), const char *variables, char *text, int bytes)
{
    int ends[2], status, n = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 5; i++) signal(signals[i], SIG_DFL);
        close(ends[0]);
        run_in_child(body, variables, ends[1]);
    }
    close(ends[1]);
    char rest[4096];
    for (ssize_t got = 1; got > 0;) {
        const bool has_room = n < bytes - 1;
        got = has_room ? read(ends[0], text + n, (size_t)(bytes - 1 - n))
                       : read(ends[0], rest, sizeof rest);
        if (has_room && got > 0) n += (int)got;
    }
    text[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void assert_child_ends(void (*body)(void), const char *variables, ...)
{
    char text[8192];
    if (child_runs(body, variables, text, sizeof text))
        fail_msg("expected a broken rule to end the process; it wrote '%s'", text);
    va_list expected;
    va_start(expected, variables);
    for (const char *part; (part = va_arg(expected, const char *)) != NULL;)
        if (!strstr(text, part)) fail_msg("expected '%s', found '%s'", part, text);
    va_end(expected);
}

void assert_child_passes(void (*body)(void), const char *variables)
{
    char text[8192];
    if (!child_runs(body, variables, text, sizeof text))
        fail_msg("with %s: %s", variables ? variables : "no variables", text);
}

void child_check(bool truth, const char *text, const char *file, int line)
{
    if (truth) return;
    fprintf(stderr, "%s:%d: %s does not hold\n", file, line, text);
    _exit(1);
}
