#include "simulation/groups.h"

#include "base/fail.h"
#include "base/grow.h"
#include "lists/member.h"

static const zero_family_part parts[] = {ZERO_SHARD_GROUP, ZERO_REPLICA_GROUP,
                                         ZERO_TP_GROUP};
#define PARTS ZERO_COUNT(parts)

/* ---- layouts ---- */

/* The number of an equal layout of the part, or of this one, which then belongs to g. */
static zero_status keep_layout(zero_groups *g, zero_family_part part, zero_layout *layout,
                               int *number)
{
    for (int64_t k = g->n_layouts - 1; k >= 0; k--)
        if (g->layouts[k].part == part &&
            zero_layout_are_equal(&g->layouts[k].layout, layout)) {
            zero_layout_destroy(layout);
            *number = (int)k;
            return ZERO_OK;
        }
    if (!zero_grow(g->layouts, g->n_layouts, &g->layout_capacity)) {
        zero_layout_destroy(layout);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the nodes of groups");
    }
    *number = (int)g->n_layouts++;
    g->layouts[*number] = (zero_group_layout){.layout = *layout, .part = part};
    return ZERO_OK;
}

/* ---- seats ---- */

static zero_status seat_part(zero_groups *g, zero_family_part part, const zero_division *d,
                             const zero_layout *world)
{
    /* The group of the family that exchanges for the part; none may do. */
    zero_family_part of = part;
    if (part == ZERO_SHARD_GROUP && !zero_division_has(d, part))
        of = zero_division_has(d, ZERO_DATA_GROUP) ? ZERO_DATA_GROUP : ZERO_WHOLE;
    if (!zero_division_has(d, of)) return ZERO_OK;
    ZERO_TRY(zero_new(&g->seats[part], g->ranks, "ranks of groups"));
    for (int r = 0; r < g->ranks; r++) {
        zero_member m =
            of == ZERO_WHOLE
                ? (zero_member){.part = ZERO_WHOLE, .stride = 1, .size = d->size}
                : zero_member_of(of, d, r);
        if (m.first == r) {
            /* Seats of all members of the group that begins at `first`. */
            zero_layout layout;
            int number = -1;
            ZERO_TRY(zero_member_layout(&m, world, &layout));
            ZERO_TRY(keep_layout(g, part, &layout, &number));
            g->size[part] = m.size;
            for (int i = 0; i < m.size; i++)
                g->seats[part][zero_member_rank(&m, i)] = (zero_group_seat){
                    .group = -1, .member = i, .number = g->n[part], .layout = number};
            g->n[part]++;
            g->layouts[number].n_groups++;
        }
    }
    return ZERO_OK;
}

zero_status zero_groups_init(zero_groups *g, const zero_schedule *s)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    zero_division d = {
        .size = world->size, .tp = world->size / s->input.n_ranks, .shard = s->shard.size};
    *g = (zero_groups){.ranks = world->size, .tp = d.tp};
    for (int k = 0; k < PARTS; k++) ZERO_TRY(seat_part(g, parts[k], &d, world));
    return ZERO_OK;
}

void zero_groups_destroy(zero_groups *g)
{
    for (int k = 0; k < ZERO_FAMILY_PARTS; k++) free(g->seats[k]);
    for (int64_t k = 0; k < g->n_layouts; k++) {
        zero_layout_destroy(&g->layouts[k].layout);
        free(g->layouts[k].lists);
    }
    free(g->layouts);
    *g = (zero_groups){0};
}

/* ---- exchanges ---- */

/* Adds the group of which `rank` is the first member, and the lists of its layout if it is
 * the first one that has it. */
static zero_status add_group(zero_groups *g, zero_family_part part, int rank, int *ranks,
                             const zero_actions *a, zero_exchanges *x)
{
    zero_group_seat *seats = g->seats[part];
    zero_group_layout *of = &g->layouts[seats[rank].layout];
    int n = 0, group;
    for (int r = rank; r < g->ranks && n < g->size[part]; r++)
        if (seats[r].number == seats[rank].number) ranks[n++] = r;
    ZERO_TRY(zero_exchanges_add_group(x, ranks, &of->layout, &group));
    for (int i = 0; i < n; i++) seats[ranks[i]].group = group;
    if (of->lists) return ZERO_OK;
    ZERO_TRY(zero_new(&of->lists, a->n_specs, "lists of collectives"));
    for (int64_t k = 0; k < a->n_specs; k++)
        if (a->specs[k].part == part)
            ZERO_TRY(zero_exchanges_add_lists(x, group, &a->specs[k].spec, &of->lists[k]));
    return ZERO_OK;
}

zero_status zero_groups_add(zero_groups *g, const zero_actions *a, zero_exchanges *x)
{
    ZERO_FREED int *ranks = NULL;
    ZERO_TRY(zero_new(&ranks, g->ranks, "ranks of groups"));
    for (int k = 0; k < PARTS; k++)
        for (int r = 0; g->seats[parts[k]] && r < g->ranks; r++)
            if (g->seats[parts[k]][r].member == 0)
                ZERO_TRY(add_group(g, parts[k], r, ranks, a, x));
    return ZERO_OK;
}
