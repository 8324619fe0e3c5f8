#include "comm/hosts.h"

#include <unistd.h>

_Static_assert(sizeof(zero_host) % sizeof(uint64_t) == 0, "hosts travel as words");

zero_status zero_comm_hosts(zero_comm *comm, zero_host **hosts)
{
    const zero_layout *l = &comm->layout;
    const int64_t words = l->n_nodes * (int64_t)(sizeof **hosts / sizeof(uint64_t));
    ZERO_FREED zero_host *all = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&all, l->n_nodes, "names of hosts")));
    /* The first rank of each node fills in its name, and the others leave it zero. */
    if (l->local_of[comm->rank] == 0)
        gethostname(all[l->node_of[comm->rank]].name, ZERO_HOST_BYTES - 1);
    ZERO_TRY(zero_comm_or(comm, words, (void *)all));
    ZERO_GIVE(hosts, all);
    return ZERO_OK;
}
