/* bench_calls [BYTES [ROUNDS]]: the cost of an operation of zero/collective.h, begun and waited for,
 * beside MPI's own of the same kind, one after the other in each round. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include "zero/collective.h"

enum { KINDS = 3, IN_A_ROW = 20 };

static const char *const names[KINDS] = {"all-reduce", "all-gather", "reduce-scatter"};

static zero_comm *comm;
static MPI_Comm mpi;
static float *in, *out;
static int64_t count; /* of a piece */

static void stop(void)
{
    fprintf(stderr, "bench_calls: %s\n", zero_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void run_mpi(int kind)
{
    MPI_Request request;
    const int n = (int)count;
    if (kind == 0)
        MPI_Iallreduce(MPI_IN_PLACE, in, n * zero_comm_size(comm), MPI_FLOAT, MPI_SUM, mpi,
                       &request);
    else if (kind == 1)
        MPI_Iallgather(in, n, MPI_FLOAT, out, n, MPI_FLOAT, mpi, &request);
    else
        MPI_Ireduce_scatter_block(in, out, n, MPI_FLOAT, MPI_SUM, mpi, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void run_ours(int kind)
{
    zero_work *work;
    bool done;
    zero_status st;
    if (kind == 0)
        st = zero_all_reduce_begin(comm, ZERO_SUM, ZERO_NUMBER_FP32,
                                   count * zero_comm_size(comm), in, &work);
    else if (kind == 1)
        st = zero_all_gather_begin(comm, (size_t)count * sizeof(float), in, out, &work);
    else
        st = zero_reduce_scatter_begin(comm, ZERO_SUM, ZERO_NUMBER_FP32, count, in, out,
                                       &work);
    if (st != ZERO_OK || zero_work_wait(work, 0.0, &done) != ZERO_OK) stop();
    zero_work_close(&work);
}

static double measure(void (*run)(int kind), int kind)
{
    MPI_Barrier(mpi);
    double start = MPI_Wtime();
    for (int i = 0; i < IN_A_ROW; i++) run(kind);
    return 1e6 * (MPI_Wtime() - start) / IN_A_ROW;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(int n, double *x)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return x[n / 2];
}

static void measure_kind(int kind, int rounds)
{
    double *theirs = calloc((size_t)rounds, sizeof *theirs);
    double *ours = calloc((size_t)rounds, sizeof *ours);
    double *ratio = calloc((size_t)rounds, sizeof *ratio);
    for (int i = 0; i < rounds; i++) {
        theirs[i] = measure(run_mpi, kind);
        ours[i] = measure(run_ours, kind);
        ratio[i] = ours[i] / theirs[i];
    }
    if (zero_comm_rank(comm) == 0) {
        const double middle = median(rounds, ratio);
        const double mpi_us = median(rounds, theirs), our_us = median(rounds, ours);
        printf("%-14s %7.2f (%.2f) %7.2f (%.2f) %7.2f\n", names[kind], mpi_us, theirs[0],
               our_us, ours[0], middle);
    }
    free(theirs);
    free(ours);
    free(ratio);
}

int main(int argc, char **argv)
{
    int level;
    const long bytes = argc > 1 ? strtol(argv[1], NULL, 10) : 4096;
    const long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 301;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi);
    if (zero_comm_open(mpi, 60.0, &comm) != ZERO_OK || bytes < 4 || rounds < 1) stop();
    count = bytes / (int64_t)sizeof(float) / zero_comm_size(comm);
    if (count < 1) count = 1;
    in = calloc((size_t)(count * zero_comm_size(comm)), sizeof *in);
    out = calloc((size_t)(count * zero_comm_size(comm)), sizeof *out);
    if (!in || !out) stop();
    if (zero_comm_rank(comm) == 0)
        printf("%d ranks, %ld bytes: microseconds, median (least)\n%-14s %14s %14s %9s\n",
               zero_comm_size(comm), bytes, "", "MPI", "zero", "zero/MPI");
    for (int kind = 0; kind < KINDS; kind++) measure_kind(kind, (int)rounds);
    free(in);
    free(out);
    zero_comm_close(&comm);
    MPI_Comm_free(&mpi);
    MPI_Finalize();
}
