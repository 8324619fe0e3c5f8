#include "comm/divide.h"

#include <stdlib.h>

#include "base/fail.h"
#include "comm/comm.h"
#include "comm/family.h"

static zero_status check_division(const zero_comm *world, int tp)
{
    if (tp < 1 || world->size % tp != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "%d ranks cannot be divided into TP groups of %d: expected a "
                         "number of at least 1 that divides %d",
                         world->size, tp, world->size);
    if (world->whole || world->tp)
        return zero_fail(ZERO_ERR_INVALID, "the group %s: divide a group once",
                         world->whole ? "is part of another one" : "is divided already");
    if (world->thread || world->watch || world->check)
        return zero_fail(ZERO_ERR_INVALID, "the group has a watchdog, a check or a "
                                           "progress thread: divide it before they start");
    return ZERO_OK;
}

static zero_status allocate(zero_comm *world)
{
    world->tp = calloc(1, sizeof *world->tp);
    world->data = calloc(1, sizeof *world->data);
    if (world->tp && world->data) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for the groups of %d ranks", world->size);
}

/* Gives the part the nodes that the whole has or pretends. */
static zero_status give_nodes(const zero_comm *world, zero_comm *part)
{
    zero_layout nodes = {0};
    zero_status st =
        zero_agree(part, zero_member_layout(&part->member, &world->layout, &nodes));
    if (st == ZERO_OK) st = zero_comm_pretend_nodes(part, nodes.node_of);
    zero_layout_destroy(&nodes);
    part->traffic[ZERO_CONTROL] = (zero_traffic){0}; /* counted from here on */
    part->duration[ZERO_CONTROL] = (zero_duration){0};
    return st;
}

static zero_status make_part(zero_comm *world, zero_family_part kind, int tp,
                             zero_comm *part)
{
    zero_member member = zero_member_of(kind, tp, world->size, world->rank);
    ZERO_TRY(zero_comm_split(world, member.index, world->rank, part));
    part->member = member;
    part->whole = world;
    return give_nodes(world, part);
}

static zero_status make_parts(zero_comm *world, int tp)
{
    ZERO_TRY(make_part(world, ZERO_TP_GROUP, tp, world->tp));
    return make_part(world, ZERO_DATA_GROUP, tp, world->data);
}

zero_status zero_comm_divide(zero_comm *world, int tp)
{
    if (tp == 1) return ZERO_OK;
    ZERO_TRY(zero_agree(world, check_division(world, tp)));
    zero_status st = zero_agree(world, allocate(world));
    zero_deadline_begin(world->deadline, "dividing the ranks into TP groups");
    if (st == ZERO_OK) st = make_parts(world, tp);
    zero_deadline_end(world->deadline);
    st = zero_agree(world, st);
    if (st != ZERO_OK) zero_comm_destroy_parts(world);
    return st;
}

zero_comm *zero_comm_data(zero_comm *comm)
{
    return comm->data ? comm->data : comm;
}

zero_comm *zero_comm_tp(zero_comm *comm)
{
    return comm->tp;
}

int zero_comm_find_spread(const zero_comm *comm, int tp)
{
    return zero_member_find_spread(&comm->layout, tp);
}
