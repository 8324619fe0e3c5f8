#include "simulation/network.h"

#include "base/fail.h"
#include "base/grow.h"
#include "simulation/queues.h"

/* ---- one link ---- */

/* One link, which its messages share fairly.
 *
 * The messages that a link serves at a time have equal shares of its rate. Each of them
 * ends when the link's own clock, which advances by 1/n of a second per second while n are
 * served, shows the message's mark: the clock when it came, and the seconds it takes alone.
 * So a message that comes or ends changes one clock and no other message. Source: Parekh
 * and Gallager 1993, "A generalized processor sharing approach to flow control". */

typedef struct {
    double mark;
    int64_t number; /* of the message: those of one mark end in this order */
    struct zero_message *message;
    int32_t hop; /* which link of the message this is */
} zero_served;

typedef struct {
    double seconds_per_byte;
    double clock, at; /* what the clock showed at time `at` */
    double busy;      /* seconds in which it served something */
    int64_t bytes;    /* that have passed */
    zero_heap served; /* by marks; owned */
    int64_t event;    /* the number of the event that looks here next; -1: none */
    double due;       /* its time */
} zero_link;

/* Times are rounded to a grid of a picosecond. What ends at the same time by the laws then
 * does so in numbers, and one event, one look ends it all. */
#define GRID 0x1p-40

/* Brings the clock to the time `now`. */
static void link_advance(zero_link *link, double now)
{
    if (link->served.n > 0) {
        link->clock += (now - link->at) / (double)link->served.n;
        link->busy += now - link->at;
    } else {
        link->clock = 0.0; /* nobody remembers: small numbers are exact */
    }
    link->at = now;
}

/* Takes the next message that has ended by `now`, the time of the clock; false if no
 * message has. */
static bool link_take(zero_link *link, zero_served *message)
{
    double precision = GRID + link->at * 0x1p-51;
    if (link->served.n == 0 || link->served.list[0].key > link->clock + precision)
        return false;
    const zero_heap_item item = zero_heap_take(&link->served);
    *message = (zero_served){item.key, item.number,
                             (struct zero_message *)(uintptr_t)(item.what & ~UINT64_C(7)),
                             (int32_t)(item.what & 7)};
    link->clock = fmax(link->clock, message->mark);
    return true;
}

#define LINK_KINDS (ZERO_LINK_DISK + 1)
#define HOPS       6 /* rank, node, switch, and down again */

typedef struct zero_message {
    zero_queued queued; /* on its connection, or of those that have arrived */
    int64_t number, bytes, cookie;
    uint64_t connection; /* the key of its queue */
    double mark[HOPS];   /* on each link */
    int32_t link[HOPS];
    int8_t n_hops;
    uint8_t passed; /* bit h: link[h] has served it */
} message;

struct zero_network {
    zero_network_input input;
    zero_events *events; /* borrowed */
    zero_message_arrived *arrived;
    void *arg;

    zero_link *links;              /* [first[LINK_KINDS]] */
    int32_t first[LINK_KINDS + 1]; /* the links of a kind */
    zero_pool messages;
    zero_queues connections; /* their messages in flight */
    int64_t sent, sent_bytes, numbers;
    bool failed;
};

/* ---- links ---- */

static int switch_of(const zero_network *net, int rank)
{
    return net->input.layout->node_of[rank] / net->input.switch_nodes;
}

/* Adds what each node or, without adapters, each rank contributes to the links of its
 * switch. */
static void set_switches(zero_network *net)
{
    const zero_network_input *in = &net->input;
    for (int kind = ZERO_LINK_SWITCH_UP; kind <= ZERO_LINK_SWITCH_DOWN; kind++) {
        zero_link *links = net->links + net->first[kind];
        int n = net->first[kind + 1] - net->first[kind];
        for (int i = 0; i < n; i++) links[i].seconds_per_byte = 0.0;
        for (int rank = 0; n > 0 && rank < in->layout->size; rank++) {
            bool counts = isinf(in->adapter) || in->layout->local_of[rank] == 0;
            double rate = isinf(in->adapter) ? in->across.bandwidth : in->adapter;
            if (counts) links[switch_of(net, rank)].seconds_per_byte += rate;
        }
        for (int i = 0; i < n; i++)
            links[i].seconds_per_byte = in->switch_ratio / links[i].seconds_per_byte;
    }
}

