#define _GNU_SOURCE /* pipe2 */
#include "course/jail.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "base/clock.h"
#include "base/number.h"
#include "io/storage.h"

#define MEMORY        ((rlim_t)1 << 30)   /* of a compiler */
#define CLOSED_MEMORY ((rlim_t)256 << 20) /* of a closed program */
#define FILES         64
#define PRINTED       ((rlim_t)1 << 20)  /* by a closed program */
#define MADE          ((rlim_t)64 << 20) /* by a compiler */
#define JUDGE         3                  /* the descriptor of the socket */

/* ---- the filter ---- */

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined __linux__ && defined ARCHITECTURE
static const int allowed[] = {
    __NR_read,
    __NR_write,
    __NR_writev,
    __NR_readv,
    __NR_pread64,
    __NR_close,
    __NR_fstat,
    __NR_newfstatat,
    __NR_statx,
    __NR_lseek,
    __NR_mmap,
    __NR_mprotect,
    __NR_munmap,
    __NR_mremap,
    __NR_madvise,
    __NR_brk,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_sigaltstack,
    __NR_faccessat,
    __NR_readlinkat,
    __NR_getcwd,
    __NR_getdents64,

    __NR_dup,
    __NR_execve,
    __NR_exit,
    __NR_exit_group,
    __NR_set_tid_address,
    __NR_set_robust_list,
    __NR_futex,
    __NR_getrandom,
    __NR_clock_gettime,
    __NR_clock_getres,
    __NR_gettimeofday,
    __NR_sched_yield,
    __NR_sched_getaffinity,
    __NR_getpid,
    __NR_gettid,
    __NR_getppid,
    __NR_getuid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getegid,
    __NR_uname,
    __NR_sysinfo,
    __NR_ppoll,
    __NR_restart_syscall,
#ifdef __NR_stat /* calls that newer machines do not have */
    __NR_stat,
    __NR_lstat,
    __NR_access,
    __NR_readlink,
    __NR_arch_prctl,
    __NR_poll,
#endif
};
static const int forbidden[] = {
    __NR_clone,    __NR_clone3, __NR_socket,    __NR_socketpair, __NR_connect,
    __NR_kill,     __NR_tkill,  __NR_unlinkat,  __NR_renameat2,  __NR_mkdirat,
    __NR_mknodat,  __NR_linkat, __NR_symlinkat, __NR_fchmodat,   __NR_fchmod,
    __NR_fchownat, __NR_fchown, __NR_truncate,  __NR_ftruncate,  __NR_utimensat,
    __NR_ptrace,   __NR_mount,  __NR_unshare,   __NR_setns,
#ifdef __NR_stat
    __NR_fork,     __NR_vfork,  __NR_unlink,    __NR_rmdir,      __NR_rename,
    __NR_renameat, __NR_mkdir,  __NR_link,      __NR_symlink,    __NR_chmod,
    __NR_chown,    __NR_creat,
#endif
};

#define LOAD(member) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(value)         BPF_STMT(BPF_RET | BPF_K, (value))
#define IF(test, value, skip) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, (skip))
#define WRITES                (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND)

/* The filter's lines for a call that one of its arguments allows or forbids. */
#define CHECKED(call, argument, test, value, yes, no) \
    IF(BPF_JEQ, (call), 4), LOAD(args[argument]), IF(test, (value), 1), ANSWER(yes), \
        ANSWER(no)
#define ALLOW  SECCOMP_RET_ALLOW
#define FORBID SECCOMP_RET_TRAP
#define FAIL   (SECCOMP_RET_ERRNO | ENOSYS)

