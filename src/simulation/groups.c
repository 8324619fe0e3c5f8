#include "simulation/groups.h"

#include <stdlib.h>

#include "base/fail.h"
#include "lists/member.h"
#include "sharding/schedule_exchange.h"

static const zero_family_part parts[] = {ZERO_SHARD_GROUP, ZERO_REPLICA_GROUP,
                                         ZERO_TP_GROUP};
#define PARTS ((int)(sizeof parts / sizeof *parts))

/* ---- layouts ---- */

/* The number of an equal layout of the part, or of this one, which then belongs to g. */
static zero_status keep_layout(zero_groups *g, zero_family_part part, zero_layout *layout,
                               int *number)
{
    for (int k = g->n_layouts - 1; k >= 0; k--)
        if (g->part_of[k] == part && zero_layout_are_equal(g->layouts[k], layout)) {
            zero_layout_destroy(layout);
            *number = k;
            return ZERO_OK;
        }
    size_t n = (size_t)g->n_layouts + 1;
    void *layouts = realloc(g->layouts, n * sizeof *g->layouts);
    if (layouts) g->layouts = layouts;
    void *part_of = realloc(g->part_of, n * sizeof *g->part_of);
    if (part_of) g->part_of = part_of;
    zero_layout *kept = malloc(sizeof *kept);
    if (!layouts || !part_of || !kept) {
        free(kept);
        zero_layout_destroy(layout);
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the nodes of %zu groups", n);
    }
    *kept = *layout;
    g->layouts[g->n_layouts] = kept;
    g->part_of[g->n_layouts] = part;
    *number = g->n_layouts++;
    return ZERO_OK;
}

/* ---- seats ---- */

/* The group of the family that exchanges for a part; ZERO_FAMILY_PARTS if no group does. */
static int group_for(zero_family_part part, const zero_division *d)
{
    if (zero_division_has(d, part)) return (int)part;
    if (part != ZERO_SHARD_GROUP) return ZERO_FAMILY_PARTS;
    return zero_division_has(d, ZERO_DATA_GROUP) ? ZERO_DATA_GROUP : ZERO_WHOLE;
}

static zero_status seat_part(zero_groups *g, zero_family_part part, const zero_division *d,
                             const zero_layout *world)
{
    int of = group_for(part, d);
    if (of == ZERO_FAMILY_PARTS) return ZERO_OK;
    g->seats[part] = calloc((size_t)g->ranks, sizeof *g->seats[part]);
    if (!g->seats[part])
        return zero_fail(ZERO_ERR_NOMEM, "no memory for the groups of %d ranks", g->ranks);
    for (int r = 0; r < g->ranks; r++) {
        zero_member m =
            of == ZERO_WHOLE
                ? (zero_member){.part = ZERO_WHOLE, .stride = 1, .size = d->size}
                : zero_member_of((zero_family_part)of, d, r);
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
        }
    }
    return ZERO_OK;
}

zero_status zero_groups_init(zero_groups *g, const zero_schedule *s)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    zero_division d = {
        .size = world->size, .tp = world->size / s->input.n_ranks, .shard = s->shard.size};
    *g = (zero_groups){.ranks = world->size};
    for (int k = 0; k < PARTS; k++) ZERO_TRY(seat_part(g, parts[k], &d, world));
    return ZERO_OK;
}

void zero_groups_destroy(zero_groups *g)
{
    for (int k = 0; k < ZERO_FAMILY_PARTS; k++) free(g->seats[k]);
    for (int k = 0; k < g->n_layouts; k++) {
        zero_layout_destroy(g->layouts[k]);
        free(g->layouts[k]);
    }
    free(g->layouts);
    free(g->part_of);
    free(g->lists);
    *g = (zero_groups){0};
}

/* ---- exchanges ---- */

/* The group of which `rank` is the first member. */
static zero_status add_group(zero_groups *g, zero_family_part part, int rank, int *ranks,
                             zero_exchanges *x)
{
    zero_group_seat *seats = g->seats[part];
    int n = 0, group;
    for (int r = rank; r < g->ranks && n < g->size[part]; r++)
        if (seats[r].number == seats[rank].number) ranks[n++] = r;
    ZERO_TRY(zero_exchanges_add_group(x, ranks, g->layouts[seats[rank].layout], &group));
    for (int i = 0; i < n; i++) seats[ranks[i]].group = group;
    return ZERO_OK;
}

static zero_status add_part(zero_groups *g, zero_family_part part, const zero_actions *a,
                            int *ranks, zero_exchanges *x)
{
    const zero_group_seat *seats = g->seats[part];
    for (int r = 0; seats && r < g->ranks; r++) {
        int *lists = &g->lists[(int64_t)seats[r].layout * a->n_specs];
        bool has_lists = false;
        if (seats[r].member > 0) continue;
        ZERO_TRY(add_group(g, part, r, ranks, x));
        for (int k = 0; k < a->n_specs; k++) has_lists = has_lists || lists[k] >= 0;
        for (int k = 0; !has_lists && k < a->n_specs; k++)
            if (a->part_of[k] == part)
                ZERO_TRY(
                    zero_exchanges_add_lists(x, seats[r].group, &a->specs[k], &lists[k]));
    }
    return ZERO_OK;
}

zero_status zero_groups_add(zero_groups *g, const zero_actions *a, zero_exchanges *x)
{
    size_t n = (size_t)g->n_layouts * (size_t)a->n_specs;
    int *ranks = malloc((size_t)g->ranks * sizeof *ranks);
    g->lists = malloc((n + 1) * sizeof *g->lists);
    g->n_specs = a->n_specs;
    zero_status st = ZERO_OK;
    if (!ranks || !g->lists)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for %zu collectives", n);
    for (size_t k = 0; st == ZERO_OK && k < n; k++) g->lists[k] = -1;
    for (int k = 0; st == ZERO_OK && k < PARTS; k++)
        st = add_part(g, parts[k], a, ranks, x);
    free(ranks);
    return st;
}
