/* hosts.h - the names of the machines that a group runs on. */
#pragma once

#include "comm/comm.h"

#define ZERO_HOST_BYTES 64 /* longer names are cut */

typedef struct {
    char name[ZERO_HOST_BYTES];
} zero_host;

/* The names of the group's nodes, in their order: (*hosts)[n_nodes], the caller's (free).
 * Collective; call it before zero_comm_pretend_nodes(), while nodes are machines.
 * ZERO_ERR_NOMEM. */
zero_status zero_comm_hosts(zero_comm *comm, zero_host **hosts);
