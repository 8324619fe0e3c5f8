#include "comm/signal.h"

#include "comm/group.h"

typedef _Atomic uint64_t counter;
_Static_assert(sizeof(counter) == 8 && ATOMIC_LLONG_LOCK_FREE == 2,
               "processes share the counters, so they must need no lock");

static counter *find(const zero_comm *comm, int rank, int64_t sequence)
{
    counter *rows = comm->signals;
    return rows + (int64_t)comm->layout.local_of[rank] * ZERO_SIGNALS +
           sequence % ZERO_SIGNALS;
}

static uint64_t value(int64_t sequence, int64_t phase)
{
    return (uint64_t)sequence << ZERO_PHASE_BITS | (uint64_t)phase;
}

void zero_signal_set(const zero_comm *comm, int64_t sequence, int64_t phase)
{
    atomic_store_explicit(find(comm, comm->rank, sequence), value(sequence, phase),
                          memory_order_release);
}

bool zero_signal_reached(const zero_comm *comm, int peer, int64_t sequence, int64_t phase)
{
    return atomic_load_explicit(find(comm, peer, sequence), memory_order_acquire) >=
           value(sequence, phase);
}
