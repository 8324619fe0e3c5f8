#include "comm/collective.h"

#include "base/clock.h"
#include "base/hash.h"
#include "comm/check.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/local.h"
#include "comm/mpi_call.h"
#include "comm/thread.h"
#include "comm/wait.h"
#include "lists/mirror.h"

/* ---- set-up ---- */

uint32_t zero_collective_hash(const zero_collective_spec *spec)
{
    const int64_t common[] = {
        spec->kind,      spec->algorithm,
        spec->type,      spec->result,
        spec->reduction, spec->count,
        spec->tail,      zero_collective_has_root(spec->kind) ? spec->root : spec->stride};
    return (uint32_t)XXH3_64bits(common, sizeof common);
}

static zero_status build(zero_collective *op, zero_comm *comm,
                         const zero_collective_spec *spec, const zero_copier *copier)
{
    ZERO_AT_END(zero_collective_destroy)
    zero_collective new = {.comm = comm,
                           .add = MPI_OP_NULL,
                           .copier = copier,
                           .in_apart = zero_collective_in_apart(spec),
                           .out_apart = zero_collective_out_apart(spec)};
    ZERO_INVALID_IF(!comm->signals &&
                        zero_algorithm_needs_window(spec->algorithm, &comm->layout),
                    "%s works in a window, and this group has none: make it first",
                    zero_algorithm_name(spec->algorithm));
    ZERO_TRY(zero_steps_init(&new.steps, spec, &comm->layout, comm->rank));
    new.until_sent = zero_steps_until_sent(&new.steps);
    new.hash = zero_collective_hash(spec);
    int64_t most = 1;
    for (int64_t i = 0; i < new.steps.n_sums; i++)
        most = zero_max(most, new.steps.sums[i].n);
    ZERO_TRY(zero_new(&new.terms, most, "terms of sums"));
    if (comm->local) {
        /* Threads of one process exchange messages of ours alone. */
        ZERO_FAIL_IF(
            spec->algorithm != ZERO_ALGORITHM_P2P || spec->on_device, ZERO_ERR_UNSUPPORTED,
            "%s%s between ranks that are threads of one process: expected p2p in the "
            "host's memory",
            zero_algorithm_name(spec->algorithm), spec->on_device ? " on a device" : "");
        ZERO_TRY(zero_new(&new.messages, ZERO_COLLECTIVE_REQUESTS, "messages"));
    }
    ZERO_TRY(zero_mpi_call_init(&new));
    ZERO_GIVE(op, new);
    return ZERO_OK;
}

zero_status zero_collective_init(zero_collective *op, zero_comm *comm,
                                 const zero_collective_spec *spec)
{
    if (!spec->on_device) return build(op, comm, spec, NULL);
    return zero_fail(ZERO_ERR_INVALID,
                     "a %s on a device without copies between the device and the host: "
                     "expected zero_collective_init_on_device()",
                     zero_collective_kind_name(spec->kind));
}

zero_status zero_collective_init_on_device(zero_collective *op, zero_comm *comm,
                                           const zero_collective_spec *spec,
                                           const zero_copier *copier)
{
    ZERO_INVALID_IF(!spec->on_device || !copier || !copier->fetch || !copier->store ||
                        !copier->ended,
                    "a %s %s a device, %s table of copies: expected both",
                    zero_collective_kind_name(spec->kind),
                    spec->on_device ? "on" : "without", copier ? "with a" : "without a");
    bool has_window = zero_algorithm_get(spec->algorithm)->works_in_window;
    ZERO_INVALID_IF(spec->direct && (!copier->mark || !copier->copy || !copier->sum),
                    "a direct %s on a device that does not add up",
                    zero_collective_kind_name(spec->kind));
    ZERO_INVALID_IF(spec->direct && has_window && !copier->window,
                    "a direct %s on a device whose memory neighbours do not reach",
                    zero_collective_kind_name(spec->kind));
    ZERO_FAIL_IF(zero_family_whole(comm)->thread, ZERO_ERR_UNSUPPORTED,
                 "a %s on a device in a group with a progress thread: a device is used by "
                 "one thread only; start without --progress-thread",
                 zero_collective_kind_name(spec->kind));
    return build(op, comm, spec, copier);
}

void zero_collective_destroy(zero_collective *op)
{
    if (op->comm) zero_thread_lock(op->comm);
    if (op->is_active && op->messages) zero_local_drop(op);
    if (op->is_active) zero_flight_leave(op);
    if (op->comm) zero_thread_unlock(op->comm);
    zero_mpi_call_destroy(op);
    zero_steps_destroy(&op->steps);
    zero_free(op->terms, op->messages, op->given);
    *op = (zero_collective){0};
}

/* ---- begin, progress, wait ---- */

zero_status zero_collective_begin_as(zero_collective *op, int64_t sequence, const void *in,
                                     void *out, void *staging)
{
    assert(staging || zero_collective_staging(&op->steps.spec, op->steps.layout) == 0);
    assert(!op->is_active);
    const zero_comm *comm = op->comm;
    op->in = in;
    op->out = out;
    op->staging = staging;
    op->device_in = in;
    op->device_out = out;
    if (op->copier && staging && !op->steps.spec.direct) {
        zero_mirrors m = zero_collective_mirrors(&op->steps.spec, comm->size, comm->rank);
        op->in = (char *)staging + m.in;
        op->out = (char *)staging + m.out;
        op->staging = (char *)staging + m.staged;
    }
    op->sequence = sequence;
    zero_operation what = zero_flight_operation(op);
    if (op->copier && op->copier->place)
        ZERO_TRY(op->copier->place(op->copier->arg, &op->place));
    if (op->steps.spec.only == 0) ZERO_TRY(zero_compare(op->comm, &what));
    zero_thread_lock(op->comm);
    zero_status st = zero_flight_begin(op);
    zero_thread_unlock(op->comm);
    return st;
}

zero_status zero_collective_begin(zero_collective *op, const void *in, void *out,
                                  void *staging)
{
    return zero_collective_begin_as(op, op->comm->sequence, in, out, staging);
}

zero_status zero_collective_progress(zero_collective *op, bool *done)
{
    zero_thread_lock(op->comm);
    zero_status st = zero_flight_poll(op->comm, op);
    if (st == ZERO_OK) *done = !op->is_active;
    zero_thread_unlock(op->comm);
    return st;
}

zero_status zero_collective_poll(zero_comm *comm)
{
    zero_thread_lock(comm);
    zero_status st = zero_flight_poll(comm, NULL);
    zero_thread_unlock(comm);
    return st;
}

/* Polls that move nothing count as well: MPI may copy a part of a message in them. The
 * first of the two clock readings is the poll's own, in last_poll. */
zero_status zero_collective_poll_timed(zero_comm *comm, double *seconds)
{
    zero_thread_lock(comm);
    const zero_comm *whole = zero_family_whole(comm);
    bool is_active = zero_family_is_active(whole);
    zero_status st = zero_flight_poll(comm, NULL);
    if (is_active) *seconds += zero_clock_seconds() - whole->last_poll;
    zero_thread_unlock(comm);
    return st;
}

zero_status zero_collective_wait(zero_collective *op)
{
    double start = zero_clock_seconds();
    zero_thread_lock(op->comm);
    bool over = !op->is_active;
    zero_thread_unlock(op->comm);
    if (over) return ZERO_OK;
    ZERO_TRY(zero_wait_collective(op));
    op->comm->duration[op->steps.spec.kind].exposed += op->ended - start;
    op->duration.exposed += op->ended - start;
    return ZERO_OK;
}
