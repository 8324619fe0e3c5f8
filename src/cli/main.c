#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/commands.h"
#include "cli/suggest.h"
#include "comm/launch.h"
#include "comm/sigterm.h"
#include "zero/version.h"

static const struct {
    const char *name;
    zero_status (*run)(int argc, char **argv); /* NULL: a later version's */
    const char *help;
} commands[] = {
    {"train", zero_command_train, "train a model: mpirun -n 4 zero train [options]"},
    {"plan", zero_command_plan, "what a run would take: zero plan --ranks 64 [options]"},
    {"info", zero_command_info, "this build, this machine: zero info [--json]"},
    {"checkpoint", zero_command_checkpoint,
     "what was saved: zero checkpoint show|verify|export DIR"},
    {"generate", zero_command_generate,
     "text of a trained model: zero generate DIR --prompt 'Once'"},
    {"report", NULL, NULL},
};
#define N_COMMANDS ((int)(sizeof commands / sizeof commands[0]))

static void help(void)
{
    printf("zero trains GPT-style transformers with ZeRO on MPI.\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        if (commands[i].run)
            printf("    zero %-10s %s\n", commands[i].name, commands[i].help);
    printf(
        "\n    zero train --help    all options (zero plan --help: and its own)\n"
        "    zero --version\n\n"
        "Exit codes: 0 done; 2 usage or configuration; 3 environment (launcher, memory,\n"
        "devices); 4 data or checkpoint unreadable; 75 stopped on request, after a "
        "checkpoint;\n"
        "86 watchdog, nothing moves any more; 1 anything else, such as a loss that is not\n"
        "finite.\n");
}

static zero_status unknown(const char *name)
{
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
    const char *nearest = zero_suggest(name, N_COMMANDS, names);
    if (nearest)
        return zero_fail(ZERO_ERR_INVALID, "no command '%s'; did you mean '%s'?", name,
                         nearest);
    return zero_fail(
        ZERO_ERR_INVALID,
        "no command '%s'; there are train, plan, generate, checkpoint and info (zero "
        "--help)",
        name);
}

static zero_status dispatch(int argc, char **argv)
{
    if (argc < 2) {
        help();
        return zero_fail(ZERO_ERR_INVALID, "no command given");
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help();
        return ZERO_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("zero %s\n", zero_version());
        return ZERO_OK;
    }
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        if (commands[i].run) return commands[i].run(argc - 2, argv + 2);
        return zero_fail(ZERO_ERR_UNSUPPORTED, "zero %s: not built in this version",
                         argv[1]);
    }
    return unknown(argv[1]);
}

/* A disk that is full shows only when the last line is written. */
static zero_status check_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return ZERO_OK;
    return zero_fail(ZERO_ERR_IO, "the standard output could not be written completely: %s",
                     strerror(errno));
}

/* Ranks fail with one message, which rank 0 tells before it ends the job. Whoever is still
 * here after that failed alone, before MPI was up, and has to speak for itself. */
static void let_rank_0_end_it(void)
{
    sleep(2);
    zero_sigterm_accept(); /* how some launchers end the others; it may be blocked here */
    sleep(1);
}

int main(int argc, char **argv)
{
#ifdef SIGXFSZ
    /* A file that grows beyond its limit is an error of write(). */
    signal(SIGXFSZ, SIG_IGN);
#endif
    /* Help and tables are said once; no rank but the first has anything to say there. */
    if (zero_launch_rank_hint() > 0 && !freopen("/dev/null", "w", stdout)) return 1;
    zero_status st = dispatch(argc, argv);
    if (st == ZERO_OK) st = check_output();
    if (st == ZERO_OK) return 0;
    int rank = zero_launch_rank_hint();
    bool is_alone = st == ZERO_ERR_MPI || st == ZERO_ERR_STALLED;
    if (rank > 0 && !is_alone) let_rank_0_end_it();
    if (rank > 0) fprintf(stderr, "zero: rank %d: %s\n", rank, zero_last_error());
    if (rank == 0) fprintf(stderr, "zero: %s\n", zero_last_error());
    zero_launch_abort(zero_exit_code(st));
}
