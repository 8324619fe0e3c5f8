#include "comm/watch.h"

#include "base/clock.h"
#include "base/waiting.h"
#include "comm/control.h"
#include "comm/deadline.h"
#include "comm/device.h"
#include "comm/family.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"
#include "comm/wait.h"

#define LOOK_EVERY   0.01 /* seconds; a look costs about a microsecond */
#define LONGEST_TURN 1.0  /* seconds that one turn of a wait counts, at most */
#define GRACE        5.0  /* seconds that ranks have to answer, at most */
#define HOLD         5.0  /* seconds more that another rank's abort may take */

enum { TAG_QUERY, TAG_ANSWER, TAGS };

typedef struct {
    zero_standing at; /* answers only */
    int64_t round;    /* of the rank that asked */
} message;

struct zero_watch {
    MPI_Comm mpi; /* owned, from the start on */
    double limit, longest_turn, grace;

    /* This rank's operation, since when, and its piece of work: name (borrowed) and number,
     * -1 before the first one. */
    zero_operation op;
    zero_watch_state state;
    double since;
    const char *work;
    int64_t work_number;

    double last_look, last_turn;
    double stalled;   /* seconds of this wait without progress */
    int64_t advanced; /* the group's count at the last progress */
    double held;      /* seconds for which this rank still leaves the verdict to another */
    bool is_closing;

    bool is_asking;
    double asked; /* seconds ago */
    int64_t round;
    zero_standing *answers; /* [size] */

    int64_t n_queries, n_answers; /* received, of any round */
    int64_t n_asked;       /* queries that all ranks sent to this one, known at the end */
    int64_t *asked_of;     /* [size]: queries sent to each rank */
    message *out;          /* [TAGS][size]: the message being sent to each rank */
    MPI_Request *requests; /* [TAGS][size] */
    int *class_of;         /* [size] */
};

/* ---- messages ---- */

/* *left: whether the last message to `rank` has left. */
static zero_status has_left(const zero_comm *comm, int tag, int rank, bool *left)
{
    int ended = 0;
    ZERO_TRY(zero_mpi_check(MPI_Test(&comm->watch->requests[tag * comm->size + rank],
                                     &ended, MPI_STATUS_IGNORE),
                            "MPI_Test of the watchdog"));
    *left = ended != 0;
    return ZERO_OK;
}

static zero_status post(zero_comm *comm, int tag, int rank, const message *m)
{
    struct zero_watch *w = comm->watch;
    int slot = tag * comm->size + rank;
    w->out[slot] = *m;
    return zero_mpi_check(MPI_Isend(&w->out[slot], (int)sizeof *m, MPI_BYTE, rank, tag,
                                    w->mpi, &w->requests[slot]),
                          "MPI_Isend of the watchdog");
}

/* *rank: a rank from which a message with this tag has arrived, or -1. */
static zero_status find_message(const zero_comm *comm, int tag, int *rank)
{
    int found = 0;
    MPI_Status status;
    ZERO_TRY(zero_mpi(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm->watch->mpi, &found, &status)));
    *rank = found ? status.MPI_SOURCE : -1;
    return ZERO_OK;
}

static zero_status receive(const zero_comm *comm, int tag, int rank, message *m)
{
    return zero_mpi_check(MPI_Recv(m, (int)sizeof *m, MPI_BYTE, rank, tag, comm->watch->mpi,
                                   MPI_STATUS_IGNORE),
                          "MPI_Recv of the watchdog");
}

/* ---- answering ---- */

/* True if a collective in flight has copies of its device in flight. */
static bool copies(const zero_comm *comm)
{
    for (const zero_collective *op = comm->active; op; op = op->next_active)
        if (zero_device_copy_left(op) > 0) return true;
    return false;
}

/* Operations begun, or about to begin, on a group of the family. */
static int64_t count_begun(const struct zero_watch *w, const zero_comm *comm)
{
    bool is_next =
        w->state == ZERO_WATCH_COMPARING && w->op.member.part == comm->member.part;
    return comm->sequence + comm->control_sequence + is_next;
}

