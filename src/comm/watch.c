#include "comm/watch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include <mpi.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/progress.h"
#include "comm/sentence.h"
#include "comm/wait.h"

#define LOOK_EVERY   0.01 /* seconds; a look costs about a microsecond */
#define LONGEST_TURN 1.0  /* seconds that one turn of a wait counts at most */
#define GRACE        5.0  /* seconds that ranks have to answer, at most */
#define HOLD         5.0  /* seconds more that another's abort may take */

enum { TAG_QUERY, TAG_ANSWER, TAGS };

typedef struct {
    zero_standing at; /* answers only */
    int64_t round;    /* of the rank that asked */
} message;

struct zero_watch {
    MPI_Comm mpi; /* owned */
    double limit, longest_turn, grace;

    zero_operation op; /* what this rank is doing, */
    zero_watch_state state;
    double since;
    const char *work; /* in which piece of work, its kind (borrowed) and number; -1: none */
    int64_t work_number;

    double last_look, last_turn;
    double stalled;   /* seconds of this wait without progress */
    int64_t advanced; /* comm's, when there was some */
    double held;      /* seconds for which this rank still leaves the verdict to another */
    bool is_closing;

    bool is_asking;
    double asked; /* seconds ago */
    int64_t round;
    zero_standing *answers; /* [size] */

    int64_t n_queries, n_answers; /* received, of any round */
    int64_t *asked_of;            /* [size]: queries sent to each rank */
    message *out;                 /* [TAGS][size]: what is being sent to each rank */
    MPI_Request *requests;        /* [TAGS][size] */
    int *class_of;                /* [size] */
};

/* ---- messages ---- */

/* Whether the last message to `rank` has left. */
static zero_status is_free(const zero_comm *comm, int tag, int rank, bool *free)
{
    int ended = 0;
    ZERO_TRY(zero_comm_check(MPI_Test(&comm->watch->requests[tag * comm->size + rank],
                                      &ended, MPI_STATUS_IGNORE),
                             "MPI_Test of the watchdog"));
    *free = ended != 0;
    return ZERO_OK;
}

static zero_status post(zero_comm *comm, int tag, int rank, const message *m)
{
    struct zero_watch *w = comm->watch;
    int slot = tag * comm->size + rank;
    w->out[slot] = *m;
    return zero_comm_check(MPI_Isend(&w->out[slot], (int)sizeof *m, MPI_BYTE, rank, tag,
                                     w->mpi, &w->requests[slot]),
                           "MPI_Isend of the watchdog");
}

/* *rank: whose message of this kind is here, or -1. */
static zero_status find_message(const zero_comm *comm, int tag, int *rank)
{
    int found = 0;
    MPI_Status status;
    ZERO_TRY(zero_comm_check(
        MPI_Iprobe(MPI_ANY_SOURCE, tag, comm->watch->mpi, &found, &status), "MPI_Iprobe"));
    *rank = found ? status.MPI_SOURCE : -1;
    return ZERO_OK;
}

static zero_status receive(const zero_comm *comm, int tag, int rank, message *m)
{
    return zero_comm_check(MPI_Recv(m, (int)sizeof *m, MPI_BYTE, rank, tag,
                                    comm->watch->mpi, MPI_STATUS_IGNORE),
                           "MPI_Recv of the watchdog");
}

/* ---- answering ---- */

