/* queue.c - the three queues of the fake device: how they wait for each other, and the random
 * moments at which their entries are executed.
 *
 * The order of one queue is the order of its entries. A copy waits for all calls recorded before it, or
 * before a place() among them, a call for every after() before it. So an entry waits for earlier ones
 * only, and following what blocks an entry ends at one that can be executed. */
#include <string.h>

#include "base/rng.h"
#include "fake/device.h"

/* ---- failures ---- */

void zero_fake_fail(zero_fake *f, zero_status status)
{
    if (f->failure.status == ZERO_OK) f->failure = zero_failure_keep(status);
}

zero_status zero_fake_verdict(const zero_fake *f)
{
    return f->failure.status == ZERO_OK ? ZERO_OK : zero_failure_restore(&f->failure);
}

static bool has_failed(const zero_fake *f)
{
    return f->failure.status != ZERO_OK;
}

/* ---- tickets: the number of a copy in its queue, from 1, and the queue in the last bit ---- */

static zero_ticket ticket_of(zero_fake_queue queue, uint64_t number)
{
    return number << 1 | (queue == ZERO_FAKE_UP);
}

static zero_fake_queue queue_of(zero_ticket ticket)
{
    return ticket & 1 ? ZERO_FAKE_UP : ZERO_FAKE_DOWN;
}

static bool is_over(const zero_fake *f, zero_ticket ticket)
{
    return f->ended[queue_of(ticket)] >= ticket >> 1;
}

static zero_status check_ticket(zero_fake *f, const char *call, zero_ticket ticket)
{
    if (f->recorded[queue_of(ticket)] < ticket >> 1)
        zero_fake_fail(f, zero_fail(ZERO_ERR_INVALID,
                                    "%s() of the fake device was given ticket %llu, which "
                                    "belongs to no copy",
                                    call, (unsigned long long)ticket));
    return zero_fake_verdict(f);
}

/* ---- execution ---- */

static zero_fake_call *call_at(zero_fake *f, uint64_t i)
{
    return &f->calls[i % ZERO_FAKE_CALLS];
}

static zero_fake_copy *copy_at(zero_fake *f, zero_fake_queue queue, uint64_t i)
{
    return &f->copies[queue - ZERO_FAKE_DOWN][i % ZERO_FAKE_COPIES];
}

static bool is_empty(const zero_fake *f, zero_fake_queue queue)
{
    return f->ended[queue] == f->recorded[queue];
}

/* The queue whose first entry has to be executed before the first one of this queue; the queue
 * itself if nothing has to. */
static zero_fake_queue blocker_of(zero_fake *f, zero_fake_queue queue)
{
    const uint64_t first = f->ended[queue];
    if (queue != ZERO_FAKE_COMPUTE)
        return copy_at(f, queue, first)->calls_before > f->ended[ZERO_FAKE_COMPUTE]
                   ? ZERO_FAKE_COMPUTE
                   : queue;
    const zero_fake_call *call = call_at(f, first);
    return call->execute || is_over(f, call->ticket) ? queue : queue_of(call->ticket);
}

static bool fails_now(zero_fake *f, const char *name, int64_t number)
{
    if (number != f->failing) return false;
    zero_fake_fail(f, zero_fail(ZERO_ERR_ENV,
                                "the fake device failed in call %lld (%s), as "
                                "ZERO_FAKE_FAIL asks",
                                (long long)number, name));
    return true;
}

/* The first entry of a queue that nothing blocks. After a failure nothing is executed. */
static void execute(zero_fake *f, zero_fake_queue queue)
{
    const uint64_t first = f->ended[queue]++;
    if (queue != ZERO_FAKE_COMPUTE) {
        zero_fake_copy *copy = copy_at(f, queue, first);
        const char *name = queue == ZERO_FAKE_UP ? "store" : "fetch";
        if (!fails_now(f, name, copy->number) && copy->bytes > 0)
            memcpy(copy->to, copy->from, copy->bytes);
        return;
    }
    zero_fake_call *call = call_at(f, first);
    if (!call->execute || fails_now(f, call->name, call->number)) return;
    f->math.scratch = call->scratch;
    call->execute(f, &call->args);
}

/* Until `count` entries of the queue have ended, or something has failed. */
static void force(zero_fake *f, zero_fake_queue queue, uint64_t count)
{
    while (f->ended[queue] < count && !has_failed(f)) {
        zero_fake_queue at = queue, before = blocker_of(f, at);
        for (; before != at; before = blocker_of(f, at)) at = before;
        execute(f, at);
    }
}

