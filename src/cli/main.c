#include <signal.h>
#include <unistd.h>

#include "base/ending.h"
#include "cli/help.h"
#include "cli/output.h"
#include "comm/launch.h"
#include "comm/sigterm.h"
#include "zero/version.h"

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return zero_same_text(word, a) || zero_same_text(word, b);
}

static zero_status dispatch(int argc, char **argv)
{
    if (argc < 2) {
        ZERO_TRY(zero_help_show_all(stdout));
        return zero_fail(ZERO_ERR_INVALID, "no command given");
    }
    if (is_one_of(argv[1], "--help", "-h")) return zero_help_show_all(stdout);
    if (is_one_of(argv[1], "--version", "version")) {
        printf("zero %s\n", zero_version());
        return ZERO_OK;
    }
    const zero_command *command = zero_command_find(argv[1]);
    return command ? zero_options_run(command, argc - 2, argv + 2)
                   : zero_help_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    zero_ending_begin();
    if (!zero_output_begin())
        return zero_exit_code(ZERO_ERR_ENV); /* nobody could read why */
#ifdef SIGXFSZ
    /* A file that grows beyond its limit is an error of write(). */
    signal(SIGXFSZ, SIG_IGN);
#endif
    /* Only rank 0 prints help and tables. */
    if (zero_launch_rank_hint() > 0 && !freopen("/dev/null", "w", stdout)) return 1;
    zero_status st = dispatch(argc, argv);
    if (st == ZERO_OK) st = zero_output_check();
    if (st == ZERO_OK) return 0;
    int rank = zero_launch_rank_hint();
    bool is_alone = st == ZERO_ERR_MPI || st == ZERO_ERR_STALLED;
    /* Rank 0 prints the message that all ranks have and ends the job. A rank still alive
     * after that failed alone and prints its own message. */
    if (rank > 0 && !is_alone) {
        sleep(2);
        zero_sigterm_accept(); /* how some launchers end the others; it may be blocked */
        sleep(1);
    }
    bool is_named = rank == 0 || zero_failure_keep(st).is_agreed;
    if (!is_named) fprintf(stderr, "zero: rank %d: %s\n", rank, zero_last_error());
    if (is_named) fprintf(stderr, "zero: %s\n", zero_last_error());
    zero_launch_abort(zero_exit_code(st));
}
