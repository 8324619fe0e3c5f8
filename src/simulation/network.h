/* network.h - messages between ranks on links that are shared.
 *
 * A message leaves its sender, may pass the adapters of two nodes and a switch, and reaches
 * its receiver. Each of these links has a rate; messages that use a link at the same time
 * share it fairly. A link that served whole messages in their order would be wrong by half
 * wherever ranks do nothing but exchange: the order in which receives were posted would
 * decide who is served.
 *
 *     rank 0 --\                                              /-- rank 2
 *               adapter of node 0 -- switch -- adapter of node 1
 *     rank 1 --/                                              \-- rank 3
 *
 * Messages from one rank to the same other rank follow each other, as on a connection. Were
 * they to share the link, the chunks of a broadcast would all arrive at its end, and a
 * chain of ranks would never fill. So it is the connections that share a link.
 *
 * The links of a message serve it at the same time, each at its own pace, and it has
 * arrived when the last of them has: bytes flow through. Latency is work of the rank's own
 * links, out of the sender and into the receiver, as in the alpha-beta model: n messages of
 * B bytes in all, alone on a link, take n * latency + B / bandwidth. Neither ranks'
 * programs nor MPI nor payload here. */
#pragma once

#include "lists/layout.h"
#include "simulation/events.h"

typedef struct {
    double latency;   /* seconds per message, >= 0 */
    double bandwidth; /* bytes per second and direction, > 0, may be INFINITY */
} zero_link_rate;

typedef struct {
    const zero_layout *layout; /* borrowed: all ranks and their nodes */
    zero_link_rate across;     /* of a rank, for messages to other nodes */
    zero_link_rate inside;     /* of a rank, for messages and reads within its node */
    double adapter;            /* bytes per second and direction that a node's ranks share;
                                * INFINITY: each rank has `across` whatever the others do */
    int switch_nodes; /* nodes below one switch; 0: one switch that limits nothing */
    /* Oversubscription, >= 1: the uplink of a switch has the rate of its nodes' adapters
     * divided by this; without adapters, that of its ranks. */
    double switch_ratio;
} zero_network_input;

/* All but disks can be the busiest one. */
typedef enum {
    ZERO_LINK_RANK_OUT,
    ZERO_LINK_RANK_IN,
    ZERO_LINK_INSIDE_OUT,
    ZERO_LINK_INSIDE_IN,
    ZERO_LINK_NODE_OUT,
    ZERO_LINK_NODE_IN,
    ZERO_LINK_SWITCH_UP,
    ZERO_LINK_SWITCH_DOWN,
    ZERO_LINK_DISK, /* of a node, for transfers */
} zero_link_kind;

typedef struct {
    zero_link_kind kind;
    int which;   /* rank, node or switch */
    double busy; /* seconds in which it carried something */
    int64_t bytes;
} zero_link_use;

typedef struct zero_network zero_network;

/* Called at the time when a message has arrived, with the cookie of its send. */
typedef void zero_message_arrived(void *arg, int64_t cookie);

/* Borrows the events. ZERO_ERR_NOMEM. */
zero_status zero_network_open(zero_network **network, const zero_network_input *input,
                              zero_events *events, zero_message_arrived *arrived,
                              void *arg);
void zero_network_close(zero_network *network); /* accepts NULL */

/* Sends from one rank to another, beginning at events->now. Running out of memory is kept:
 * zero_network_failed(). */
void zero_network_send(zero_network *network, int from, int to, int64_t bytes,
                       int64_t cookie);
#define ZERO_NETWORK_SEVERAL (-1)

/* The same for bytes that rank `to` reads in the memory of rank `from`, on the same node:
 * without latency. `from` may be ZERO_NETWORK_SEVERAL, when `to` reads everywhere at once;
 * then only its own link counts. */
void zero_network_read(zero_network *network, int from, int to, int64_t bytes,
                       int64_t cookie);
/* A transfer between rank and the disk of its node, of so many seconds if it has the disk
 * to itself. A rank's transfers follow each other; those of several share the disk. */
void zero_network_transfer(zero_network *network, int rank, double seconds, int64_t cookie);
/* Handles an event of kind ZERO_EVENT_NETWORK. */
void zero_network_happens(zero_network *network, const zero_event *event);
bool zero_network_failed(const zero_network *network);

/* One link's use since the last zero_network_forget(); nothing for a link that limits
 * nothing. */
zero_link_use zero_network_use(const zero_network *network, zero_link_kind kind, int which);
/* The link that was busy longest since the last zero_network_forget(); busy 0 if none
 * was. */
zero_link_use zero_network_busiest(const zero_network *network);
void zero_network_forget(zero_network *network);
int64_t zero_network_messages(const zero_network *network); /* and reads, since the start */
int64_t zero_network_bytes(const zero_network *network);    /* of these */
