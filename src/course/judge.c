#include "course/judge.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/legible.h"
#include "base/number.h"

#define CPU_SECONDS  2.0 /* of all ranks, in one call */
#define WALL_SECONDS 8.0
#define LONGEST      ((int64_t)1 << 24) /* elements of a message */
#define FAULT_BYTES  512
#define MOST_SENT    20000               /* messages of a call */
#define MOST_QUEUED  ((int64_t)64 << 20) /* bytes of them on their way */

/* Requests of ranks; homework/rank.c.txt and homework.py.txt have the same numbers. */
enum { SEND = 1, RECV, WORK, COUNT, DONE, FAULT };

static const char *const counted[] = {"read",       "reduce_scatters", "all_gathers",
                                      "broadcasts", "all_reduces",     "given",
                                      "statics"};
#define COUNTED ZERO_COUNT(counted)

typedef struct {
    int64_t op, peer, count;
} header;

typedef struct message {
    struct message *next;
    int64_t count, arrives;
    float data[];
} message;

typedef enum { RUNS, WAITS, ENDED } state;

typedef struct {
    state state;
    int from;                                 /* it waits for a message of that rank */
    int64_t wanted;                           /* elements of it; -1: any */
    int64_t now, sends_until, receives_until; /* rounds */
    int64_t bytes;
    message *queue[ZERO_JUDGE_RANKS]; /* from each rank, in order */
} judged;

typedef struct {
    zero_judged *ranks;
    zero_judge_call *call;
    judged at[ZERO_JUDGE_RANKS];
    double began, cpu_began;
    int64_t messages, crossing, memory, left, queued, counts[COUNTED];
    json_t *facts;
    bool is_over; /* a fault has been found */
} world;

/* ---- faults ---- */