static bool close_calls(void)
{
    const struct sock_filter head[] = {
        LOAD(arch),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        ANSWER(SECCOMP_RET_KILL_PROCESS),
        LOAD(nr),
#ifdef __NR_open
        CHECKED(__NR_open, 1, BPF_JSET, WRITES, FORBID, ALLOW),
#endif
        CHECKED(__NR_openat, 2, BPF_JSET, WRITES, FORBID, ALLOW),
        /* Python closes files at an exec; other ioctl()s act on terminals, other fcntl()s
         * send signals. */
        CHECKED(__NR_ioctl, 1, BPF_JEQ, FIOCLEX, ALLOW, FAIL),
        CHECKED(__NR_fcntl, 1, BPF_JGT, F_GETFL, FAIL, ALLOW),
        /* abort() and assert() signal the process itself. */
        CHECKED(__NR_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), ALLOW, FORBID),
    };
    struct sock_filter
        all[ZERO_COUNT(head) + 2 * (ZERO_COUNT(allowed) + ZERO_COUNT(forbidden)) + 1];
    unsigned short n = 0;
    for (; n < ZERO_COUNT(head); n++) all[n] = head[n];
    for (int i = 0; i < ZERO_COUNT(allowed) + ZERO_COUNT(forbidden); i++) {
        bool is_allowed = i < ZERO_COUNT(allowed);
        int call = is_allowed ? allowed[i] : forbidden[i - ZERO_COUNT(allowed)];
        all[n++] = (struct sock_filter)IF(BPF_JEQ, (uint32_t)call, 1);
        all[n++] = (struct sock_filter)ANSWER(is_allowed ? ALLOW : FORBID);
    }
    /* Others do nothing: the C libraries and Pythons to come try new ones. */
    all[n++] = (struct sock_filter)ANSWER(FAIL);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                 &(struct sock_fprog){.len = n, .filter = all}) == 0;
}
#else
static bool close_calls(void)
{
    errno = ENOSYS;
    return false;
}
#endif

/* ---- in the child ---- */

static void limit(int which, rlim_t value)
{
    setrlimit(which, &(struct rlimit){value, value});
}

/* Ends here, or as the command; an error number goes into the pipe `tell`. */
static _Noreturn void become(const zero_jail *jail, char *const words[], int judge,
                             int tell, pid_t parent)
{
    char temporary[ZERO_JAIL_PATH + 8], path[4096];
    char *environment[] = {temporary, path, "LC_ALL=C.UTF-8", "PYTHONHASHSEED=0", NULL};
    extern char **environ;
    bool is_closed = judge >= 0;
    int nothing = open("/dev/null", O_RDONLY), error = 0;
    zero_print(temporary, "TMPDIR=%s", jail->path);
    zero_print(path, "PATH=%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(1);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, 20);
    limit(RLIMIT_AS, is_closed ? CLOSED_MEMORY : MEMORY);
    limit(RLIMIT_FSIZE, is_closed ? PRINTED : MADE);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    tell = fcntl(tell, F_DUPFD_CLOEXEC, FILES);
    if (chdir(jail->path) != 0 || dup2(nothing, 0) < 0 || dup2(jail->log, 1) < 0 ||
        dup2(jail->log, 2) < 0 || (is_closed && dup2(judge, JUDGE) < 0))
        error = errno;
    for (int fd = is_closed ? JUDGE + 1 : JUDGE; fd < FILES; fd++) close(fd);
    limit(RLIMIT_NOFILE, FILES);
    environ = environment;
    if (error == 0 && is_closed && !close_calls()) error = -errno;
    if (error == 0) execvp(words[0], words);
    if (error == 0) error = errno;
    if (write(tell, &error, sizeof error) < 0) _exit(126);
    _exit(127);
}

/* ---- in the parent ---- */

static zero_status start(const zero_jail *jail, char *const words[], int judge, pid_t *pid)
{
    int tell[2], error = 0;
    pid_t parent = getpid();
    ZERO_FAIL_IF(pipe(tell) != 0, ZERO_ERR_ENV, "%s: cannot be started: %s", words[0],
                 strerror(errno));
    *pid = fork();
    if (*pid == 0) become(jail, words, judge, tell[1], parent);
    close(tell[1]);
    if (*pid < 0)
        error = errno;
    else if (read(tell[0], &error, sizeof error) != sizeof error)
        error = 0; /* it was started */
    close(tell[0]);
    if (error == 0) return ZERO_OK;
    if (*pid > 0) waitpid(*pid, NULL, 0);
    ZERO_FAIL_IF(error < 0, ZERO_ERR_ENV,
                 "this system cannot close a program's system calls (seccomp: %s), "
                 "so homework is not run here",
                 strerror(-error));
    return zero_fail(ZERO_ERR_ENV, "%s: cannot be started: %s", words[0], strerror(error));
}

zero_status zero_jail_run(const zero_jail *jail, char *const words[], double seconds,
                          int *code)
{
    const struct timespec wait = {0, 2000000};
    const double until = zero_clock_seconds() + seconds;
    pid_t pid;
    int status = 0;
    ZERO_TRY(start(jail, words, -1, &pid));
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (zero_clock_seconds() > until) kill(-pid, SIGKILL);
        nanosleep(&wait, NULL);
    }
    kill(-pid, SIGKILL); /* what it may have left */
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ZERO_OK;
}

