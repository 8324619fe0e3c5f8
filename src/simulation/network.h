/* network.h - messages between ranks on links that are shared.
 *
 * A message leaves its sender, may pass the adapters of two nodes and a switch, and reaches its
 * receiver. Each of these links has a rate; messages that use a link at the same time share it
 * fairly. A link that served whole messages in their order would be wrong by half wherever ranks do
 * nothing but exchange: the order in which receives were posted would decide who is served.
 *
 *     rank 0 --\                                              /-- rank 2
 *               adapter of node 0 -- switch -- adapter of node 1
 *     rank 1 --/                                              \-- rank 3
 *
 * A message ends `latency` seconds after its last byte has left. The messages of one rank pay the
 * latency of a common link one after the other, as in the alpha-beta model: n messages and B bytes
 * alone take n * latency + B / bandwidth. No rank, no MPI, no payload. */
#pragma once

#include "comm/layout.h"
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
    int switch_nodes;    /* nodes below one switch; 0: one switch that limits nothing */
    double switch_ratio; /* oversubscription: the uplink of a switch has the rate of its
                                * nodes' adapters / switch_ratio; >= 1 */
} zero_network_input;

/* The links that can be the busiest one. */
typedef enum {
    ZERO_LINK_RANK_OUT,
    ZERO_LINK_RANK_IN,
    ZERO_LINK_INSIDE_OUT,
    ZERO_LINK_INSIDE_IN,
    ZERO_LINK_NODE_OUT,
    ZERO_LINK_NODE_IN,
    ZERO_LINK_SWITCH_UP,
    ZERO_LINK_SWITCH_DOWN,
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
ZERO_NODISCARD zero_status zero_network_open(zero_network **network,
                                             const zero_network_input *input,
                                             zero_events *events,
                                             zero_message_arrived *arrived, void *arg);
void zero_network_close(zero_network *network); /* accepts NULL */

/* Sends from rank to rank, beginning at events->now. Running out of memory is kept:
 * zero_network_failed(). */
void zero_network_send(zero_network *network, int from, int to, int64_t bytes,
                       int64_t cookie);
/* Handles an event of kind ZERO_EVENT_NETWORK. */
void zero_network_happens(zero_network *network, const zero_event *event);
bool zero_network_failed(const zero_network *network);

/* The link that was busy longest since the last zero_network_forget(); busy 0 if none was. */
zero_link_use zero_network_busiest(const zero_network *network);
void zero_network_forget(zero_network *network);
int64_t zero_network_messages(const zero_network *network); /* since the start */
