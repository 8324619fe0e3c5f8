/* Runs alone, or (test_launch.foreign) as two processes under the launcher of another MPI, where
 * the environment promises two ranks and each process finds itself alone. */
#define TEST_HAS_MAIN
#include "comm/launch.h"

#include <sys/wait.h>
#include <unistd.h>

#include "support/mpi_cmocka.h"

TEST(the_rank_hint_comes_from_the_environment)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    for (int i = 0; i < 4; i++) unsetenv(variables[i]);
    assert_int_equal(zero_launch_rank_hint(), 0);
    for (int i = 3; i >= 0; i--) { /* earlier in the list: closer to us */
        char rank[] = {(char)('5' + i), '\0'};
        setenv(variables[i], rank, 1);
        assert_int_equal(zero_launch_rank_hint(), 5 + i);
    }
    setenv(variables[0], "many", 1);
    assert_int_equal(zero_launch_rank_hint(), 6);
    for (int i = 0; i < 4; i++) unsetenv(variables[i]);
}

TEST(the_library_has_a_name_of_one_line)
{
    char text[64] = "", cut[5];
    zero_launch_library(text, sizeof text);
    zero_launch_library(cut, sizeof cut);
    assert_true(strlen(text) > 4 && !strpbrk(text, "\n\t,"));
    assert_true(strlen(cut) == 4 && strncmp(cut, text, 4) == 0);
}

/* Starts MPI alone under variables with which a launcher promises ranks; returns whether the
 * refusal names that launcher, its promise and our library. */
static bool is_refused_by_name(const char *launcher, const char *promise)
{
    char library[64];
    zero_launch_library(library, sizeof library);
    if (zero_launch_start(NULL, NULL) != ZERO_ERR_ENV) return false;
    const char *text = zero_last_error();
    bool named = strstr(text, launcher) && strstr(text, promise) && strstr(text, library);
    if (!named) print_error("%s\n", text);
    return zero_launch_stop() == ZERO_OK && named;
}

/* A process starts MPI once, so every launcher gets a process. */
TEST(the_refusal_names_the_launcher_and_our_library)
{
    static const struct {
        const char *launcher, *variable;
    } cases[] = {{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE"},
                 {"mpiexec of MPICH or Intel MPI", "MPI_LOCALNRANKS"},
                 {"Slurm's srun", "SLURM_STEP_NUM_TASKS"}};
    if (getenv("PMI_SIZE")) skip(); /* a launcher started us */
    for (size_t i = 0; i < COUNT(cases); i++) {
        int how = -1;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char promise[64];
            snprintf(promise, sizeof promise, "5 ranks (%s=5)", cases[i].variable);
            setenv(cases[i].variable, "5", 1);
            setenv("SLURM_STEP_ID", "0", 1);
            setenv("SLURM_PROCID", "0", 1);
            _exit(is_refused_by_name(cases[i].launcher, promise) ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_int_equal(how, 0);
    }
}

static void set_step_variables(pid_t task)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)task);
    setenv("SLURM_PTY_PORT", "4711", 1);
    setenv("SLURM_TASK_PID", pid, 1);
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "5", 1);
}

/* srun --pty has started a shell with the step's variables. A command typed into it has a process group
 * of its own; what a script or srun itself started has the shell's. */
TEST(a_command_typed_into_a_shell_of_srun_is_one_rank)
{
    static const struct {
        const char *also; /* a launcher inside the shell */
        bool is_typed;
        zero_status expected;
    } cases[] = {{NULL, true, ZERO_OK},
                 {NULL, false, ZERO_ERR_ENV},
                 {"OMPI_COMM_WORLD_SIZE", true, ZERO_ERR_ENV},
                 {"MPI_LOCALNRANKS", true, ZERO_ERR_ENV}};
    if (getenv("PMI_SIZE")) skip(); /* a launcher started us */
    for (size_t i = 0; i < COUNT(cases); i++) {
        int how = -1;
        pid_t shell = getpid(), child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            set_step_variables(shell);
            if (cases[i].also) setenv(cases[i].also, "5", 1);
            if (cases[i].is_typed && setpgid(0, 0) != 0) _exit(2);
            _exit(zero_launch_start(NULL, NULL) == cases[i].expected &&
                          zero_launch_stop() == ZERO_OK
                      ? 0
                      : 1);
        }
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_int_equal(how, 0);
    }
}

/* Under the launcher's own promise, or without a launcher under one made here. */
TEST(ranks_that_find_themselves_alone_are_refused)
{
    char library[64], promise[64];
    const char *size = getenv("PMI_SIZE");
    if (!size) setenv("MPI_LOCALNRANKS", "3", 1);
    snprintf(promise, sizeof promise, "%s=%s", size ? "PMI_SIZE" : "MPI_LOCALNRANKS",
             size ? size : "3");
    zero_launch_library(library, sizeof library);

    assert_fails(zero_launch_start(NULL, NULL), ZERO_ERR_ENV, promise);
    assert_told(library);
}

TEST(mpi_is_not_started_twice)
{
    assert_int_equal(zero_launch_start(NULL, NULL), ZERO_ERR_INVALID);
}

TEST(mpi_stops)
{
    int is_down = 0;
    assert_ok(zero_launch_stop());
    MPI_Finalized(&is_down);
    assert_true(is_down);
}

int main(void)
{
    return run_here(NULL, NULL);
}
