#include "cli/child.h"

#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/clock.h"
#include "base/legible.h"
#include "base/number.h"
#include "cli/requests.h"
#include "io/file.h"

#define PATIENCE 15.0            /* seconds from SIGTERM to SIGKILL */
#define LOOK     (20 * 1000000L) /* nanoseconds between two looks at the child */

static const int requests[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};

/* ---- requests to stop ---- */

/* An ignored signal that is blocked would be pending all the same. */
static void fill(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < ZERO_COUNT(requests); i++)
        if (!zero_requests_ignore(requests[i])) sigaddset(set, requests[i]);
}

void zero_child_expect_stop(void)
{
    sigset_t set;
    fill(&set);
    zero_requests_hold(&set);
}

/* ---- in the child ---- */

/* Ends here; an error number goes into the pipe `tell`, which a command that starts
 * closes. */
static _Noreturn void become(char *const words[], int log, int tell, pid_t parent)
{
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    if (getppid() != parent) _exit(1); /* it ended before */
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(log, STDOUT_FILENO) >= 0 &&
        dup2(log, STDERR_FILENO) >= 0) {
        sigset_t set;
        fill(&set);
        for (int i = 0; i < ZERO_COUNT(requests); i++)
            if (!zero_requests_ignore(requests[i])) signal(requests[i], SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        execvp(words[0], words);
    }
    int error = errno;
    if (write(tell, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

/* ---- in the parent ---- */

static zero_status cannot(const char *command, int error)
{
    return zero_fail(ZERO_ERR_ENV, "%.200s: cannot be started: %s", command,
                     strerror(error));
}

static zero_status start(char *const words[], int log, pid_t *child)
{
    int tell[2];
    pid_t parent = getpid();
    if (pipe(tell) != 0) return cannot(words[0], errno);
    fcntl(tell[0], F_SETFD, FD_CLOEXEC);
    fcntl(tell[1], F_SETFD, FD_CLOEXEC);
    *child = fork();
    if (*child == 0) become(words, log, tell[1], parent);
    int error = *child < 0 ? errno : 0;
    close(tell[1]);
    if (*child > 0) {
        setpgid(*child, *child); /* whichever of the two comes first */
        ssize_t n;
        do n = read(tell[0], &error, sizeof error);
        while (n < 0 && errno == EINTR);
        if (n != sizeof error) error = 0; /* it was started */
    }
    close(tell[0]);
    if (error == 0) return ZERO_OK;
    if (*child > 0) waitpid(*child, NULL, 0);
    return cannot(words[0], error);
}

/* The whole group, for a script may stand between us and the launcher. */
static void end_it(pid_t child, int signal)
{
    if (kill(-child, signal) != 0) kill(child, signal);
}

zero_status zero_child_run(char *const words[], int log, zero_child_end *end)
{
    const struct timespec wait = {0, LOOK};
    pid_t child = -1, ended;
    int status = 0;
    double killed_at = 0.0;
    sigset_t set;
    *end = (zero_child_end){0};
    fill(&set);
    ZERO_TRY(start(words, log, &child));
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        /* Acts on a request, and on patience that has ended. */
        int request = sigtimedwait(&set, NULL, &wait);
        bool again = request > 0 && end->stopped;
        if (request > 0 && !end->stopped) {
            end->stopped = request;
            killed_at = zero_clock_seconds() + PATIENCE;
            end_it(child, SIGTERM);
        }
        if (end->stopped && (again || zero_clock_seconds() > killed_at))
            end_it(child, SIGKILL);
    }
    ZERO_FAIL_IF(ended < 0, ZERO_ERR_ENV, "%.200s: cannot be waited for: %s", words[0],
                 strerror(errno));
    if (WIFSIGNALED(status)) end->signal = WTERMSIG(status);
    if (WIFEXITED(status)) end->code = WEXITSTATUS(status);
    return ZERO_OK;
}

#define LINES 8
#define BYTES 4096 /* in which they are looked for */

void zero_child_log_tell(const char *path, char message[ZERO_CHILD_MESSAGE])
{
    static const char own[] = "zero: ", note[] = "zero: note: ",
                      warning[] = "zero: warning: ";
    ZERO_AT_END(zero_file_close) zero_file file = {0};
    char text[BYTES + 1] = "", shown[ZERO_SHOWN_BYTES];
    const char *last[LINES];
    int n = 0;
    size_t bytes = 0;
    zero_status st = zero_file_open(path, &file);
    uint64_t from = file.bytes > BYTES ? file.bytes - BYTES : 0;
    if (st == ZERO_OK) st = zero_file_read_some(&file, from, text, BYTES, &bytes);
    if (st != ZERO_OK) bytes = 0;
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\0') text[i] = ' '; /* Open MPI 5 ends its texts with them */
    text[bytes] = '\0';
    message[0] = '\0';
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line != 0) {
        last[n++ % LINES] = line;
        if (strncmp(line, own, sizeof own - 1) == 0 &&
            strncmp(line, note, sizeof note - 1) != 0 &&
            strncmp(line, warning, sizeof warning - 1) != 0)
            zero_legible(line + sizeof own - 1, strcspn(line, "\n") - (sizeof own - 1),
                         message, ZERO_CHILD_MESSAGE);
    }
    fprintf(stderr, bytes > 0 ? "  the last lines of %s:\n" : "  %s is empty\n",
            ZERO_SHOWN(path));
    for (int i = n > LINES ? n - LINES : 0; i < n; i++) {
        const char *line = last[i % LINES];
        zero_legible(line, strcspn(line, "\n"), shown, sizeof shown);
        fprintf(stderr, "  | %s\n", shown);
    }
}
