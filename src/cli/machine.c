#include "cli/machine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "math/backends.h"
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

zero_status zero_machine_device(const char *name, const zero_backend **backend)
{
    char why[256];
    zero_status st = zero_device_find(name, backend);
    if (st != ZERO_ERR_UNSUPPORTED) return st;
    snprintf(why, sizeof why, "%s", zero_last_error());
    return zero_fail(ZERO_ERR_ENV, "--device %s: %s", name, why);
}