static zero_standing describe(const zero_comm *comm)
{
    const struct zero_watch *w = comm->watch;
    bool is_copying = copies(comm);
    for (int i = 0; i < comm->n_parts; i++)
        is_copying = is_copying || copies(&comm->parts[i]);
    bool waits_for_device = w->state == ZERO_WATCH_WAITING && is_copying;
    zero_standing at = {.state = waits_for_device ? ZERO_WATCH_COPYING : w->state,
                        .sequence = w->op.sequence,
                        .kind = w->op.kind,
                        .unit = w->op.unit,
                        .work = w->work_number,
                        .member = w->op.member,
                        .seconds = zero_clock_seconds() - w->since,
                        .outside = zero_waiting_oldest()};
    if (at.member.part != ZERO_WHOLE) at.member.first = -1;
    if (w->op.group[0] != '\0') {
        memcpy(at.group, w->op.group, sizeof at.group);
        at.count = w->op.count;
        at.type = w->op.type;
        at.root = w->op.root;
    }
    if (comm->name[0] != '\0') {
        /* Notes how many collectives each group of works has begun, and where the program
         * is. */
        const zero_comm *group = comm;
        for (; group && at.n_groups < ZERO_WATCH_GROUPS;
             group = group == comm ? comm->named : group->next_named)
            at.groups[at.n_groups++] = (zero_group_count){
                zero_operation_group_hash(group->name), (uint32_t)(group->sequence)};
        if (comm->tell && at.state == ZERO_WATCH_COMPUTING)
            comm->tell(comm->tell_arg, at.place, sizeof at.place);
        at.place[sizeof at.place - 1] = '\0';
    }
    at.reached = at.begun[ZERO_WHOLE] = count_begun(w, comm);
    for (int i = 0; i < comm->n_parts; i++) {
        const zero_comm *part = &comm->parts[i];
        at.begun[part->member.part] = count_begun(w, part);
        at.reached += at.begun[part->member.part];
    }
    return at;
}

static zero_status take_answers(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    for (;;) {
        int rank;
        message m;
        ZERO_TRY(find_message(comm, TAG_ANSWER, &rank));
        if (rank < 0) return ZERO_OK;
        ZERO_TRY(receive(comm, TAG_ANSWER, rank, &m));
        w->n_answers++;
        if (w->is_asking && m.round == w->round) w->answers[rank] = m.at;
    }
}

/* Answers come first: when all are here, so is every query that a rank sent before its
 * answer, and one of two ranks that asked at once gives way in time. */
static zero_status look(zero_comm *comm)
{
    ZERO_TRY(take_answers(comm));
    for (;;) {
        int rank;
        bool left;
        message m;
        ZERO_TRY(find_message(comm, TAG_QUERY, &rank));
        if (rank < 0) return ZERO_OK;
        ZERO_TRY(has_left(comm, TAG_ANSWER, rank, &left));
        if (!left) return ZERO_OK; /* it has not taken its last answer: later */
        ZERO_TRY(receive(comm, TAG_QUERY, rank, &m));
        comm->watch->n_queries++;
        /* The rank that asked first speaks; of two that ask at once, the lower one. */
        struct zero_watch *w = comm->watch;
        if (!w->is_asking || comm->rank >= rank) {
            w->is_asking = false;
            w->held = w->grace + HOLD;
        }
        m.at = describe(comm);
        ZERO_TRY(post(comm, TAG_ANSWER, rank, &m));
    }
}

zero_status zero_watch_look(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    if (!w) return ZERO_OK;
    double now = zero_clock_seconds();
    if (now - w->last_look < LOOK_EVERY) return ZERO_OK;
    w->last_look = now;
    return look(comm);
}

static void begin_again(struct zero_watch *w)
{
    w->stalled = 0.0;
    w->is_asking = false;
}

