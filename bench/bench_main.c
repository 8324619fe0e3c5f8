#include "bench_main.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/options.h"
#include "comm/launch.h"

/* All ranks fail alike: rank 0 prints the message, the others wait for it to end the job. */
int bench_main(const zero_command *command, int argc, char **argv)
{
    int rank = zero_launch_rank_hint();
    if (rank > 0 && !freopen("/dev/null", "w", stdout)) return 1;
    zero_status st = zero_options_run(command, argc - 1, argv + 1);
    if (st == ZERO_OK) return 0;
    if (rank > 0) sleep(3);
    fprintf(stderr, "%s: %s\n", command->name, zero_last_error());
    zero_launch_abort(zero_exit_code(st));
}