void zero_fake_drain(zero_fake *f)
{
    for (zero_fake_queue q = ZERO_FAKE_COMPUTE; q < ZERO_FAKE_QUEUES; q++)
        force(f, q, f->recorded[q]);
}

/* ---- random moments ---- */

/* A number below `limit`. */
static uint64_t draw(zero_fake *f, uint64_t limit)
{
    const zero_rng rng = {.seed = f->order, .purpose = ZERO_RNG_TEST};
    return zero_rng_bits(&rng, f->draws++) % limit;
}

/* Each queue has phases of 64 moments, in which it executes nothing, an entry now and then, or all
 * that it can. So calls run far ahead of copies, and copies of calls. */
static bool wants_to(zero_fake *f, zero_fake_queue queue)
{
    static const uint64_t of_16[] = {0, 0, 1, 8, 15};
    const zero_rng rng = {.seed = f->order, .purpose = ZERO_RNG_TEST, .tensor = 1 + queue};
    const uint64_t phase = zero_rng_bits(&rng, f->moments / 64) % 5;
    return draw(f, 16) < of_16[phase];
}

/* Before a copy is forced, one time in three all other queues run as far ahead as they can: calls
 * that forgot to wait for it are executed first. */
static void run_ahead_of(zero_fake *f, zero_fake_queue queue)
{
    bool has_moved = f->order > 0 && draw(f, 3) == 0;
    while (has_moved) {
        has_moved = false;
        for (zero_fake_queue q = ZERO_FAKE_COMPUTE; q < ZERO_FAKE_QUEUES; q++)
            while (q != queue && !has_failed(f) && !is_empty(f, q) &&
                   blocker_of(f, q) == q) {
                execute(f, q);
                has_moved = true;
            }
    }
}

/* Called by every function of the device, after it has recorded what it was asked for. */
static void pass_moment(zero_fake *f)
{
    if (f->order == 0) {
        zero_fake_drain(f);
        return;
    }
    f->moments++;
    while (!has_failed(f)) {
        const zero_fake_queue q = (zero_fake_queue)draw(f, ZERO_FAKE_QUEUES);
        if (is_empty(f, q) || blocker_of(f, q) != q || !wants_to(f, q)) return;
        execute(f, q);
    }
}

/* ---- calls ---- */

/* The number of the entry that is recorded next. If the ring is full its oldest is executed. */
static uint64_t make_room(zero_fake *f, zero_fake_queue queue, uint64_t size)
{
    if (f->recorded[queue] - f->ended[queue] == size) force(f, queue, f->ended[queue] + 1);
    return f->recorded[queue];
}

zero_fake_call *zero_fake_begin(zero_fake *f, const char *name,
                                void (*execute_call)(zero_fake *f, zero_fake_args *a))
{
    zero_fake_call *call = call_at(f, make_room(f, ZERO_FAKE_COMPUTE, ZERO_FAKE_CALLS));
    *call = (zero_fake_call){.name = name, .execute = execute_call};
    return call;
}

static void count_queued(zero_fake *f)
{
    const uint64_t n = f->recorded[ZERO_FAKE_COMPUTE] - f->ended[ZERO_FAKE_COMPUTE];
    if ((int64_t)n > f->counts.most_queued) f->counts.most_queued = (int64_t)n;
}

void zero_fake_commit(const zero_math *math)
{
    zero_fake *f = zero_fake_of(math);
    zero_fake_call *call = call_at(f, f->recorded[ZERO_FAKE_COMPUTE]);
    if (math->scratch)
        call->scratch = zero_fake_at(f, call->name, math->scratch,
                                     (size_t)zero_math_scratch() * sizeof(float));
    if (!has_failed(f)) {
        call->number = ++f->number;
        f->counts.calls++;
        f->recorded[ZERO_FAKE_COMPUTE]++;
        count_queued(f);
        pass_moment(f);
    }
    zero_math_poll(math);
}

zero_status zero_fake_sync(const zero_math *math)
{
    zero_fake *f = zero_fake_of(math);
    f->counts.syncs++;
    f->counts.drains += !is_empty(f, ZERO_FAKE_COMPUTE);
    force(f, ZERO_FAKE_COMPUTE, f->recorded[ZERO_FAKE_COMPUTE]);
    return zero_fake_verdict(f);
}

/* ---- copies ---- */

