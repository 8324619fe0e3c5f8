#include "cli/machine.h"

#include "math/blas.h"
#include "math/threads.h"

#define FEW_THREADS 64 /* that any machine starts, to try what they do */

typedef struct {
    const zero_binding *binding;
    atomic_bool has_failed;
} binding_call;

static void take_cores(int index, void *arg)
{
    binding_call *c = arg;
    if (!zero_binding_take(c->binding, index)) c->has_failed = true;
}

zero_status zero_machine_take(int local_rank, int node_ranks, int64_t *threads,
                              zero_topology *topology, const char **from,
                              zero_binding *binding)
{
    /* Batch systems set this variable to the cores of a task. A list ("4,2") is for nested
     * teams. */
    const char *const name = "OMP_NUM_THREADS", *text = getenv(name);
    const int n = text ? atoi(text) : 0;
    binding_call c = {.binding = binding};
    ZERO_TRY(zero_topology_read(topology));
    zero_blas_set_threads(1);
    const bool is_asked = n >= 1 && n <= ZERO_MOST_THREADS && zero_cpu_has_threads();
    *from = *threads > 0 ? "--threads" : is_asked ? name : NULL;
    if (*threads <= 0) *threads = is_asked ? n : 1;
    ZERO_INVALID_IF(*threads > zero_max(FEW_THREADS, topology->machine_threads),
                    "%s %d: this machine runs %d threads at a time; choose at most "
                    "that many per rank",
                    *from, (int)*threads, topology->machine_threads);
    if (*threads == 1) return ZERO_OK;
    ZERO_FAIL_IF(
        !zero_cpu_has_threads(), ZERO_ERR_ENV,
        "--threads %d: this build has no OpenMP, so a rank has one thread; start more "
        "ranks, or build with a compiler that has it and -DZERO_OPENMP=ON",
        (int)*threads);
    ZERO_TRY(zero_binding_open(binding, (int)*threads, local_rank, node_ranks));
    if (binding->binds) zero_cpu_each_thread((int)*threads, take_cores, &c);
    if (c.has_failed)
        zero_print(binding->text, "the system refused to bind them to cores of their own");
    else if (binding->cores > topology->usable_cores)
        topology->usable_cores = binding->cores;
    return ZERO_OK;
}

zero_status zero_machine_device(const char *device, const zero_backend **backend)
{
    char where[128];
    int n;
    zero_device_choice choice;
    const zero_plugin *plugin = NULL;
    zero_print(where, "--device %s", device);
    ZERO_TRY(zero_device_read(device, where, &choice));
    zero_status st = zero_device_find(device, backend, &plugin);
    if (st == ZERO_OK && plugin) st = zero_device_count(plugin, &choice, &n);
    if (st == ZERO_OK) return st;
    /* The same failure with the option in front. Another machine, or another build, would
     * do. */
    char why[1024];
    zero_print(why, "%s", zero_last_error());
    return zero_fail(st == ZERO_ERR_UNSUPPORTED ? ZERO_ERR_ENV : st, "--device %s: %s",
                     device, why);
}

zero_status zero_machine_place(const char *device, zero_comm *comm,
                               zero_device_place *place)
{
    char where[128];
    zero_print(where, "--device %s", device);
    ZERO_TRY(zero_devices_place(device, where, comm, place));
    if (place->note[0] && zero_comm_is_root(comm))
        fprintf(stderr, "zero: note: --device %s: %s\n", device, place->note);
    return ZERO_OK;
}
