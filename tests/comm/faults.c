/* faults MODE LIMIT - run by faults.sh: the last rank misbehaves under a watchdog of LIMIT seconds.
 * Ends as our programs do, with one message and its exit code. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/check.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/divide.h"
#include "comm/launch.h"
#include "comm/thread.h"
#include "comm/watch.h"

#define ROUNDS 4

static zero_comm world;
static float in[64 * 16], out[64 * 16], staging[64 * 64];

static bool am_last(void)
{
    return world.rank == world.size - 1;
}

static zero_status run_in(zero_comm *group, zero_collective_kind kind, int unit)
{
    zero_collective op;
    zero_collective_spec spec = {.kind = kind, .count = 16, .stride = 16, .unit = unit};
    if (zero_collective_staging(&spec, &group->layout) > sizeof staging) abort();
    ZERO_TRY(zero_collective_init(&op, group, &spec));
    ZERO_TRY(zero_collective_begin(&op, in, out, staging));
    ZERO_TRY(zero_collective_wait(&op));
    zero_collective_destroy(&op);
    return ZERO_OK;
}

static zero_status run(zero_collective_kind kind, int unit)
{
    return run_in(&world, kind, unit);
}

/* Rounds on groups 0, 1, ...; the last rank leaves out one all-gather, or with -1 none. */
static zero_status run_rounds(int left_out)
{
    for (int unit = 0; unit < ROUNDS; unit++) {
        ZERO_TRY(run(ZERO_REDUCE_SCATTER, unit));
        if (!am_last() || unit != left_out) ZERO_TRY(run(ZERO_ALL_GATHER, unit));
    }
    return ZERO_OK;
}

static zero_status skip_one(void)
{
    ZERO_TRY(zero_check_start(&world));
    return run_rounds(1);
}

static zero_status skip_the_last(void)
{
    return run_rounds(ROUNDS - 1);
}

/* The last rank leaves out a JOIN of its TP group. */
static zero_status run_joins(int left_out)
{
    for (int unit = 0; unit < ROUNDS; unit++) {
        if (!am_last() || unit != left_out)
            ZERO_TRY(run_in(zero_comm_tp(&world), ZERO_ALL_GATHER, unit));
        ZERO_TRY(run_in(zero_comm_data(&world), ZERO_REDUCE_SCATTER, unit));
    }
    return ZERO_OK;
}

static zero_status skip_a_join(void)
{
    return run_joins(ROUNDS - 1);
}

static zero_status skip_a_join_checked(void)
{
    ZERO_TRY(zero_check_start(&world));
    return run_joins(ROUNDS - 1);
}

/* The last rank leaves out a reduction of its shard group. */
static zero_status run_reductions(int left_out)
{
    for (int unit = 0; unit < ROUNDS; unit++) {
        if (!am_last() || unit != left_out)
            ZERO_TRY(run_in(zero_comm_shard(&world), ZERO_REDUCE_SCATTER, unit));
        ZERO_TRY(run_in(zero_comm_replicas(&world), ZERO_REDUCE_SCATTER, unit));
    }
    return ZERO_OK;
}

static zero_status skip_a_reduction(void)
{
    return run_reductions(ROUNDS - 1);
}

static zero_status skip_a_reduction_checked(void)
{
    ZERO_TRY(zero_check_start(&world));
    return run_reductions(ROUNDS - 1);
}

/* The last rank sleeps, and is not in MPI_Finalize: there the mpirun of Open MPI 4.1 with PMIx 4.2
 * hangs or crashes in a third of the aborts. */
static zero_status leave_our_code(void)
{
    ZERO_TRY(run_rounds(am_last() ? ROUNDS - 1 : -1));
    if (am_last()) sleep(600);
    return ZERO_OK;
}

static zero_status raise_in_last(int number)
{
    ZERO_TRY(run_rounds(-1));
    if (am_last()) raise(number);
    return run_rounds(-1);
}

static zero_status stop_itself(void)
{
    return raise_in_last(SIGSTOP);
}

static zero_status kill_itself(void)
{
    return raise_in_last(SIGKILL);
}

/* Overwrites malloc's bookkeeping after each block, until a block is the heap's last one: the next
 * malloc finds its data about the rest corrupted, and aborts while it holds its lock. Volatile,
 * so that compilers do not optimise it away. */
static zero_status corrupt_heap(void)
{
    const size_t size = 1000;
    ZERO_TRY(run_rounds(-1));
    for (int i = 0; am_last() && i < 10000; i++) {
        char *volatile block = malloc(size);
        memset(block, 0xa5, size + 64);
    }
    return run_rounds(-1);
}

static zero_status fail_an_assertion(void)
{
    return raise_in_last(SIGABRT);
}

static zero_status read_nowhere(void)
{
    ZERO_TRY(run_rounds(-1));
    const float *volatile nowhere = NULL;
    if (am_last()) in[0] = nowhere[1000];
    return run_rounds(-1);
}

static zero_status skip_a_vote(void)
{
    bool any;
    while (am_last()) ZERO_TRY(zero_collective_poll(&world));
    return zero_comm_any(&world, false, &any);
}