void zero_watch_note(zero_comm *comm, zero_watch_state state, const zero_operation *op)
{
    struct zero_watch *w = comm->watch;
    if (!w || (w->state == state && zero_operation_equal(&w->op, op))) return;
    /* A wait in slices goes on, and threads that wait in turn have not moved. */
    bool goes_on = w->state == ZERO_WATCH_WAITING && state == ZERO_WATCH_WAITING;
    w->op = *op;
    w->state = state;
    if (goes_on) return;
    w->since = w->last_turn = zero_clock_seconds();
    begin_again(w);
}

void zero_watch_work(zero_comm *comm, const char *what, int64_t number)
{
    struct zero_watch *w = zero_family_whole(comm)->watch;
    if (!w) return;
    zero_thread_lock(comm); /* the thread tells it to others */
    w->work = what;
    w->work_number = number;
    zero_thread_unlock(comm);
}

void zero_watch_compute(zero_comm *comm, const char *what, int64_t number)
{
    zero_deadline *d = zero_family_whole(comm)->deadline;
    if (what)
        zero_deadline_begin_work(d, what, number);
    else
        zero_deadline_end(d);
}

void zero_watch_move(zero_comm *comm)
{
    zero_deadline_move(zero_family_whole(comm)->deadline);
}

/* ---- the verdict ---- */

static zero_status ask(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    message query = {.round = ++w->round};
    w->is_asking = true;
    w->asked = 0.0;
    for (int r = 0; r < comm->size; r++) {
        bool left = false;
        w->answers[r] = (zero_standing){.state = ZERO_WATCH_SILENT};
        if (r != comm->rank) ZERO_TRY(has_left(comm, TAG_QUERY, r, &left));
        if (!left) continue;
        ZERO_TRY(post(comm, TAG_QUERY, r, &query));
        w->asked_of[r]++;
    }
    return ZERO_OK;
}

static bool have_all_answered(const zero_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank && comm->watch->answers[r].state == ZERO_WATCH_SILENT)
            return false;
    return true;
}

static double limit_of(const zero_comm *comm)
{
    return comm->watch->limit * fmax(comm->patience, 1.0);
}

zero_status zero_watch_turn(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    if (!w || w->is_closing) return ZERO_OK; /* stop()'s deadline counts */
    zero_deadline_move(comm->deadline);      /* it waits, and this watchdog counts */
    double now = zero_clock_seconds(), passed = fmin(now - w->last_turn, w->longest_turn);
    w->last_turn = now;
    if (comm->advanced != w->advanced) {
        w->advanced = comm->advanced;
        begin_again(w);
        return ZERO_OK;
    }
    w->stalled += passed;
    w->asked += passed;
    w->held = fmax(w->held - passed, 0.0);
    if (!w->is_asking)
        return w->stalled >= limit_of(comm) && w->held <= 0.0 ? ask(comm) : ZERO_OK;
    if (w->asked < w->grace && !have_all_answered(comm)) return ZERO_OK;
    /* A disk may be slow, so a rank whose calls on files return is waited for. One
     * whose call does not return says so itself (deadline.h). */
    const double most = limit_of(comm) + 2.0 * ZERO_DEADLINE_APART;
    bool any = false;
    for (int r = 0; r < comm->size; r++) {
        const double seconds = comm->watch->answers[r].outside;
        any = any || (r != comm->rank && seconds > 0.0 && seconds < most);
    }
    if (!any || !have_all_answered(comm)) {
        zero_sentence report = {.used = 0};
        w->answers[comm->rank] = describe(comm);
        zero_stalled_job job = {.all = w->answers,
                                .size = comm->size,
                                .n_parts = comm->n_parts,
                                .work = w->work,
                                .stalled = w->stalled,
                                .class_of = w->class_of};
        for (int i = 0; i < comm->n_parts; i++) job.parts[i] = comm->parts[i].member;
        zero_verdict_write(&job, &report);
        begin_again(w);
        return zero_fail(ZERO_ERR_STALLED, "%s", report.chars);
    }
    begin_again(w);
    return ZERO_OK;
}

/* ---- start and stop ---- */

