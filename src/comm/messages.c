/* messages.c - exchanges and barriers of zero/collective.h: messages of MPI's own. */
#include "comm/comm.h"
#include "comm/family.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "comm/works.h"

#define MOST ((int64_t)1 << 30) /* bytes of one of MPI's messages */
#define TAGS 32768              /* of messages; numbers of exchanges of all ranks */

/* Pieces of at most MOST bytes: MPI counts in int. A message without bytes is one. */
static int count_pieces(const zero_message *m)
{
    return (int)zero_max(zero_divide_up((int64_t)m->bytes, MOST), 1);
}

/* Puts the requests of the work in flight, as an operation that all ranks count or not. */
static void add_requests(zero_comm *comm, zero_work *w, zero_operation_kind kind,
                         size_t bytes, bool counts)
{
    zero_requests **end = &comm->requests;
    w->what = zero_operation_control(kind, comm->sequence, (int64_t)bytes, -1);
    zero_operation_set_group(&w->what, comm->name);
    comm->sequence += counts;
    while (*end) end = &(*end)->next;
    w->requests.done = &w->done;
    *end = &w->requests;
    zero_thread_wake(comm);
    zero_watch_note(zero_family_whole(comm), ZERO_WATCH_COMPUTING, &w->what);
}

static zero_status exchange(zero_comm *comm, int n, const zero_message messages[],
                            zero_work *w)
{
    const bool all = n == 0 || messages[0].tag < 0;
    size_t bytes = 0;
    int pieces = 0;
    for (int i = 0; i < n; i++) pieces += count_pieces(&messages[i]);
    ZERO_TRY(zero_thread_failure(comm));
    ZERO_TRY(zero_new(&w->requests.list, pieces + 1, "messages"));
    for (int i = 0; i < n; i++) {
        const zero_message *m = &messages[i];
        /* A message meets those of its tag and length only. Tag 0 is zero_wait_send()'s. */
        const int64_t lengths = zero_max(comm->tag_limit / (2 * TAGS) - 1, 1);
        const int tag =
            ((int)(1 + (all ? TAGS + comm->exchanges % TAGS : m->tag) * lengths +
                   (int64_t)((m->bytes * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
                             (uint64_t)lengths))) %
            comm->tag_limit;
        for (int64_t at = 0, k = 0; k < count_pieces(m); at += MOST, k++) {
            int len = (int)zero_min((int64_t)m->bytes - at, MOST);
            char *data = (char *)m->data + at;
            MPI_Request *request = &w->requests.list[w->requests.n++];
            ZERO_TRY(zero_mpi_check(
                m->receives
                    ? MPI_Irecv(data, len, MPI_BYTE, m->peer, tag, comm->control, request)
                    : MPI_Isend(data, len, MPI_BYTE, m->peer, tag, comm->control, request),
                m->receives ? "MPI_Irecv" : "MPI_Isend"));
            if (m->peer != comm->rank)
                zero_traffic_count(&comm->exchanged,
                                   zero_reach_of(&comm->layout, comm->rank, m->peer),
                                   !m->receives, m->receives, len);
        }
        bytes += messages[i].bytes;
    }
    comm->exchanges += all;
    add_requests(comm, w, ZERO_OPERATION_EXCHANGE, bytes, all);
    return ZERO_OK;
}

zero_status zero_exchange_begin(zero_comm *comm, int n, const zero_message messages[],
                                zero_work **work)
{
    zero_work *w;
    ZERO_TRY(zero_comm_check(comm));
    ZERO_INVALID_IF(n < 0 || (n > 0 && !messages), "an exchange of %d messages%s", n,
                    n < 0 ? ": expected 0 or more" : " at NULL");
    for (int i = 0; i < n; i++) {
        const zero_message *m = &messages[i];
        ZERO_INVALID_IF(m->peer < 0 || m->peer >= comm->size || m->tag < -1 ||
                            m->tag >= TAGS || (m->bytes > 0 && !m->data) ||
                            (m->tag < 0) != (messages[0].tag < 0),
                        "message %d of an exchange: %zu bytes at %p %s rank %d with "
                        "tag %d: expected data, a rank below %d, and tags from 0 to "
                        "%d, or -1 in all messages",
                        i, m->bytes, m->data, m->receives ? "from" : "to", m->peer, m->tag,
                        comm->size, TAGS - 1);
    }
    ZERO_TRY(zero_works_make(comm, work, &w));
    return zero_works_begun(comm, exchange(comm, n, messages, w), w, work);
}

static zero_status barrier(zero_comm *comm, zero_work *w)
{
    ZERO_TRY(zero_thread_failure(comm));
    ZERO_TRY(zero_new(&w->requests.list, 1, "messages"));
    ZERO_TRY(zero_mpi(MPI_Ibarrier(comm->control, w->requests.list)));
    w->requests.n = 1;
    add_requests(comm, w, ZERO_OPERATION_BARRIER, 0, true);
    return ZERO_OK;
}

zero_status zero_barrier_begin(zero_comm *comm, zero_work **work)
{
    zero_work *w;
    ZERO_TRY(zero_works_make(comm, work, &w));
    return zero_works_begun(comm, barrier(comm, w), w, work);
}