/* Writes its process number to a file, for the script. */
static zero_status write_pid(void)
{
    char name[32];
    snprintf(name, sizeof name, "pid.%d", world.rank);
    FILE *file = fopen(name, "w");
    if (!file) return zero_fail(ZERO_ERR_IO, "%s cannot be written", name);
    fprintf(file, "%ld\n", (long)getpid());
    fclose(file);
    return ZERO_OK;
}

/* Like a program that takes SIGTERM between its steps. Called before MPI starts threads: a signal
 * goes to any thread that does not block it. */
static sigset_t block_sigterm(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return set;
}

/* The script sends SIGTERM to the other ranks, as launchers do when a rank has died. */
static zero_status block_and_stop(void)
{
    ZERO_TRY(write_pid());
    return stop_itself();
}

static zero_status take_sigterm(void)
{
    sigset_t set = block_sigterm();
    struct timespec at_once = {.tv_nsec = 1};
    if (sigtimedwait(&set, NULL, &at_once) == SIGTERM) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "SIGTERM is no longer pending");
}

/* All ranks receive SIGTERM and continue: the last one begins a collective now and then, and the
 * others wait for the last of these, longer than a rank waits for a dead one. */
static zero_status block_and_go_on(void)
{
    enum { JOBS = 5 };
    static float results[JOBS][64];
    zero_collective jobs[JOBS];
    zero_collective_spec spec = {.kind = ZERO_ALL_GATHER, .count = 16, .stride = 16};
    kill(getpid(), SIGTERM);
    for (int i = 0; i < JOBS; i++) ZERO_TRY(zero_collective_init(&jobs[i], &world, &spec));
    for (int i = 0; i < JOBS; i++) {
        if (am_last()) sleep(1);
        ZERO_TRY(zero_collective_begin(&jobs[i], in, results[i], NULL));
        if (am_last()) ZERO_TRY(zero_collective_wait(&jobs[i]));
    }
    ZERO_TRY(zero_collective_wait(&jobs[JOBS - 1]));
    for (int i = 0; i < JOBS; i++) {
        ZERO_TRY(zero_collective_wait(&jobs[i]));
        zero_collective_destroy(&jobs[i]);
    }
    return take_sigterm();
}

/* The script suspends the whole job while the other ranks wait for the last one, with a SIGTERM
 * pending. */
static zero_status be_suspended(void)
{
    kill(getpid(), SIGTERM);
    ZERO_TRY(write_pid());
    ZERO_TRY(run_rounds(-1));
    ZERO_TRY(zero_comm_barrier(&world));
    double napped = 0.0; /* seconds; a suspension counts as one short nap */
    while (am_last() && napped < 1.5) {
        double start = zero_clock_seconds();
        ZERO_TRY(zero_collective_poll(&world));
        usleep(10000);
        napped += fmin(zero_clock_seconds() - start, 0.1);
    }
    return run_rounds(-1);
}

static zero_status want_a_thread(void)
{
    return zero_progress_start(&world, 1e-3);
}

static const struct {
    const char *name;
    zero_status (*run)(void);
    bool blocks; /* SIGTERM */
    int tp;      /* ranks of a TP group; 0: no family */
    int shard;   /* ranks of a shard group; 0: no hybrid sharding */
} modes[] = {
    {"skip-one-checked", skip_one, false, 0, 0},
    {"skip-the-last", skip_the_last, false, 0, 0},
    {"skip-a-join", skip_a_join, false, 2, 0},
    {"skip-a-join-checked", skip_a_join_checked, false, 2, 0},
    {"skip-a-reduction", skip_a_reduction, false, 1, 2},
    {"skip-a-reduction-checked", skip_a_reduction_checked, false, 1, 2},
    {"skip-a-vote", skip_a_vote, false, 0, 0},
    {"leave-our-code", leave_our_code, false, 0, 0},
    {"stop", stop_itself, false, 0, 0},
    {"kill", kill_itself, false, 0, 0},
    {"corrupt-heap", corrupt_heap, false, 0, 0},
    {"abort", fail_an_assertion, false, 0, 0},
    {"segv", read_nowhere, false, 0, 0},
    {"block-and-stop", block_and_stop, true, 0, 0},
    {"block-and-go-on", block_and_go_on, true, 0, 0},
    {"be-suspended", be_suspended, true, 0, 0},
    {"want-a-thread", want_a_thread, false, 0, 0},
};

static zero_status run_mode(const char *name, double limit)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(name, modes[i].name) != 0) continue;
        if (modes[i].blocks) (void)block_sigterm();
        ZERO_TRY(zero_launch_start(NULL, NULL));
        ZERO_TRY(zero_comm_world(&world));
        if (modes[i].tp > 0)
            ZERO_TRY(zero_comm_divide(&world, modes[i].tp, modes[i].shard, 1));
        ZERO_TRY(zero_watch_start(&world, limit));
        ZERO_TRY(modes[i].run());
        ZERO_TRY(zero_comm_stop_helpers(&world));
        zero_comm_destroy(&world);
        return zero_launch_stop();
    }
    return zero_fail(ZERO_ERR_INVALID, "no mode '%s'", name);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 1;
    zero_status st = run_mode(argv[1], atof(argv[2]));
    if (st == ZERO_OK) return 0;
    fprintf(stderr, "faults: rank %d: %s\n", world.rank, zero_last_error());
    zero_launch_abort(zero_exit_code(st));
}
