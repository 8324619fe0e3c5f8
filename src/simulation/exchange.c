#include "simulation/exchange.h"

#include "base/fail.h"
#include "base/grow.h"
#include "simulation/parts.h"

void zero_parts_stir(zero_exchanges *x, int rank)
{
    if (x->ranks[rank].is_stirred) return;
    x->ranks[rank].is_stirred = true;
    x->input.stir(x->input.arg, rank);
}

/* ---- messages between parts ---- */

#define EAGER 65536 /* bytes: Open MPI's limit over TCP */

/* From when either part has posted it to when both ends have ended. */
typedef struct {
    zero_queued queued;           /* posted later, for the same pair */
    zero_part *sender, *receiver; /* NULL: not posted */
    int send_request, receive_request;
    int from, to; /* ranks of the world */
    int64_t bytes;
    bool travels, has_arrived;
} transfer;

static void travel(zero_exchanges *x, transfer *t)
{
    t->travels = true;
    zero_network_send(x->network, t->from, t->to, t->bytes,
                      zero_parts_cookie(ZERO_COOKIE_TRANSFER, t));
}

/* Makes the part an end of the message. */
static void join(transfer *t, zero_part *p, bool is_send)
{
    int i = __builtin_ctz(~p->pending);
    p->pending |= 1u << i;
    p->sends = is_send ? p->sends | 1u << i : p->sends & ~(1u << i);
    p->step_of[i] = p->next_step;
    *(is_send ? &t->sender : &t->receiver) = p;
    *(is_send ? &t->send_request : &t->receive_request) = i;
}

/* A queue of a pair holds those that have not met their other end: all sends, or all
 * receives. Large messages begin when both ends are posted, as MPI's do; so do all of a
 * reduce, whose sends are synchronous (comm/steps_run.c). */
void zero_parts_post(zero_exchanges *x, zero_part *p, const zero_packed_step *step)
{
    bool is_send = step->kind == ZERO_PACKED_SEND;
    int peer = zero_peers_member(&p->set->peers, p->member, step->peer);
    int from = is_send ? p->member : peer, to = is_send ? peer : p->member;
    uint64_t key = p->call->id << 42 | (uint64_t)from << 21 | (uint64_t)to;
    zero_queue *queue = zero_queues_find(&x->unmatched, key);
    transfer *t = queue ? (transfer *)queue->first : NULL;
    if (t && (t->receiver != NULL) == is_send) {
        zero_queues_take(&x->unmatched, queue);
        if (t->has_arrived) {
            zero_pool_give(&x->transfers, t);
            return;
        }
        join(t, p, is_send);
        if (!t->travels) travel(x, t);
        return;
    }
    t = zero_pool_take(&x->transfers);
    x->failed = x->failed || !t;
    if (!t) return;
    *t = (transfer){
        .from = p->group->ranks[from], .to = p->group->ranks[to], .bytes = step->value};
    join(t, p, is_send);
    x->failed = !zero_queues_append(&x->unmatched, key, &t->queued) || x->failed;
    if (is_send && step->value <= EAGER && p->set->spec.kind != ZERO_REDUCE) travel(x, t);
}

static void message_arrived(void *arg, int64_t cookie)
{
    zero_exchanges *x = arg;
    void *of = (void *)(uintptr_t)(cookie & ~INT64_C(3));
    zero_part *reader = of;
    switch ((zero_cookie_kind)(cookie & 3)) {
    case ZERO_COOKIE_TRANSFER: {
        transfer *t = of;
        zero_part *sender = t->sender, *receiver = t->receiver;
        t->has_arrived = true;
        sender->pending &= ~(1u << t->send_request);
        if (receiver) {
            receiver->pending &= ~(1u << t->receive_request);
            zero_pool_give(&x->transfers, t);
        }
        zero_looks_notice(x, sender);
        if (receiver) zero_looks_notice(x, receiver);
        break;
    }
    case ZERO_COOKIE_READ:
        reader->is_reading = false;
        reader->next_step++;
        zero_parts_stir(x, reader->rank);
        break;
    case ZERO_COOKIE_NOTHING: break;
    case ZERO_COOKIE_CALLER: x->input.arrived(x->input.arg, cookie / 4); break;
    }
}

/* ---- life ---- */

zero_status zero_exchanges_open(zero_exchanges **exchanges,
                                const zero_exchanges_input *input, zero_events *events)
{
    zero_exchanges *x;
    ZERO_TRY(zero_new(&x, 1, "exchanges of simulated ranks"));
    x->input = *input;
    x->reads_take_time = !isinf(input->network.inside.bandwidth);
    x->events = events;
    x->parts.size = sizeof(zero_part);
    x->transfers.size = sizeof(transfer);
    zero_status st =
        zero_new(&x->ranks, input->network.layout->size, "exchanges of simulated ranks");
    if (st == ZERO_OK)
        st = zero_network_open(&x->network, &input->network, events, message_arrived, x);
    if (st == ZERO_OK)
        *exchanges = x;
    else
        zero_exchanges_close(x);
    return st;
}

void zero_exchanges_close(zero_exchanges *x)
{
    if (!x) return;
    for (int64_t i = 0; i < x->n_groups; i++) {
        zero_exchange_group *g = x->groups[i];
        for (int64_t k = g->oldest; k < g->next; k++) free(g->calls[k & (g->capacity - 1)]);
        free(g->calls);
        free(g);
    }
    zero_network_close(x->network);
    zero_step_lists_destroy(&x->lists);
    zero_queues_destroy(&x->unmatched);
    zero_pool_destroy(&x->parts);
    zero_pool_destroy(&x->transfers);
    free(x->ranks);
    free(x->groups);
    free(x);
}