zero_status zero_network_open(zero_network **network, const zero_network_input *input,
                              zero_events *events, zero_message_arrived *arrived, void *arg)
{
    zero_network *net;
    ZERO_TRY(zero_new(&net, 1, "a network"));
    *net = (zero_network){.input = *input,
                          .events = events,
                          .arrived = arrived,
                          .arg = arg,
                          .messages = {sizeof(message), NULL, NULL}};
    /* In the order of zero_link_kind. */
    const int ranks = input->layout->size, all_nodes = input->layout->n_nodes;
    const int nodes = isinf(input->adapter) ? 0 : all_nodes, below = input->switch_nodes;
    const int switches = below > 0 ? (all_nodes + below - 1) / below : 0;
    const int n[] = {ranks, ranks,    ranks,    ranks,    nodes,
                     nodes, switches, switches, all_nodes};
    const double across = input->across.bandwidth, inside = input->inside.bandwidth;
    const double rates[] = {across,         across,   inside,   inside,  input->adapter,
                            input->adapter, INFINITY, INFINITY, INFINITY};
    for (int kind = 0; kind < LINK_KINDS; kind++)
        net->first[kind + 1] = net->first[kind] + n[kind];
    zero_status st = zero_new(&net->links, net->first[LINK_KINDS], "links of a network");
    if (st != ZERO_OK) {
        zero_network_close(net);
        return st;
    }
    for (int kind = 0; kind < LINK_KINDS; kind++)
        for (int i = net->first[kind]; i < net->first[kind + 1]; i++)
            net->links[i] = (zero_link){.seconds_per_byte = 1.0 / rates[kind], .event = -1};
    set_switches(net);
    *network = net;
    return ZERO_OK;
}

void zero_network_close(zero_network *net)
{
    if (!net) return;
    for (int i = 0; net->links && i < net->first[LINK_KINDS]; i++)
        free(net->links[i].served.list);
    free(net->links);
    zero_pool_destroy(&net->messages);
    zero_queues_destroy(&net->connections);
    free(net);
}

/* ---- messages ---- */

static void add_hop(const zero_network *net, message *m, zero_link_kind kind, int which)
{
    if (net->first[kind] < net->first[kind + 1])
        m->link[m->n_hops++] = net->first[kind] + which;
}

static void find_way(const zero_network *net, message *m, int from, int to)
{
    const int *node_of = net->input.layout->node_of;
    if (node_of[from] == node_of[to]) {
        add_hop(net, m, ZERO_LINK_INSIDE_OUT, from);
        add_hop(net, m, ZERO_LINK_INSIDE_IN, to);
        return;
    }
    add_hop(net, m, ZERO_LINK_RANK_OUT, from);
    add_hop(net, m, ZERO_LINK_NODE_OUT, node_of[from]);
    if (net->input.switch_nodes > 0 && switch_of(net, from) != switch_of(net, to)) {
        add_hop(net, m, ZERO_LINK_SWITCH_UP, switch_of(net, from));
        add_hop(net, m, ZERO_LINK_SWITCH_DOWN, switch_of(net, to));
    }
    add_hop(net, m, ZERO_LINK_NODE_IN, node_of[to]);
    add_hop(net, m, ZERO_LINK_RANK_IN, to);
}

/* ---- service ---- */

/* Makes sure that an event comes no later than the next end. One that comes too early,
 * since other messages have joined, does nothing but ask for another. */
static void expect(zero_network *net, int32_t l)
{
    zero_link *link = &net->links[l];
    if (link->served.n == 0) return;
    /* The time when the next message ends if none comes; n > 0. */
    double left = (link->served.list[0].key - link->clock) * (double)link->served.n;
    double due = fmax(link->at, rint((link->at + left) / GRID) * GRID);
    if (link->event >= 0 && link->due <= due) return;
    link->event = net->events->added;
    link->due = due;
    zero_events_add(net->events, due, ZERO_EVENT_NETWORK, l);
}

static void serve(zero_network *net, message *m, int hop)
{
    /* Messages lie at multiples of 8. */
    const zero_heap_item item = {m->mark[hop], m->number,
                                 (uint64_t)(uintptr_t)m | (uint64_t)hop};
    net->failed = !zero_heap_add(&net->links[m->link[hop]].served, item) || net->failed;
}

/* A link serves the message at once unless it still has the one before it on the
 * connection. */
static void enter(zero_network *net, message *m, const message *before, int hop,
                  double latency)
{
    zero_link *link = &net->links[m->link[hop]];
    bool is_end = hop == 0 || hop == m->n_hops - 1;
    double work = (double)m->bytes * link->seconds_per_byte + (is_end ? latency : 0.0);
    link_advance(link, net->events->now);
    if (before && !(before->passed >> hop & 1)) {
        m->mark[hop] = before->mark[hop] + work;
        return;
    }
    m->mark[hop] = link->clock + work;
    serve(net, m, hop);
    expect(net, m->link[hop]);
}

