#include "simulation/groups.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "lists/member.h"

static const int parts[] = {ZERO_SHARD_GROUP, ZERO_REPLICA_GROUP, ZERO_TP_GROUP};

/* The group of the family that exchanges in a lane; there may be none. */
static zero_family_part part_of(const zero_groups *g, int lane)
{
    if (lane >= ZERO_FAMILY_PARTS) return ZERO_PIPE_GROUP;
    if (lane != ZERO_SHARD_GROUP || zero_division_has(&g->division, ZERO_SHARD_GROUP))
        return (zero_family_part)lane;
    return zero_division_has(&g->division, ZERO_DATA_GROUP) ? ZERO_DATA_GROUP : ZERO_WHOLE;
}

static zero_member member_of(const zero_groups *g, int lane, int rank)
{
    const zero_family_part part = part_of(g, lane);
    return part == ZERO_WHOLE
               ? (zero_member){.part = ZERO_WHOLE, .stride = 1, .size = g->ranks}
               : zero_member_of(part, &g->division, rank);
}

/* ---- layouts ---- */

/* The number of a group's layout, as one of its ranks sees it. */
static zero_status find_layout(zero_groups *g, int lane, int rank, const zero_layout *world,
                               int group, int *number)
{
    const int stage = rank / g->per_stage;
    const zero_member m = member_of(g, lane, rank);
    zero_layout layout;
    ZERO_TRY(zero_member_layout(&m, world, &layout));
    for (int64_t k = g->n_layouts - 1; k >= 0; k--)
        if (g->layouts[k].lane == lane && g->layouts[k].stage == stage &&
            zero_layout_are_equal(&g->layouts[k].layout, &layout)) {
            zero_layout_destroy(&layout);
            *number = (int)k;
            return ZERO_OK;
        }
    if (!zero_grow(g->layouts, g->n_layouts, &g->layout_capacity)) {
        zero_layout_destroy(&layout);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the nodes of groups");
    }
    *number = (int)g->n_layouts++;
    g->layouts[*number] =
        (zero_group_layout){.layout = layout, .lane = lane, .stage = stage, .group = group};
    return ZERO_OK;
}

/* ---- seats ---- */

static zero_status add_seats(zero_groups *g, int lane)
{
    return g->seats[lane] ? ZERO_OK
                          : zero_new(&g->seats[lane], g->ranks, "ranks of groups");
}

/* A new group, of which a rank is a member. */
static zero_status open_group(zero_groups *g, int lane, int rank, const zero_layout *world,
                              zero_group_seat *seat)
{
    if (!zero_grow(g->first, g->n_groups, &g->group_capacity))
        return zero_fail(ZERO_ERR_NOMEM, "no memory for groups of ranks");
    seat->group = (int)g->n_groups;
    ZERO_TRY(find_layout(g, lane, rank, world, seat->group, &seat->layout));
    g->layouts[seat->layout].n_groups++;
    seat->number = g->n[lane]++;
    g->first[g->n_groups][0] = lane;
    g->first[g->n_groups++][1] = rank;
    return ZERO_OK;
}

static zero_status seat_part(zero_groups *g, int lane, const zero_layout *world)
{
    const zero_family_part part = part_of(g, lane);
    if (!zero_division_has(&g->division, part)) return ZERO_OK;
    ZERO_TRY(add_seats(g, lane));
    for (int r = 0; r < g->ranks; r++) {
        const zero_member m = member_of(g, lane, r);
        zero_group_seat seat;
        if (m.first != r) continue;
        ZERO_TRY(open_group(g, lane, r, world, &seat));
        for (seat.member = 0; seat.member < m.size; seat.member++)
            g->seats[lane][zero_member_rank(&m, seat.member)] = seat;
    }
    return ZERO_OK;
}

zero_status zero_groups_add_stage(zero_groups *g, const zero_schedule *s)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    for (int k = 0; k < s->n_messages; k++) {
        const zero_pipe_message *m = &s->messages[k];
        const int lane = zero_lane_of_message(m->content, false);
        bool is_new = m->from == s->pipe.stage;
        for (int o = 0; o < k; o++)
            is_new = is_new && (s->messages[o].content != m->content ||
                                s->messages[o].from != m->from);
        if (!is_new) continue;
        ZERO_TRY(add_seats(g, lane));
        ZERO_TRY(add_seats(g, lane + 1));
        for (int r = m->from * g->per_stage; r < (m->from + 1) * g->per_stage; r++) {
            const int to = r + (m->to - m->from) * g->per_stage;
            zero_group_seat seat;
            ZERO_TRY(open_group(g, lane, r, world, &seat));
            seat.member = m->from;
            g->seats[lane][r] = seat;
            ZERO_TRY(find_layout(g, lane + 1, to, world, seat.group, &seat.layout));
            seat.member = m->to;
            g->seats[lane + 1][to] = seat;
        }
    }
    return ZERO_OK;
}

zero_status zero_groups_init(zero_groups *g, const zero_schedule *s)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    const int P = s->pipe.n_stages, tp = world->size / s->input.n_ranks / P;
    *g = (zero_groups){
        .division = {.size = world->size, .tp = tp, .shard = s->shard.size, .pp = P},
        .ranks = world->size,
        .per_stage = world->size / P,
        .gathering = P > 1 ? 1 : tp};
    for (int k = 0; k < ZERO_COUNT(parts); k++) ZERO_TRY(seat_part(g, parts[k], world));
    return ZERO_OK;
}

void zero_groups_destroy(zero_groups *g)
{
    for (int k = 0; k < ZERO_LANES; k++) free(g->seats[k]);
    for (int64_t k = 0; k < g->n_layouts; k++) {
        zero_layout_destroy(&g->layouts[k].layout);
        free(g->layouts[k].lists);
    }
    free(g->layouts);
    free(g->first);
    *g = (zero_groups){0};
}

/* ---- exchanges ---- */

zero_status zero_groups_add(zero_groups *g, const zero_actions *stages, zero_exchanges *x)
{
    ZERO_FREED int *ranks = NULL;
    ZERO_TRY(zero_new(&ranks, g->ranks, "ranks of groups"));
    for (int64_t k = 0; k < g->n_groups; k++) {
        const int lane = g->first[k][0], rank = g->first[k][1];
        const zero_member m = member_of(g, lane, rank);
        int group;
        for (int i = 0; i < m.size; i++) ranks[i] = zero_member_rank(&m, i);
        ZERO_TRY(zero_exchanges_add_group(
            x, ranks, &g->layouts[g->seats[lane][rank].layout].layout, &group));
        assert(group == k);
    }
    for (int64_t l = 0; l < g->n_layouts; l++) {
        zero_group_layout *of = &g->layouts[l];
        const zero_actions *a = &stages[of->stage];
        ZERO_TRY(zero_new(&of->lists, a->n_specs, "lists of collectives"));
        for (int64_t k = 0; k < a->n_specs; k++)
            if (a->specs[k].lane == of->lane)
                ZERO_TRY(zero_exchanges_add_lists(x, of->group, &a->specs[k].spec,
                                                  &of->lists[k]));
    }
    return ZERO_OK;
}