zero_status zero_jail_start(const zero_jail *jail, char *const words[], pid_t *pid,
                            int *socket)
{
    int ends[2];
    ZERO_FAIL_IF(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0,
                 ZERO_ERR_ENV, "no socket for a rank: %s", strerror(errno));
    zero_status st = start(jail, words, ends[1], pid);
    close(ends[1]);
    *socket = ends[0];
    if (st != ZERO_OK) close(ends[0]);
    return st;
}

zero_status zero_jail_open(zero_jail *jail)
{
    const char *place = getenv("TMPDIR");
    int ends[2];
    *jail = (zero_jail){.log = -1, .keeper_pipe = -1};
    zero_print(jail->path, "%.200s/zero-homework-XXXXXX", place && *place ? place : "/tmp");
    ZERO_FAIL_IF(!mkdtemp(jail->path) || pipe2(ends, O_CLOEXEC) != 0, ZERO_ERR_ENV,
                 "%s: cannot be made: %s", jail->path, strerror(errno));
    jail->keeper = fork();
    if (jail->keeper == 0) {
        zero_storage_dir parent = {0};
        char *slash = strrchr(jail->path, '/'), byte;
        setsid(); /* a Ctrl-C does not reach it */
        close(ends[1]);
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
        }
        *slash = '\0';
        if (zero_storage_open(jail->path, &parent) == ZERO_OK &&
            zero_storage_remove(&parent, slash + 1) == ZERO_OK)
            _exit(0);
        _exit(1);
    }
    close(ends[0]);
    jail->keeper_pipe = ends[1];
    char path[ZERO_JAIL_PATH + 8];
    zero_print(path, "%s/said", jail->path);
    jail->log = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    ZERO_FAIL_IF(jail->keeper < 0 || jail->log < 0, ZERO_ERR_ENV, "%s: %s", path,
                 strerror(errno));
    return ZERO_OK;
}

void zero_jail_close(zero_jail *jail)
{
    if (jail->keeper <= 0) return;
    if (jail->log >= 0) close(jail->log);
    close(jail->keeper_pipe);
    waitpid(jail->keeper, NULL, 0);
    *jail = (zero_jail){0};
}

zero_status zero_jail_write(const zero_jail *jail, const char *name, const char *text)
{
    char path[ZERO_JAIL_PATH + 64];
    zero_print(path, "%s/%s", jail->path, name);
    FILE *file = fopen(path, "w");
    bool is_whole = file && fputs(text, file) >= 0;
    if (file) is_whole = fclose(file) == 0 && is_whole;
    ZERO_FAIL_IF(!is_whole, ZERO_ERR_ENV, "%s: cannot be written: %s", path,
                 strerror(errno));
    return ZERO_OK;
}

#define SAID 2000

char *zero_jail_take_said(const zero_jail *jail)
{
    char *text = calloc(1, SAID + 1);
    off_t size = lseek(jail->log, 0, SEEK_END);
    if (text && pread(jail->log, text, SAID, size > SAID ? size - SAID : 0) < 0) *text = 0;
    for (int i = 0; text && i < SAID && text[i]; i++)
        if (text[i] == '\r') text[i] = '\n';
    if (ftruncate(jail->log, 0) != 0 && text) *text = '\0';
    return text;
}
