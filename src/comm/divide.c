#include "comm/divide.h"

#include "comm/comm.h"
#include "comm/deadline.h"
#include "comm/family.h"

static zero_status check_division(const zero_comm *world, int tp, int shard, int pp)
{
    ZERO_INVALID_IF(
        pp < 1 || (tp >= 1 && world->size % tp == 0 && world->size / tp % pp != 0),
        "%d ranks cannot be divided into %d pipeline stages of TP groups of %d: "
        "expected stages of equally many groups",
        world->size, pp, tp);
    ZERO_INVALID_IF(
        tp < 1 || world->size % tp != 0,
        "%d ranks cannot be divided into TP groups of %d: expected a number of at "
        "least 1 that divides %d",
        world->size, tp, world->size);
    const int n = world->size / tp / pp;
    char choices[ZERO_SHARD_TEXT];
    zero_list_shards(n, choices);
    ZERO_INVALID_IF(
        shard != 0 && !zero_can_shard(n, shard),
        "%d ZeRO ranks cannot be divided into shard groups of %d: expected one of "
        "%s (%d, or a power of two that divides it: only then is each group a "
        "subtree of the sum over all)",
        n, shard, choices, n);
    ZERO_INVALID_IF(world->whole || world->parts, "the group %s: divide a group once",
                    world->whole ? "is part of another one" : "is divided already");
    ZERO_INVALID_IF(
        world->thread || world->watch || world->check,
        "the group has a watchdog, a check or a progress thread: divide it before "
        "they start");
    return ZERO_OK;
}

/* ---- the parts ---- */

static zero_status make_part(zero_comm *world, zero_comm *part)
{
    zero_member member = part->member;
    ZERO_TRY(zero_comm_split(world, member.first, world->rank, part));
    part->member = member;
    part->whole = world;
    /* Gives the part the nodes that the whole has or pretends. */
    ZERO_AT_END(zero_layout_destroy) zero_layout nodes = {0};
    ZERO_TRY(zero_agree(part, zero_member_layout(&part->member, &world->layout, &nodes)));
    ZERO_TRY(zero_comm_pretend_nodes(part, nodes.node_of));
    part->traffic[ZERO_CONTROL] = (zero_traffic){0}; /* counted from here on */
    part->duration[ZERO_CONTROL] = (zero_duration){0};
    return ZERO_OK;
}

zero_status zero_comm_divide(zero_comm *world, int tp, int shard_ranks, int pp)
{
    if (tp == 1 && pp == 1 && (shard_ranks == 0 || shard_ranks == world->size))
        return ZERO_OK;
    ZERO_TRY(zero_agree(world, check_division(world, tp, shard_ranks, pp)));
    zero_division divided = {.size = world->size, .tp = tp, .shard = shard_ranks, .pp = pp};
    if (shard_ranks == 0) divided.shard = zero_division_data(&divided);
    zero_status st = zero_agree(
        world, zero_new(&world->parts, ZERO_FAMILY_PARTS - 1, "groups of ranks"));
    /* Gives each part its place in the family. */
    for (int p = ZERO_TP_GROUP; st == ZERO_OK && p < ZERO_FAMILY_PARTS; p++)
        if (zero_division_has(&divided, (zero_family_part)p))
            world->parts[world->n_parts++].member =
                zero_member_of((zero_family_part)p, &divided, world->rank);
    zero_deadline_begin(world->deadline, "dividing the ranks into groups");
    /* A group may fail alone. Without a common verdict its ranks would leave, and the
     * others would wait for them in the next part. */
    for (int i = 0; st == ZERO_OK && i < world->n_parts; i++)
        st = zero_agree(world, make_part(world, &world->parts[i]));
    zero_deadline_end(world->deadline);
    if (st != ZERO_OK) zero_comm_destroy_parts(world);
    return st;
}

/* ---- access ---- */

zero_comm *zero_comm_data(zero_comm *comm)
{
    zero_comm *found = zero_family_find(comm, ZERO_DATA_GROUP);
    return found ? found : comm;
}

zero_comm *zero_comm_shard(zero_comm *comm)
{
    zero_comm *found = zero_family_find(comm, ZERO_SHARD_GROUP);
    return found ? found : zero_comm_data(comm);
}

zero_comm *zero_comm_replicas(zero_comm *comm)
{
    return zero_family_find(comm, ZERO_REPLICA_GROUP);
}

zero_comm *zero_comm_pipe(zero_comm *comm)
{
    return zero_family_find(comm, ZERO_PIPE_GROUP);
}

zero_comm *zero_comm_tp(zero_comm *comm)
{
    return zero_family_find(comm, ZERO_TP_GROUP);
}