static zero_standing describe(const zero_comm *comm)
{
    const struct zero_watch *w = comm->watch;
    int64_t begun = comm->sequence + comm->control_sequence;
    return (zero_standing){.state = w->state,
                           .reached = begun + (w->state == ZERO_WATCH_COMPARING),
                           .sequence = w->op.sequence,
                           .kind = w->op.kind,
                           .unit = w->op.unit,
                           .work = w->work_number,
                           .seconds = zero_clock_seconds() - w->since};
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

/* Who asked first shall speak; of two at once, the lower. */
static void give_way(zero_comm *comm, int rank)
{
    struct zero_watch *w = comm->watch;
    if (w->is_asking && comm->rank < rank) return;
    w->is_asking = false;
    w->held = w->grace + HOLD;
}

static zero_status answer_queries(zero_comm *comm)
{
    for (;;) {
        int rank;
        bool free;
        message m;
        ZERO_TRY(find_message(comm, TAG_QUERY, &rank));
        if (rank < 0) return ZERO_OK;
        ZERO_TRY(is_free(comm, TAG_ANSWER, rank, &free));
        if (!free) return ZERO_OK; /* it does not take its last answer: later */
        ZERO_TRY(receive(comm, TAG_QUERY, rank, &m));
        comm->watch->n_queries++;
        give_way(comm, rank);
        m.at = describe(comm);
        ZERO_TRY(post(comm, TAG_ANSWER, rank, &m));
    }
}

/* Answers come first: when all are here, a query that a rank sent before its answer is here,
 * too, and one of two that asked at once gives way in time. */
static zero_status look(zero_comm *comm)
{
    ZERO_TRY(take_answers(comm));
    return answer_queries(comm);
}

zero_status zero_watch_look(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    double now = zero_clock_seconds();
    if (now - w->last_look < LOOK_EVERY) return ZERO_OK;
    w->last_look = now;
    return look(comm);
}

void zero_watch_note(zero_comm *comm, zero_watch_state state, const zero_operation *op)
{
    struct zero_watch *w = comm->watch;
    w->op = *op;
    w->state = state;
    w->since = w->last_turn = zero_clock_seconds();
    w->stalled = 0.0;
    w->is_asking = false;
}

void zero_watch_work(zero_comm *comm, const char *what, int64_t number)
{
    if (!comm->watch) return;
    zero_progress_lock(comm); /* the thread tells it to others */
    comm->watch->work = what;
    comm->watch->work_number = number;
    zero_progress_unlock(comm);
}

/* ---- the verdict ---- */

static zero_status ask(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    message query = {.round = ++w->round};
    w->is_asking = true;
    w->asked = 0.0;
    for (int r = 0; r < comm->size; r++) {
        bool free = false;
        w->answers[r] = (zero_standing){.state = ZERO_WATCH_SILENT};
        if (r != comm->rank) ZERO_TRY(is_free(comm, TAG_QUERY, r, &free));
        if (!free) continue;
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

static zero_status fail(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    zero_sentence report = {.used = 0};
    w->answers[comm->rank] = describe(comm);
    zero_verdict_write(comm->size, w->answers, w->work, w->stalled, w->class_of, &report);
    return zero_fail(ZERO_ERR_STALLED, "%s", report.chars);
}

/* Seconds since the last turn, as far as they count. */
static double take_turn(struct zero_watch *w)
{
    double now = zero_clock_seconds(), passed = now - w->last_turn;
    w->last_turn = now;
    return fmin(passed, w->longest_turn);
}

zero_status zero_watch_turn(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    double passed = take_turn(w);
    if (comm->advanced != w->advanced || w->is_closing) {
        w->advanced = comm->advanced;
        w->stalled = 0.0;
        w->is_asking = false;
        return ZERO_OK;
    }
    w->stalled += passed;
    w->asked += passed;
    w->held = fmax(w->held - passed, 0.0);
    if (w->is_asking)
        return w->asked >= w->grace || have_all_answered(comm) ? fail(comm) : ZERO_OK;
    double limit = comm->patience > 1.0 ? comm->patience * w->limit : w->limit;
    return w->stalled >= limit && w->held <= 0.0 ? ask(comm) : ZERO_OK;
}

/* ---- start and stop ---- */

static void release(struct zero_watch *w)
{
    free(w->answers);
    free(w->asked_of);
    free(w->out);
    free(w->requests);
    free(w->class_of);
    free(w);
}

static zero_status allocate(int size, double seconds, struct zero_watch **out)
{
    size_t n = (size_t)size;
    struct zero_watch *w = calloc(1, sizeof *w);
    *out = w;
    if (!w) return zero_fail(ZERO_ERR_NOMEM, "no memory for the watchdog");
    w->answers = calloc(n, sizeof *w->answers);
    w->asked_of = calloc(n, sizeof *w->asked_of);
    w->out = calloc(TAGS * n, sizeof *w->out);
    w->requests = malloc(TAGS * n * sizeof(MPI_Request));
    w->class_of = malloc(n * sizeof *w->class_of);
    if (!w->answers || !w->asked_of || !w->out || !w->requests || !w->class_of)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a watchdog over %d ranks", size);
    for (size_t i = 0; i < TAGS * n; i++) w->requests[i] = MPI_REQUEST_NULL;
    w->limit = seconds;
    w->work = "work";
    w->work_number = -1;
    w->longest_turn = fmin(LONGEST_TURN, seconds / 8.0);
    w->grace = fmin(GRACE, seconds / 4.0);
    return ZERO_OK;
}

zero_status zero_watch_start(zero_comm *comm, double seconds)
{
    if (!(seconds >= 0.0) || comm->watch)
        return zero_fail(ZERO_ERR_INVALID,
                         "a watchdog of %g s: expected 0 or more, and one per group",
                         seconds);
    if (seconds <= 0.0 || comm->size <= 1) return ZERO_OK;
    struct zero_watch *w;
    zero_status st = zero_agree(comm, allocate(comm->size, seconds, &w));
    if (st == ZERO_OK)
        st = zero_comm_check(MPI_Comm_dup(comm->mpi, &w->mpi), "MPI_Comm_dup");
    if (st != ZERO_OK) {
        if (w) release(w);
        return st;
    }
    zero_operation none = {.kind = ZERO_OPERATION_NONE, .unit = ZERO_NO_UNIT};
    zero_progress_lock(comm);
    comm->watch = w;
    w->advanced = comm->advanced;
    zero_watch_note(comm, ZERO_WATCH_COMPUTING, &none);
    zero_progress_wake(comm);
    zero_progress_unlock(comm);
    return ZERO_OK;
}

/* Receives what is still on its way. All ranks have come to the end: nobody asks any more. */
static zero_status drain(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    int64_t by_me = 0, of_me = 0;
    MPI_Request request;
    for (int r = 0; r < comm->size; r++) by_me += w->asked_of[r];
    ZERO_TRY(zero_comm_check(MPI_Ireduce_scatter_block(w->asked_of, &of_me, 1, MPI_INT64_T,
                                                       MPI_SUM, w->mpi, &request),
                             "MPI_Ireduce_scatter_block"));
    ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_WAITING, &w->op, &request));
    while (w->n_queries < of_me || w->n_answers < by_me) ZERO_TRY(look(comm));
    return zero_comm_check(MPI_Waitall(TAGS * comm->size, w->requests, MPI_STATUSES_IGNORE),
                           "MPI_Waitall");
}

static zero_status close_watch(zero_comm *comm)
{
    struct zero_watch *w = comm->watch;
    w->is_closing = true;
    ZERO_TRY(drain(comm));
    comm->watch = NULL;
    int code = MPI_Comm_free(&w->mpi);
    release(w);
    return zero_comm_check(code, "MPI_Comm_free");
}

zero_status zero_watch_stop(zero_comm *comm)
{
    if (!comm->watch) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    zero_progress_lock(comm);
    zero_status st = close_watch(comm);
    zero_progress_unlock(comm);
    return st;
}