static bool found(world *w, int rank, const char *fault, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The first one counts. Returns false. */
static bool found(world *w, int rank, const char *fault, const char *format, ...)
{
    char text[FAULT_BYTES], shown[FAULT_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    zero_legible(text, strlen(text), shown, sizeof shown);
    if (!w->is_over)
        zero_put_members(w->facts, "{s:s, s:s, s:i}", "fault", fault, "text", shown, "rank",
                         rank);
    w->is_over = true;
    return false;
}

static double cpu_seconds(const world *w)
{
    double sum = 0.0;
    for (int r = 0; r < w->call->size; r++) {
        clockid_t clock;
        struct timespec t;
        if (clock_getcpuclockid(w->ranks[r].pid, &clock) == 0 &&
            clock_gettime(clock, &t) == 0)
            sum += (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    return sum;
}

static bool is_in_time(world *w, int rank)
{
    double cpu = cpu_seconds(w) - w->cpu_began, wall = zero_clock_seconds() - w->began;
    if (cpu <= CPU_SECONDS && wall <= WALL_SECONDS) return true;
    return found(w, rank, "time", "rank %d still computes after %.0f s", rank,
                 cpu > CPU_SECONDS ? CPU_SECONDS : WALL_SECONDS);
}

/* ---- the sockets ---- */

static bool move(world *w, int rank, void *data, size_t bytes, bool is_read)
{
    const int socket = w->ranks[rank].socket;
    for (char *at = data; bytes > 0;) {
        ssize_t n = is_read ? recv(socket, at, bytes, MSG_DONTWAIT)
                            : send(socket, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        bool again = n < 0 && (errno == EAGAIN || errno == EINTR);
        if (n <= 0 && !again) {
            /* Its socket is closed. */
            int status = 0;
            kill(-w->ranks[rank].pid, SIGKILL); /* it may go on without it */
            waitpid(w->ranks[rank].pid, &status, 0);
            w->ranks[rank].pid = 0;
            int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
            if (by == SIGSYS)
                return found(w, rank, "forbidden", "made a system call that is closed");
            if (by == SIGXFSZ) return found(w, rank, "printed", "printed more than 1 MiB");
            if (by == SIGXCPU) return found(w, rank, "time", "computes without end");
            if (by) return found(w, rank, "crash", "was ended by signal %d", by);
            return found(w, rank, "exit", "ended with exit code %d", WEXITSTATUS(status));
        }
        if (again) {
            if (!is_in_time(w, rank)) return false;
            poll(&(struct pollfd){socket, is_read ? POLLIN : POLLOUT, 0}, 1, 20);
            continue;
        }
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool put(world *w, int rank, const void *data, size_t bytes)
{
    return move(w, rank, (void *)data, bytes, false);
}

static bool get(world *w, int rank, void *data, size_t bytes)
{
    return move(w, rank, data, bytes, true);
}

/* ---- what ranks ask ---- */

/* A rank that waits gets its message, if it is there. */
static bool deliver(world *w, int rank)
{
    judged *r = &w->at[rank];
    message *m = r->state == WAITS ? r->queue[r->from] : NULL;
    if (!m) return true;
    if (r->wanted >= 0 && r->wanted != m->count)
        return found(w, rank, "length",
                     "rank %d waits for %" PRId64
                     " elements of rank %d, which sent %" PRId64,
                     rank, r->wanted, r->from, m->count);
    r->receives_until =
        m->arrives > r->receives_until + 1 ? m->arrives : r->receives_until + 1;
    if (r->now < r->receives_until) r->now = r->receives_until;
    r->queue[r->from] = m->next;
    r->state = RUNS;
    w->queued -= m->count * (int64_t)sizeof(float);
    bool is_put = put(w, rank, &(header){RECV, r->from, m->count}, sizeof(header)) &&
                  put(w, rank, m->data, (size_t)m->count * sizeof(float));
    free(m);
    return is_put;
}

static bool take_message(world *w, int rank, const header *h)
{
    judged *r = &w->at[rank];
    int to = (int)h->peer;
    size_t bytes = (size_t)h->count * sizeof(float);
    message **end = &w->at[to].queue[rank];
    if (w->messages == MOST_SENT)
        return found(w, rank, "time", "rank %d sends message %d", rank, MOST_SENT + 1);
    message *m =
        w->queued + (int64_t)bytes > MOST_QUEUED ? NULL : malloc(sizeof *m + bytes);
    if (!m)
        return found(w, rank, "memory", "has sent more than %d MiB that nobody receives",
                     (int)(MOST_QUEUED >> 20));
    *m = (message){.count = h->count};
    if (!get(w, rank, m->data, bytes)) {
        free(m);
        return false;
    }
    r->sends_until = (r->now > r->sends_until ? r->now : r->sends_until) + 1;
    m->arrives = r->sends_until;
    while (*end) end = &(*end)->next;
    *end = m;
    r->bytes += (int64_t)bytes;
    w->queued += (int64_t)bytes;
    w->messages++;
    if (w->call->per_node > 0 && rank / w->call->per_node != to / w->call->per_node)
        w->crossing += (int64_t)bytes;
    return deliver(w, to);
}

static bool serve(world *w, int rank)
{
    judged *r = &w->at[rank];
    header h;
    if (!get(w, rank, &h, sizeof h)) return false;
    bool is_message = h.op == SEND || h.op == RECV;
    if (is_message && (h.peer < 0 || h.peer >= w->call->size || h.peer == rank ||
                       h.count > LONGEST || h.count < (h.op == RECV ? -1 : 0)))
        return found(w, rank, "crash", "speaks nonsense");
    switch (h.op) {
    case SEND: return take_message(w, rank, &h);
    case RECV:
        r->state = WAITS;
        r->from = (int)h.peer;
        r->wanted = h.count;
        return deliver(w, rank);
    case WORK: r->now += h.count > 0 && h.count < LONGEST ? h.count : 0; return true;
    case COUNT:
        if (h.peer >= 0 && h.peer < COUNTED) w->counts[h.peer] += h.count;
        return true;
    case DONE: {
        zero_judge_call *c = w->call;
        w->at[rank].state = ENDED;
        w->memory = zero_max(w->memory, h.peer);
        w->left = zero_max(w->left, h.count);
        for (int b = 0; b < c->n_buffers; b++)
            if (!get(w, rank, c->buffers[rank][b],
                     (size_t)c->lengths[rank][b] * sizeof(float)))
                return false;
        return true;
    }
    case FAULT: {
        char text[FAULT_BYTES] = "";
        if (h.count < 0 || h.count >= FAULT_BYTES || !get(w, rank, text, (size_t)h.count))
            return found(w, rank, "crash", "speaks nonsense");
        const size_t word = strcspn(text, " ");
        const bool has_text = text[word] != '\0';
        text[word] = '\0';
        return found(w, rank, text, "%s", has_text ? text + word + 1 : "");
    }
    default: return found(w, rank, "crash", "speaks nonsense");
    }
}

/* ---- a call ---- */

static bool begin(world *w, int rank)
{
    const zero_judge_call *c = w->call;
    if (!put(w, rank, &(header){1, rank, c->size}, sizeof(header)) ||
        !put(w, rank, c->numbers, sizeof c->numbers[0] * (size_t)c->n_numbers) ||
        !put(w, rank, c->lengths[rank], sizeof c->lengths[0][0] * (size_t)c->n_buffers))
        return false;
    for (int b = 0; b < c->n_buffers; b++)
        if (!put(w, rank, c->buffers[rank][b], (size_t)c->lengths[rank][b] * sizeof(float)))
            return false;
    return true;
}

static bool go(world *w)
{
    const int size = w->call->size;
    for (int r = 0; r < size; r++)
        if (!begin(w, r)) return false;
    for (int n = 1;; n++) {
        struct pollfd sockets[ZERO_JUDGE_RANKS];
        int running = 0, ended = 0, last = 0;
        for (int r = 0; r < size; r++) {
            bool runs = w->at[r].state == RUNS;
            sockets[r] = (struct pollfd){runs ? w->ranks[r].socket : -1, POLLIN, 0};
            running += runs;
            ended += w->at[r].state == ENDED;
            if (runs) last = r;
        }
        if (ended == size) return true;
        if (running == 0) {
            /* All ranks that have not ended wait: names a cycle, or the rank that has
             * returned. */
            char text[FAULT_BYTES] = "";
            bool seen[ZERO_JUDGE_RANKS] = {false};
            int r = 0;
            size_t k = 0;
            while (w->at[r].state != WAITS) r++;
            /* First along the chain until a rank comes again: that one is in the cycle. */
            for (; w->at[r].state == WAITS && !seen[r]; r = w->at[r].from) seen[r] = true;
            bool is_cycle = w->at[r].state == WAITS;
            int first = r;
            if (!is_cycle)
                for (first = 0; w->at[first].state != WAITS || w->at[first].from != r;)
                    first++;
            for (int at = first, i = 0; i < w->call->size; i++) {
                k += (size_t)snprintf(text + k, sizeof text - k,
                                      "%srank %d waits for rank %d", i > 0 ? ", " : "", at,
                                      w->at[at].from);
                at = w->at[at].from;
                if (at == first || !is_cycle) break;
            }
            if (!is_cycle) snprintf(text + k, sizeof text - k, ", which has returned");
            zero_put_flag(w->facts, "cycle", is_cycle);
            for (int to = 0; to < w->call->size; to++)
                for (int from = 0; from < w->call->size; from++)
                    if (w->at[to].queue[from] && !json_object_get(w->facts, "unread"))
                        json_object_set_new(
                            w->facts, "unread",
                            json_sprintf("a message of rank %d to rank %d is not received",
                                         from, to));
            return found(w, first, "deadlock", "%s", text);
        }
        bool is_quiet = poll(sockets, (nfds_t)size, 20) == 0;
        if ((is_quiet || n % 256 == 0) && !is_in_time(w, last)) return false;
        for (int r = 0; r < size; r++)
            if (sockets[r].revents && w->at[r].state == RUNS && !serve(w, r)) return false;
    }
}

zero_status zero_judge_run(zero_judged ranks[ZERO_JUDGE_RANKS], zero_judge_call *call,
                           json_t **facts)
{
    world w = {.ranks = ranks,
               .call = call,
               .began = zero_clock_seconds(),
               .facts = json_object()};
    int64_t bytes = 0, busiest = 0, rounds = 0;
    ZERO_FAIL_IF(!w.facts, ZERO_ERR_NOMEM, "no memory for what ranks did");
    w.cpu_began = cpu_seconds(&w);
    bool is_good = go(&w);
    for (int r = 0; r < call->size; r++) {
        const judged *at = &w.at[r];
        bytes += at->bytes;
        busiest = zero_max(busiest, at->bytes);
        rounds = zero_max(rounds, zero_max(at->now, at->sends_until));
        for (int from = 0; from < call->size; from++)
            for (message *m = at->queue[from], *next; m; m = next) {
                if (is_good)
                    found(&w, r, "unread",
                          "rank %d returned without %" PRId64
                          " elements that rank %d sent to it",
                          r, m->count, from);
                next = m->next;
                free(m);
            }
    }
    zero_put_members(w.facts, "{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "bytes", bytes,
                     "busiest", busiest, "messages", w.messages, "rounds", rounds, "memory",
                     w.memory, "left", w.left, "crossing", w.crossing);
    for (int i = 0; i < COUNTED; i++) zero_put_whole(w.facts, counted[i], w.counts[i]);
    *facts = w.facts;
    return ZERO_OK;
}

void zero_judge_call_destroy(zero_judge_call *call)
{
    for (int r = 0; r < ZERO_JUDGE_RANKS; r++)
        for (int b = 0; b < ZERO_JUDGE_BUFFERS; b++) free(call->buffers[r][b]);
    memset(call, 0, sizeof *call);
}

zero_status zero_judge_start(const zero_jail *jail, char *const words[],
                             zero_judged ranks[ZERO_JUDGE_RANKS])
{
    for (int r = 0; r < ZERO_JUDGE_RANKS; r++)
        ZERO_TRY(zero_jail_start(jail, words, &ranks[r].pid, &ranks[r].socket));
    return ZERO_OK;
}

void zero_judge_end(zero_judged ranks[ZERO_JUDGE_RANKS])
{
    for (int r = 0; r < ZERO_JUDGE_RANKS; r++) {
        if (ranks[r].pid > 0) {
            kill(-ranks[r].pid, SIGKILL);
            waitpid(ranks[r].pid, NULL, 0);
        }
        if (ranks[r].socket > 0) close(ranks[r].socket);
        ranks[r] = (zero_judged){0};
    }
}