void zero_watch_free(struct zero_watch *w)
{
    if (!w) return;
    zero_free(w->answers, w->asked_of, w->out, w->requests, w->class_of, w);
}

void zero_watch_set_limit(zero_comm *comm, double seconds)
{
    struct zero_watch *w = comm->watch;
    if (!w) return;
    w->limit = seconds;
    w->longest_turn = fmin(LONGEST_TURN, seconds / 8.0);
    w->grace = fmin(GRACE, seconds / 4.0);
}

static zero_status make(int size, struct zero_watch **out)
{
    size_t n = (size_t)size;
    static const char what[] = "ranks that a watchdog asks";
    ZERO_TRY(zero_new(out, 1, "a watchdog"));
    struct zero_watch *w = *out;
    ZERO_TRY(zero_new(&w->answers, n, what));
    ZERO_TRY(zero_new(&w->asked_of, n, what));
    ZERO_TRY(zero_new(&w->out, TAGS * n, what));
    ZERO_TRY(zero_new(&w->requests, TAGS * n, what));
    ZERO_TRY(zero_new(&w->class_of, n, what));
    for (size_t i = 0; i < TAGS * n; i++) w->requests[i] = MPI_REQUEST_NULL;
    w->work = "work";
    w->work_number = -1;
    return ZERO_OK;
}

zero_status zero_watch_start(zero_comm *comm, double seconds)
{
    const zero_operation none = {.kind = ZERO_OPERATION_NONE, .unit = ZERO_NO_UNIT};
    ZERO_TRY(zero_family_check_whole(comm, "a watchdog"));
    ZERO_INVALID_IF(!(seconds >= 0.0) || comm->watch,
                    "a watchdog of %g s: expected 0 or more, and one per group", seconds);
    if (seconds <= 0.0 || comm->size <= 1) return ZERO_OK;
    struct zero_watch *w;
    zero_status st = zero_agree(comm, make(comm->size, &w));
    if (st == ZERO_OK) st = zero_mpi(MPI_Comm_dup(comm->mpi, &w->mpi));
    if (st != ZERO_OK) {
        zero_watch_free(w);
        return st;
    }
    zero_thread_lock(comm);
    comm->watch = w;
    zero_watch_set_limit(comm, seconds);
    w->advanced = comm->advanced;
    zero_watch_note(comm, ZERO_WATCH_COMPUTING, &none);
    zero_thread_wake(comm);
    zero_thread_unlock(comm);
    return ZERO_OK;
}

/* All ranks have reached the end, so no rank asks any more: each learns how many queries
 * were sent to it, and receives the messages that are still on their way. */
static zero_status stop(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    MPI_Request request;
    int64_t sent = 0;
    zero_operation end =
        zero_operation_control(ZERO_OPERATION_END, comm->control_sequence - 1, 0, -1);
    zero_deadline_begin(comm->deadline, "ending the watchdog");
    w->is_closing = true;
    ZERO_TRY(zero_mpi(MPI_Ireduce_scatter_block(w->asked_of, &w->n_asked, 1, MPI_INT64_T,
                                                MPI_SUM, w->mpi, &request)));
    ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_WAITING, &end, &request));
    for (int r = 0; r < comm->size; r++) sent += w->asked_of[r];
    while (w->n_queries < w->n_asked || w->n_answers < sent) ZERO_TRY(look(comm));
    ZERO_TRY(zero_mpi(MPI_Waitall(TAGS * comm->size, w->requests, MPI_STATUSES_IGNORE)));
    comm->watch = NULL;
    int code = MPI_Comm_free(&w->mpi);
    zero_watch_free(w);
    ZERO_TRY(zero_mpi_check(code, "MPI_Comm_free"));
    zero_deadline_end(comm->deadline);
    return ZERO_OK;
}

zero_status zero_watch_stop(zero_comm *comm)
{
    if (!comm->watch) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    zero_thread_lock(comm);
    zero_status st = stop(comm);
    zero_thread_unlock(comm);
    return st;
}
