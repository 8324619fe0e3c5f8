#include "comm/launch.h"

#include <execinfo.h>
#if defined(OMPI_MAJOR_VERSION) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <pwd.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/mpi_error.h"

/* A number >= 0 from the environment; -1 if it is unset or not a number. */
static long read_number(const char *variable)
{
    const char *text = getenv(variable);
    if (!text || *text < '0' || *text > '9') return -1;
    char *end;
    long value = strtol(text, &end, 10);
    return *end == '\0' ? value : -1;
}

/* Slurm's job script is a step, too, but not one of parallel tasks: it has no number, or a
 * reserved one at the end of 32 bits. */
static bool is_slurm_task(void)
{
    const long first_reserved = 0xfffffff0L;
    long step = read_number("SLURM_STEP_ID");
    return read_number("SLURM_PROCID") >= 0 && step >= 0 && step < first_reserved;
}

typedef struct {
    const char *name, *variable; /* the variable holds the number of ranks it started */
} launcher;

#define PMI "a PMI launcher (mpiexec of MPICH or Intel MPI, or srun --mpi=pmi2)"

/* The innermost launcher comes first: ranks of an mpirun inside a Slurm job see Slurm's
 * variables as well. */
static const launcher launchers[] = {{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE"},
                                     {PMI, "PMI_SIZE"},
                                     {PMI, "MPI_LOCALNRANKS"},
                                     {"Slurm's srun", "SLURM_STEP_NUM_TASKS"}};

/* True in a command that the user has typed into a shell of srun --pty. The variables are
 * the shell's: no srun started this process, and none of its siblings runs it. An
 * interactive shell gives each command a process group of its own. Launchers in that shell
 * have variables of their own. */
static bool is_typed_in_step(void)
{
    long task = read_number("SLURM_TASK_PID");
    bool has_launcher =
        read_number("OMPI_COMM_WORLD_SIZE") >= 0 || read_number("MPI_LOCALNRANKS") >= 0;
    if (!getenv("SLURM_PTY_PORT") || task <= 0 || has_launcher) return false;
    pid_t group = getpgid((pid_t)task);
    return group >= 0 && group != getpgrp();
}

/* The number of ranks started; -1 without a known launcher. */
static long count_launched(launcher *found)
{
    const int slurm = ZERO_COUNT(launchers) - 1;
    for (int i = 0; i < slurm; i++) {
        *found = launchers[i];
        if (read_number(found->variable) >= 0) return read_number(found->variable);
    }
    *found = launchers[slurm];
    return is_slurm_task() ? read_number(found->variable) : -1;
}

zero_status zero_launch_limit(zero_deadline *d, double watchdog, bool is_given)
{
    const double longer = 5.0;
    launcher by;
    return zero_deadline_open(d, is_given ? watchdog : longer * watchdog,
                              count_launched(&by) >= 0, zero_launch_rank_hint(),
                              zero_exit_code(ZERO_ERR_STALLED));
}

static zero_status start(int *argc, char ***argv, int wanted, int *level)
{
    /* The first backtrace() loads a library. If Open MPI's crash handler were the first to
     * call it, malloc on a broken heap could hang, and the job would never end. */
    void *frame;
    (void)backtrace(&frame, 1);

    /* Without mpirun Open MPI starts a daemon beside the rank, which looks for ssh in PATH,
     * though it has no other node to reach; and its libraries end in a crash without any
     * home directory. */
    setenv("OMPI_MCA_plm", "isolated", 0);
    if (!getpwuid(getuid())) setenv("HOME", "/", 0);
    if (is_typed_in_step()) {
        /* So that MPI starts one rank, in the way that it does without a launcher. */
        static const char *const variables[] = {
            "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_PROCID",   "PMI_FD",
            "PMI_SIZE",      "PMI_RANK",     "PMIX_NAMESPACE", "PMIX_RANK"};
        for (int i = 0; i < ZERO_COUNT(variables); i++) unsetenv(variables[i]);
    }

    int is_up = 0;
    ZERO_TRY(zero_mpi(MPI_Initialized(&is_up)));
    ZERO_INVALID_IF(
        is_up,
        "MPI is initialized already: it starts once per process; use zero_comm_open()");
    ZERO_TRY(zero_mpi(MPI_Init_thread(argc, argv, wanted, level)));
    int size = 0;
    ZERO_TRY(zero_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size)));
    launcher by;
    long launched = count_launched(&by);
    if (size > 1 || launched <= 1) return ZERO_OK;

    char library[64];
    zero_launch_library(library, sizeof library);
    return zero_fail(
        ZERO_ERR_ENV,
        "%s started %ld ranks (%s=%ld), but this one is alone: the program is linked with "
        "%s, which does not understand this launcher. Start it with the mpirun of %s "
        "(under Slurm: srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH; srun --mpi=list "
        "shows the choices), or rebuild it with the launcher's MPI",
        by.name, launched, by.variable, launched, library, library);
}

