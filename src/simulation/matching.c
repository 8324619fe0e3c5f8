#include "simulation/parts.h"

#include "base/grow.h"

#define EAGER 65536 /* bytes: Open MPI's limit over TCP */

/* ---- transfers ---- */

static int32_t take_transfer(zero_exchanges *x)
{
    int32_t t = x->free_transfer;
    if (t >= 0) {
        x->free_transfer = x->transfers[t].next;
        return t;
    }
    zero_transfer *larger =
        zero_grow(x->transfers, x->n_transfers, &x->transfer_capacity, sizeof *larger);
    if (!larger) return -1;
    x->transfers = larger;
    return (int32_t)x->n_transfers++;
}

static void release_transfer(zero_exchanges *x, int32_t t)
{
    x->transfers[t].next = x->free_transfer;
    x->free_transfer = t;
}

static void travel(zero_exchanges *x, int32_t t)
{
    zero_transfer *transfer = &x->transfers[t];
    transfer->travels = true;
    zero_network_send(x->network, transfer->from, transfer->to, transfer->bytes,
                      zero_parts_cookie(ZERO_COOKIE_TRANSFER, t));
}

/* ---- requests ---- */

static int32_t take_request(zero_part *p, bool is_send)
{
    int32_t i = __builtin_ctz(~p->pending);
    p->pending |= 1u << i;
    p->sends = is_send ? p->sends | 1u << i : p->sends & ~(1u << i);
    p->step_of[i] = p->next_step;
    return i;
}

static void end_request(zero_exchanges *x, int32_t part, int32_t request)
{
    x->parts[part].pending &= ~(1u << request);
}

/* ---- pairs ---- */

/* Those of a pair that have not met their other end: all sends, or all receives. */
static zero_queue *queue_of(zero_exchanges *x, int32_t call, int from, int to)
{
    uint64_t key = (uint64_t)call << 42 | (uint64_t)from << 21 | (uint64_t)to;
    zero_queue *queue = zero_queues_add(&x->unmatched, key);
    x->failed = x->failed || !queue;
    return queue;
}

static bool holds_receives(const zero_exchanges *x, const zero_queue *queue)
{
    return x->transfers[queue->first].receive_part >= 0;
}

static int32_t take_first(zero_exchanges *x, zero_queue *queue)
{
    int32_t t = queue->first;
    queue->first = x->transfers[t].next;
    if (--queue->n == 0) zero_queues_remove(&x->unmatched, queue);
    return t;
}

/* A new transfer of the pair; -1: no memory. */
static int32_t append(zero_exchanges *x, zero_queue *queue, const zero_transfer *made)
{
    int32_t t = take_transfer(x);
    x->failed = x->failed || t < 0;
    if (t < 0) return t;
    x->transfers[t] = *made;
    x->transfers[t].next = -1;
    if (queue->n++ > 0)
        x->transfers[queue->last].next = t;
    else
        queue->first = t;
    queue->last = t;
    return t;
}

/* ---- both ends ---- */

static int peer_of(const zero_exchanges *x, const zero_part *p,
                   const zero_packed_step *step)
{
    return zero_peers_member(&x->lists.sets[p->set].peers, p->member, step->peer);
}

void zero_matching_send(zero_exchanges *x, int32_t part, const zero_packed_step *step)
{
    zero_part *p = &x->parts[part];
    int to = peer_of(x, p, step);
    zero_queue *queue = queue_of(x, p->call, p->member, to);
    if (!queue) return;
    int32_t request = take_request(p, true);
    if (queue->n > 0 && holds_receives(x, queue)) {
        int32_t t = take_first(x, queue);
        x->transfers[t].send_part = part;
        x->transfers[t].send_request = request;
        travel(x, t);
        return;
    }
    const int *ranks = x->groups[p->group].ranks;
    int32_t t = append(x, queue,
                       &(zero_transfer){.send_part = part,
                                        .send_request = request,
                                        .receive_part = ZERO_NO_PART,
                                        .from = ranks[p->member],
                                        .to = ranks[to],
                                        .bytes = step->value});
    /* Large messages begin when both ends are posted, as MPI's do; so do all of a
     * reduce, whose sends are synchronous (comm/steps_run.c). */
    if (t >= 0 && step->value <= EAGER && x->lists.sets[p->set].spec.kind != ZERO_REDUCE)
        travel(x, t);
}

/* Joins a send that is posted already. */
static void meet_send(zero_exchanges *x, int32_t t, int32_t part)
{
    zero_transfer *transfer = &x->transfers[t];
    if (transfer->has_arrived) {
        release_transfer(x, t);
        return;
    }
    transfer->receive_part = part;
    transfer->receive_request = take_request(&x->parts[part], false);
    if (!transfer->travels) travel(x, t);
}

void zero_matching_receive(zero_exchanges *x, int32_t part, const zero_packed_step *step)
{
    zero_part *p = &x->parts[part];
    int from = peer_of(x, p, step);
    zero_queue *queue = queue_of(x, p->call, from, p->member);
    if (!queue) return;
    if (queue->n > 0 && !holds_receives(x, queue)) {
        meet_send(x, take_first(x, queue), part);
        return;
    }
    const int *ranks = x->groups[p->group].ranks;
    append(x, queue,
           &(zero_transfer){.send_part = ZERO_NO_PART,
                            .receive_part = part,
                            .receive_request = take_request(p, false),
                            .from = ranks[from],
                            .to = ranks[p->member],
                            .bytes = step->value});
}

void zero_matching_arrived(zero_exchanges *x, int32_t t, int32_t *ended)
{
    zero_transfer *transfer = &x->transfers[t];
    transfer->has_arrived = true;
    ended[0] = transfer->send_part;
    ended[1] = transfer->receive_part;
    end_request(x, transfer->send_part, transfer->send_request);
    if (transfer->receive_part >= 0) {
        end_request(x, transfer->receive_part, transfer->receive_request);
        release_transfer(x, t);
    }
}
