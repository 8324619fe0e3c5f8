#include "comm/named.h"

#include "comm/comm.h"
#include "comm/launch.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "comm/works.h"

/* ---- the world of a program without MPI calls of its own ---- */

zero_status zero_world_open(double watchdog, zero_comm **world)
{
    const bool was_up = zero_mpi_is_up();
    if (!was_up) ZERO_TRY(zero_launch_start_serialized());
    ZERO_TRY(zero_comm_open(MPI_COMM_WORLD, watchdog, world));
    (*world)->started_mpi = !was_up;
    return zero_works_start(*world);
}

zero_status zero_world_set_watchdog(zero_comm *world, double watchdog)
{
    ZERO_TRY(zero_works_start(world));
    ZERO_INVALID_IF(!(watchdog > 0.0) || world->whole || (!world->watch && world->size > 1),
                    "a watchdog of %g s for group '%s': expected more than 0, and the "
                    "group of all ranks, opened with a watchdog",
                    watchdog, world->name);
    zero_thread_lock(world);
    zero_watch_set_limit(world, watchdog);
    zero_thread_unlock(world);
    return ZERO_OK;
}

zero_status zero_world_close(zero_comm **world)
{
    if (!world || !*world) return ZERO_OK;
    zero_comm *comm = *world;
    const bool ends = comm->started_mpi;
    *world = NULL;
    ZERO_TRY(zero_works_end(comm));
    ZERO_TRY(zero_comm_stop_helpers(comm));
    zero_comm_close(&comm);
    return ends ? zero_launch_stop() : ZERO_OK;
}

void zero_world_abort(int code)
{
    zero_launch_abort(code);
}

/* ---- open ---- */

static zero_status check_ranks(const zero_comm *world, int n, const int ranks[],
                               const char *name, int *mine)
{
    *mine = -1;
    ZERO_INVALID_IF(world->whole,
                    "a group of ranks of group '%s', which was opened "
                    "from another one: expected that one",
                    world->name);
    ZERO_INVALID_IF(!ranks || n < 1 || n > world->size || !name || name[0] == '\0' ||
                        strlen(name) >= ZERO_OPERATION_GROUP,
                    "a group of %d ranks named '%s': expected 1 to %d ranks, and a name "
                    "of 1 to %d bytes",
                    n, name ? name : "(null)", world->size, ZERO_OPERATION_GROUP - 1);
    for (int i = 0; i < n; i++) {
        ZERO_INVALID_IF(ranks[i] < 0 || ranks[i] >= world->size,
                        "group '%s' has rank %d: expected 0 to %d", name, ranks[i],
                        world->size - 1);
        for (int k = 0; k < i; k++)
            ZERO_INVALID_IF(ranks[k] == ranks[i], "group '%s' has rank %d twice", name,
                            ranks[i]);
        if (ranks[i] == world->rank) *mine = i;
    }
    ZERO_INVALID_IF(*mine < 0,
                    "rank %d opens group '%s', which does not have it: only its ranks may",
                    world->rank, name);
    return ZERO_OK;
}

/* Waits until all ranks of the new group are here, under the watchdog: what follows blocks
 * inside MPI. Each sends to the one `step` after it, for each power of two. */
static zero_status meet(zero_comm *world, int n, const int ranks[], int mine, int tag,
                        const zero_operation *what)
{
    char none = 0;
    for (int step = 1; step < n; step *= 2) {
        MPI_Request requests[2];
        ZERO_TRY(zero_mpi(MPI_Irecv(&none, 0, MPI_BYTE, ranks[(mine - step + n) % n], tag,
                                    world->control, &requests[0])));
        ZERO_TRY(zero_mpi(MPI_Isend(&none, 0, MPI_BYTE, ranks[(mine + step) % n], tag,
                                    world->control, &requests[1])));
        for (int i = 0; i < 2; i++)
            ZERO_TRY(zero_wait_request(world, ZERO_WATCH_WAITING, what, &requests[i]));
    }
    return ZERO_OK;
}

static zero_status open_group(zero_comm *world, int n, const int ranks[], int mine,
                              zero_comm *group)
{
    const int tag = (int)(zero_operation_group_hash(group->name) % 32767);
    zero_comm made;
    zero_operation what = zero_operation_control(ZERO_OPERATION_OPENING, 0, 0, -1);
    zero_operation_set_group(&what, group->name);
    ZERO_TRY(zero_works_drain(world));
    ZERO_TRY(meet(world, n, ranks, mine, 1 + tag, &what));
    MPI_Group all, some;
    MPI_Comm mpi;
    ZERO_TRY(zero_mpi(MPI_Comm_group(world->mpi, &all)));
    ZERO_TRY(zero_mpi(MPI_Group_incl(all, n, ranks, &some)));
    zero_status st = zero_mpi(MPI_Comm_create_group(world->mpi, some, tag, &mpi));
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    ZERO_TRY(st == ZERO_OK ? zero_comm_adopt(mpi, "zero named group", &made) : st);
    memcpy(made.name, group->name, sizeof made.name);
    made.whole = world;
    made.next_named = world->named;
    *group = made;
    world->named = group;
    return ZERO_OK;
}

zero_status zero_comm_open_ranks(zero_comm *world, int n, const int ranks[],
                                 const char *name, zero_comm **comm)
{
    zero_comm *group;
    int mine;
    ZERO_TRY(zero_works_start(world));
    ZERO_TRY(check_ranks(world, n, ranks, name, &mine));
    ZERO_INVALID_IF(!comm, "a group without a place for it");
    ZERO_TRY(zero_new(&group, 1, "a group of ranks"));
    strcpy(group->name, name);
    zero_thread_lock(world);
    zero_status st = open_group(world, n, ranks, mine, group);
    if (st != ZERO_OK) zero_thread_fail(world, st);
    zero_thread_unlock(world);
    if (st == ZERO_OK)
        *comm = group;
    else
        free(group);
    return st;
}

void zero_named_close(zero_comm *comm)
{
    zero_comm *world = comm->whole, **at = &world->named;
    if (zero_works_end(comm) != ZERO_OK) return;
    zero_thread_lock(world);
    while (*at != comm) at = &(*at)->next_named;
    *at = comm->next_named;
    zero_comm_destroy(comm);
    zero_thread_unlock(world);
    free(comm);
}

/* ---- what it has moved ---- */

static zero_moved moved(const zero_traffic *t)
{
    zero_volume v = zero_traffic_total(t);
    return (zero_moved){v.bytes_sent, v.bytes_received, v.messages_sent,
                        v.messages_received};
}

void zero_comm_traffic(const zero_comm *comm, zero_comm_bytes *out)
{
    *out = (zero_comm_bytes){0};
    if (!comm) return;
    zero_thread_lock(comm);
    const zero_traffic *t = comm->traffic;
    *out = (zero_comm_bytes){.reduce_scatter = moved(&t[ZERO_REDUCE_SCATTER]),
                             .all_gather = moved(&t[ZERO_ALL_GATHER]),
                             .reduce = moved(&t[ZERO_REDUCE]),
                             .broadcast = moved(&t[ZERO_BROADCAST]),
                             .all_reduce = moved(&t[ZERO_ALL_REDUCE]),
                             .exchange = moved(&comm->exchanged)};
    zero_thread_unlock(comm);
}

zero_status zero_comm_on_question(zero_comm *world, zero_tell *tell, void *arg)
{
    ZERO_TRY(zero_works_start(world));
    zero_thread_lock(world);
    world->tell = tell;
    world->tell_arg = arg;
    zero_thread_unlock(world);
    return ZERO_OK;
}