zero_status zero_launch_start(int *argc, char ***argv)
{
    int level;
    return start(argc, argv, MPI_THREAD_FUNNELED, &level);
}

zero_status zero_launch_start_threaded(int *argc, char ***argv)
{
    int level;
    ZERO_TRY(start(argc, argv, MPI_THREAD_MULTIPLE, &level));
    if (level == MPI_THREAD_MULTIPLE) return ZERO_OK;
    char library[64];
    zero_launch_library(library, sizeof library);
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "a progress thread needs MPI at thread level MULTIPLE (%d), but this %s gives "
        "level %d: run without the thread, or use an MPI built for that level",
        MPI_THREAD_MULTIPLE, library, level);
}

zero_status zero_launch_start_serialized(void)
{
    int level;
    return start(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
}

zero_status zero_launch_stop(void)
{
    return zero_mpi(MPI_Finalize());
}

zero_status zero_launch_leave(zero_comm *world)
{
    zero_deadline *d = world->deadline;
    ZERO_TRY(zero_comm_stop_helpers(world));
    zero_deadline_until_exit(d);
    zero_comm_destroy(world);
    zero_deadline_begin(d, "ending MPI");
    ZERO_TRY(zero_launch_stop());
    zero_deadline_end(d);
    return ZERO_OK;
}

#define ABORT_SECONDS 10

_Noreturn void zero_launch_abort(int code)
{
    int is_up = 0, is_down = 0, size = 0;
    zero_deadline late;
    fflush(NULL); /* neither exit below does */
    /* If the network to the launcher is cut, MPI_Abort hangs. No process may be left
     * behind. */
    if (zero_deadline_open(&late, ABORT_SECONDS, false, 0, code) == ZERO_OK)
        zero_deadline_begin(&late, NULL);
    MPI_Initialized(&is_up);
    MPI_Finalized(&is_down);
    if (is_up && !is_down) MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* A single rank ends no other, and MPI_Abort would bury our message under its own. */
    if (size == 1) MPI_Finalize();
    if (size > 1) MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code);
}

int zero_launch_rank_hint(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID"};
    for (int i = 0; i < ZERO_COUNT(variables); i++) {
        long rank = read_number(variables[i]);
        if (rank >= 0) return (int)rank;
    }
    return 0;
}

bool zero_launch_has_own_terminal(void)
{
    launcher by;
    bool is_launched = count_launched(&by) >= 0 || zero_launch_rank_hint() > 0 ||
                       read_number("PMIX_RANK") >= 0;
    return !is_launched || (is_slurm_task() && read_number("OMPI_COMM_WORLD_SIZE") < 0);
}

#ifdef MPIX_CUDA_AWARE_SUPPORT
bool zero_launch_is_cuda_aware(void)
{
    int is_up = 0, is_over = 0;
    MPI_Initialized(&is_up);
    MPI_Finalized(&is_over);
    if (!is_up || is_over) return MPIX_CUDA_AWARE_SUPPORT; /* as it was built */
    return MPIX_Query_cuda_support() == 1;
}

const char *zero_launch_cuda(void)
{
    return zero_launch_is_cuda_aware() ? "CUDA-aware" : "not CUDA-aware";
}
#else
bool zero_launch_is_cuda_aware(void)
{
    return false;
}

const char *zero_launch_cuda(void)
{
    return "not known to be CUDA-aware";
}
#endif

/* "Open MPI v4.1.4, package: ..." and "MPICH Version:\t4.0.2\nMPICH Release date: ..." both
 * have name and version before the first comma or line end. */
void zero_launch_library(char *text, size_t size)
{
    char all[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len = 0;
    if (MPI_Get_library_version(all, &len) != MPI_SUCCESS) zero_print(all, "MPI");
    all[strcspn(all, ",\n")] = '\0';
    for (char *c = all; *c; c++)
        if (*c == '\t') *c = ' ';
    snprintf(text, size, "%s", all);
}