zero_status zero_exchanges_status(const zero_exchanges *x)
{
    if (!x->failed && !x->events->failed && !zero_network_failed(x->network))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the messages of %d ranks",
                     x->input.network.layout->size);
}

zero_network *zero_exchanges_network(zero_exchanges *x)
{
    return x->network;
}

/* ---- groups and lists ---- */

zero_status zero_exchanges_add_group(zero_exchanges *x, const int *ranks,
                                     const zero_layout *layout, int *group)
{
    const size_t bytes = (size_t)layout->size * sizeof *ranks;
    zero_exchange_group *made = calloc(1, sizeof *made + bytes);
    if (!made || !zero_grow(x->groups, x->n_groups, &x->group_capacity)) {
        free(made);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a group of %d ranks", layout->size);
    }
    made->layout = layout;
    memcpy(made->ranks, ranks, bytes);
    for (int64_t i = 0; i < x->n_groups && made->layout == layout; i++)
        if (zero_layout_are_equal(x->groups[i]->layout, layout))
            made->layout = x->groups[i]->layout;
    *group = (int)x->n_groups;
    x->groups[x->n_groups++] = made;
    return ZERO_OK;
}

zero_status zero_exchanges_add_lists(zero_exchanges *x, int group,
                                     const zero_collective_spec *spec, int *lists)
{
    return zero_step_lists_add(&x->lists, spec, x->groups[group]->layout, lists);
}

/* ---- calls ---- */

/* The call if it is in flight, else NULL. */
static zero_call *find_call(const zero_exchange_group *g, int64_t number)
{
    if (number < g->oldest || number >= g->next) return NULL;
    return g->calls[number & (g->capacity - 1)];
}

/* The call, made if no member has begun it; NULL: no memory. */
static zero_call *take_call(zero_exchanges *x, zero_exchange_group *g, int64_t number,
                            const zero_collective_spec *spec)
{
    if (number < g->next) return find_call(g, number);
    assert(number == g->next); /* members begin calls in order */
    if (g->next - g->oldest >= g->capacity) {
        int64_t capacity = g->capacity > 0 ? 2 * g->capacity : 8;
        zero_call **calls = malloc((size_t)capacity * sizeof *calls);
        if (!calls) return NULL;
        for (int64_t i = g->oldest; i < g->next; i++)
            calls[i & (capacity - 1)] = g->calls[i & (g->capacity - 1)];
        free(g->calls);
        g->calls = calls;
        g->capacity = capacity;
    }
    zero_call *call =
        calloc(1, sizeof *call + (size_t)g->layout->size * sizeof *call->members);
    if (!call) return NULL;
    call->id = x->n_calls++;
    call->n = spec->only > 0 ? 2 : g->layout->size;
    g->calls[g->next++ & (g->capacity - 1)] = call;
    return call;
}

/* ---- parts ---- */

double zero_exchanges_begin(zero_exchanges *x, int group, int64_t number, int lists,
                            int member, const void *begin)
{
    zero_exchange_group *g = x->groups[group];
    zero_call *call = take_call(x, g, number, &x->lists.sets[lists]->spec);
    zero_part *part = call ? zero_pool_take(&x->parts) : NULL;
    x->failed = x->failed || !part;
    if (x->failed) return 0.0;
    int rank = g->ranks[member];
    *part = (zero_part){.group = g,
                        .call = call,
                        .set = x->lists.sets[lists],
                        .list = zero_step_lists_get(x->lists.sets[lists], member),
                        .member = member,
                        .rank = rank,
                        .end = {rank, number, begin, x->events->now, 0.0}};
    zero_exchange_rank *r = &x->ranks[rank];
    *(r->last ? &r->last->next_of_rank : &r->first) = part;
    r->last = part;
    call->members[member].part = part;
    return zero_looks_advance(x, part);
}

void zero_parts_end(zero_exchanges *x, zero_part *part)
{
    zero_exchange_group *g = part->group;
    zero_exchange_rank *r = &x->ranks[part->rank];
    zero_part *before = NULL;
    part->end.ended = x->events->now;
    if (x->input.ended) x->input.ended(x->input.arg, &part->end);
    part->call->members[part->member].part = NULL;
    part->call->members[part->member].is_over = true;
    part->call->n_over++;
    for (zero_part *at = r->first; at != part; at = at->next_of_rank) before = at;
    *(before ? &before->next_of_rank : &r->first) = part->next_of_rank;
    if (r->last == part) r->last = before;
    /* Calls may end in any order. */
    for (zero_call *call; (call = find_call(g, g->oldest)) != NULL; g->oldest++) {
        if (call->n_over < call->n) break;
        free(call);
    }
    zero_pool_give(&x->parts, part);
}

double zero_exchange_look(zero_exchanges *x, int rank)
{
    double seconds = 0.0;
    x->ranks[rank].is_stirred = false;
    for (zero_part *part = x->ranks[rank].first, *next; part && seconds == 0.0;
         part = next) {
        next = part->next_of_rank; /* one that is over leaves the list */
        seconds = zero_looks_advance(x, part);
    }
    return seconds;
}

bool zero_exchange_is_over(const zero_exchanges *x, int group, int64_t number, int member)
{
    const zero_exchange_group *g = x->groups[group];
    const zero_call *call = find_call(g, number);
    return call ? call->members[member].is_over : number < g->oldest;
}
