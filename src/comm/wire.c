#include "comm/wire.h"

#include "base/clock.h"
#include "comm/comm.h"
#include "comm/mpi_error.h"
#include "comm/wait.h"

#define FAST   4e8                  /* bytes per second */
#define LEAST  (INT64_C(60) << 10)  /* Open MPI's TCP sends up to 64 KiB without asking */
#define MOST   (INT64_C(512) << 10) /* as without a limit */
#define ENOUGH 2e-3                 /* seconds */
#define FIRST  (INT64_C(64) << 10)
#define LAST   (INT64_C(1) << 20)
#define PASSES 5

/* The first ranks of the nodes in a ring. */
typedef struct {
    int from, to; /* ranks; -1: this rank is not of them */
    char *in, *out;
} ring;

static ring make(const zero_layout *layout, int rank)
{
    ring r = {.from = -1, .to = -1};
    if (layout->local_of[rank] > 0) return r;
    const int node = layout->node_of[rank], n = layout->n_nodes;
    for (int peer = layout->size - 1; peer >= 0; peer--) {
        if (layout->local_of[peer] > 0) continue;
        if (layout->node_of[peer] == (node + 1) % n) r.to = peer;
        if (layout->node_of[peer] == (node + n - 1) % n) r.from = peer;
    }
    return r;
}

/* As a part of the operation that began last. *seconds: 0 on ranks that are not in the
 * ring. */
static zero_status pass(zero_comm *comm, const ring *r, int64_t bytes, double *seconds)
{
    MPI_Request in, out;
    const zero_operation what =
        zero_operation_control(ZERO_OPERATION_MOST, comm->control_sequence - 1, bytes, -1);
    *seconds = 0.0;
    if (r->to < 0) return ZERO_OK;
    const double begun = zero_clock_seconds();
    ZERO_TRY(zero_mpi_check(
        MPI_Irecv(r->in, (int)bytes, MPI_BYTE, r->from, ZERO_WAIT_TAG, comm->control, &in),
        "MPI_Irecv of a trial"));
    ZERO_TRY(zero_mpi_check(
        MPI_Isend(r->out, (int)bytes, MPI_BYTE, r->to, ZERO_WAIT_TAG, comm->control, &out),
        "MPI_Isend of a trial"));
    ZERO_TRY(zero_wait_message(comm, &what, &in));
    ZERO_TRY(zero_wait_message(comm, &what, &out));
    *seconds = zero_clock_seconds() - begun;
    return ZERO_OK;
}

/* The fastest of some passes, of the slowest rank. The passes follow each other, so ranks
 * are in step after the first. */
static zero_status fastest(zero_comm *comm, const ring *r, int64_t bytes, int passes,
                           double *seconds)
{
    double mine = INFINITY, one;
    int64_t most;
    for (int i = 0; i < passes; i++) {
        ZERO_TRY(pass(comm, r, bytes, &one));
        mine = fmin(mine, one);
    }
    ZERO_TRY(zero_comm_most(comm, (int64_t)(1e9 * mine), &most));
    *seconds = 1e-9 * (double)zero_max(most, 1);
    return ZERO_OK;
}

zero_status zero_wire_try(zero_comm *comm)
{
    ZERO_FREED char *in = NULL, *out = NULL;
    double seconds;
    int64_t bytes = FIRST;
    comm->wire = (zero_wire){0};
    if (comm->local || comm->layout.n_nodes == 1) return ZERO_OK;
    ring r = make(&comm->layout, comm->rank);
    zero_status st = zero_new(&in, LAST, "a trial of links");
    if (st == ZERO_OK) st = zero_new(&out, LAST, "a trial of links");
    ZERO_TRY(zero_agree(comm, st));
    r.in = in;
    r.out = out;
    ZERO_TRY(fastest(comm, &r, 1, PASSES, &comm->wire.latency));
    for (;; bytes *= 2) {
        ZERO_TRY(fastest(comm, &r, bytes, PASSES, &seconds));
        if (seconds >= ENOUGH || bytes == LAST) break;
    }
    comm->wire.rate = (double)bytes / seconds;
    return ZERO_OK;
}

int64_t zero_wire_message(const zero_wire *wire)
{
    if (wire->rate == 0.0 || wire->rate > FAST) return 0;
    const double in_flight = 2.0 * wire->rate * 2.0 * wire->latency;
    return zero_min(MOST, zero_max(LEAST, (int64_t)(in_flight / ZERO_PACE)));
}