static void post(zero_network *net, const message *made, double latency)
{
    zero_queue *connection = zero_queues_find(&net->connections, made->connection);
    const message *before = connection ? (message *)connection->last : NULL;
    message *m = zero_pool_take(&net->messages);
    if (!m || !zero_queues_append(&net->connections, made->connection, &m->queued)) {
        net->failed = true;
        return;
    }
    *m = *made;
    for (int hop = 0; hop < m->n_hops; hop++) enter(net, m, before, hop, latency);
}

static message make(zero_network *net, int from, int to, int64_t bytes, int64_t cookie)
{
    net->sent++;
    net->sent_bytes += bytes;
    return (message){.number = net->numbers++,
                     .bytes = bytes,
                     .cookie = cookie,
                     .connection = (uint64_t)(uint32_t)from << 32 | (uint32_t)to};
}

void zero_network_send(zero_network *net, int from, int to, int64_t bytes, int64_t cookie)
{
    assert(from != to);
    const int *node_of = net->input.layout->node_of;
    bool is_inside = node_of[from] == node_of[to];
    message made = make(net, from, to, bytes, cookie);
    find_way(net, &made, from, to);
    post(net, &made, is_inside ? net->input.inside.latency : net->input.across.latency);
}

void zero_network_read(zero_network *net, int from, int to, int64_t bytes, int64_t cookie)
{
    assert(from != to);
    message made = make(net, from, to, bytes, cookie);
    if (from == ZERO_NETWORK_SEVERAL)
        add_hop(net, &made, ZERO_LINK_INSIDE_IN, to);
    else
        find_way(net, &made, from, to);
    post(net, &made, 0.0);
}

void zero_network_transfer(zero_network *net, int rank, double seconds, int64_t cookie)
{
    message made = {.number = net->numbers++,
                    .cookie = cookie,
                    .connection = (uint64_t)(uint32_t)rank << 32 | (uint32_t)rank};
    add_hop(net, &made, ZERO_LINK_DISK, net->input.layout->node_of[rank]);
    post(net, &made, seconds);
}

/* ---- ends ---- */

/* The link has served messages, and goes on with the next ones of their connections. The
 * callee may send. */
void zero_network_happens(zero_network *net, const zero_event *event)
{
    zero_link *link = &net->links[event->which];
    zero_served served;
    message *first = NULL, *last = NULL;
    if (link->event != event->number) return;
    link->event = -1;
    link_advance(link, net->events->now);
    while (link_take(link, &served)) {
        message *m = served.message, *next = (message *)m->queued.next;
        link->bytes += m->bytes;
        m->passed |= (uint8_t)(1u << served.hop);
        if (next) serve(net, next, served.hop);
        if (m->passed != (1u << m->n_hops) - 1) continue;
        /* Messages of a connection arrive in their order. */
        zero_queues_take(&net->connections,
                         zero_queues_find(&net->connections, m->connection));
        m->queued.next = NULL;
        if (last)
            last->queued.next = &m->queued;
        else
            first = m;
        last = m;
    }
    expect(net, event->which);
    for (message *m = first, *next; m; m = next) {
        int64_t cookie = m->cookie;
        next = (message *)m->queued.next;
        zero_pool_give(&net->messages, m);
        net->arrived(net->arg, cookie);
    }
}

bool zero_network_failed(const zero_network *net)
{
    return net->failed;
}

/* ---- counts ---- */

zero_link_use zero_network_use(const zero_network *net, zero_link_kind kind, int which)
{
    zero_link_use use = {.kind = kind, .which = which};
    if (net->first[kind] == net->first[kind + 1]) return use;
    const zero_link *link = &net->links[net->first[kind] + which];
    use.busy = link->busy + (link->served.n > 0 ? net->events->now - link->at : 0.0);
    use.bytes = link->bytes;
    return use;
}

zero_link_use zero_network_busiest(const zero_network *net)
{
    zero_link_use busiest = {0};
    for (int kind = 0; kind < ZERO_LINK_DISK; kind++)
        for (int i = 0; i < net->first[kind + 1] - net->first[kind]; i++) {
            zero_link_use use = zero_network_use(net, (zero_link_kind)kind, i);
            if (use.busy > busiest.busy) busiest = use;
        }
    return busiest;
}

void zero_network_forget(zero_network *net)
{
    for (int i = 0; i < net->first[LINK_KINDS]; i++) {
        link_advance(&net->links[i], net->events->now);
        net->links[i].busy = 0.0;
        net->links[i].bytes = 0;
    }
}

int64_t zero_network_messages(const zero_network *net)
{
    return net->sent;
}

int64_t zero_network_bytes(const zero_network *net)
{
    return net->sent_bytes;
}