static zero_status record_copy(zero_fake *f, zero_fake_queue queue, zero_fake_copy copy,
                               zero_ticket *ticket)
{
    const uint64_t at = make_room(f, queue, ZERO_FAKE_COPIES);
    ZERO_TRY(zero_fake_verdict(f));
    copy.number = ++f->number;
    copy.calls_before = f->since > 0 ? f->since - 1 : f->recorded[ZERO_FAKE_COMPUTE];
    copy.patience = f->order == 0 ? 0 : (int64_t)draw(f, 8);
    *copy_at(f, queue, at) = copy;
    f->recorded[queue]++;
    f->counts.copies++;
    *ticket = ticket_of(queue, f->recorded[queue]);
    pass_moment(f);
    return zero_fake_verdict(f);
}

/* The device's end of a copy, where it can be read. */
static zero_status check_copy(zero_fake *f, const char *call, const void *memory,
                              const void *host, size_t bytes, void **own)
{
    ZERO_TRY(zero_fake_verdict(f));
    *own = zero_fake_at(f, call, memory, bytes);
    if (bytes > 0 && !zero_fake_is_pinned(f, host, bytes))
        zero_fake_fail(f, zero_fail(ZERO_ERR_INVALID,
                                    "%s() of the fake device was given %zu bytes at %p, "
                                    "which are not pinned host memory",
                                    call, bytes, host));
    return zero_fake_verdict(f);
}

zero_status zero_fake_fetch(const zero_math *math, void *host, const void *memory,
                            size_t bytes, zero_ticket *ticket)
{
    zero_fake *f = zero_fake_of(math);
    void *own;
    ZERO_TRY(check_copy(f, "fetch", memory, host, bytes, &own));
    if (bytes > 0) memset(host, 0xff, bytes);
    f->counts.bytes_fetched += bytes;
    zero_fake_copy copy = {.to = host, .from = own, .bytes = bytes};
    return record_copy(f, ZERO_FAKE_DOWN, copy, ticket);
}

zero_status zero_fake_store(const zero_math *math, void *memory, const void *host,
                            size_t bytes, zero_ticket *ticket)
{
    zero_fake *f = zero_fake_of(math);
    void *own;
    ZERO_TRY(check_copy(f, "store", memory, host, bytes, &own));
    f->counts.bytes_stored += bytes;
    zero_fake_copy copy = {.to = own, .from = host, .bytes = bytes};
    return record_copy(f, ZERO_FAKE_UP, copy, ticket);
}

/* A copy ends at the latest when ended() has been asked a few times, so waiting ends. */
zero_status zero_fake_ended(const zero_math *math, zero_ticket ticket, bool *ended)
{
    zero_fake *f = zero_fake_of(math);
    ZERO_TRY(zero_fake_verdict(f));
    ZERO_TRY(check_ticket(f, "ended", ticket));
    *ended = false;
    if (f->stopping > 0 && f->number > f->stopping) return ZERO_OK;
    pass_moment(f);
    const zero_fake_queue queue = queue_of(ticket);
    const uint64_t number = ticket >> 1;
    if (!is_over(f, ticket) && --copy_at(f, queue, number - 1)->patience < 0) {
        run_ahead_of(f, queue);
        force(f, queue, number);
    }
    ZERO_TRY(zero_fake_verdict(f));
    *ended = is_over(f, ticket);
    f->counts.not_ended += !*ended;
    return ZERO_OK;
}

zero_status zero_fake_after(const zero_math *math, zero_ticket ticket)
{
    zero_fake *f = zero_fake_of(math);
    ZERO_TRY(zero_fake_verdict(f));
    ZERO_TRY(check_ticket(f, "after", ticket));
    if (!is_over(f, ticket)) {
        zero_fake_begin(f, "after", NULL)->ticket = ticket;
        ZERO_TRY(zero_fake_verdict(f)); /* making room executes */
        f->recorded[ZERO_FAKE_COMPUTE]++;
        f->counts.waits++;
    }
    pass_moment(f);
    return zero_fake_verdict(f);
}

/* The calls recorded so far, and 1: 0 is no place. */
zero_status zero_fake_place(const zero_math *math, zero_call_place *place)
{
    const zero_fake *f = zero_fake_of(math);
    *place = f->recorded[ZERO_FAKE_COMPUTE] + 1;
    return zero_fake_verdict(f);
}

void zero_fake_since(const zero_math *math, zero_call_place place)
{
    zero_fake_of(math)->since = place;
}
