#include "cli/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "math/blas.h"
#include "train/metrics.h"

/* BLAS threads that the environment asks for, and the variable that does, or 0 and NULL: the
 * libraries' own variables first, then OpenMP's, in the libraries' order. */
static int threads_from_environment(const char **name)
{
    const char *names[] = {"OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
                           "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        int n = text ? atoi(text) : 0;
        *name = names[i];
        if (n > 0) return n;
    }
    *name = NULL;
    return 0;
}

zero_status zero_machine_read(int64_t threads, zero_topology *topology, int *blas_threads,
                              const char **threads_from)
{
    ZERO_TRY(zero_topology_read(topology));
    int wanted = (int)threads;
    *threads_from = "--threads";
    if (wanted <= 0) wanted = threads_from_environment(threads_from);
    *blas_threads = zero_blas_set_threads(wanted > 0 ? wanted : 1);
    if (threads > 0 && *blas_threads != wanted)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--threads %d: this BLAS gives %d threads per rank (0: it cannot be "
            "told); choose fewer, or leave the option out",
            wanted, *blas_threads);
    return ZERO_OK;
}

size_t zero_machine_room(const zero_topology *topology, int node_ranks)
{
    return topology->memory_available / (size_t)node_ranks + zero_metrics_resident_peak();
}

/* The same failure with the option in front. Another machine, or another build, would do. */
static zero_status refuse(const char *device, zero_status status)
{
    char why[1024];
    if (status == ZERO_OK) return status;
    snprintf(why, sizeof why, "%s", zero_last_error());
    if (status == ZERO_ERR_UNSUPPORTED) status = ZERO_ERR_ENV;
    return zero_fail(status, "--device %s: %s", device, why);
}

zero_status zero_machine_device(const char *device, const zero_backend **backend)
{
    char where[128];
    int n;
    zero_device_choice choice;
    const zero_plugin *plugin = NULL;
    snprintf(where, sizeof where, "--device %s", device);
    ZERO_TRY(zero_device_read(device, where, &choice));
    zero_status st = zero_device_find(device, backend, &plugin);
    if (st == ZERO_OK && plugin) st = zero_device_count(plugin, &choice, &n);
    return refuse(device, st);
}

zero_status zero_machine_place(const char *device, zero_comm *comm,
                               zero_device_place *place)
{
    char where[128];
    snprintf(where, sizeof where, "--device %s", device);
    ZERO_TRY(zero_devices_place(device, where, comm, place));
    if (place->note[0] && zero_comm_is_root(comm))
        fprintf(stderr, "zero: note: --device %s: %s\n", device, place->note);
    return ZERO_OK;
}
