#include "train/tensor_parallel.h"

#include "lists/member.h"
#include "nn/shape.h"

/* Slices of a reproducible run, so that --tp 1, 2 and 4 give the same bits. */
#define REPRODUCIBLE_SLICES 4

/* ---- the options ---- */

void zero_tp_take_defaults(zero_tp *tp, bool reproducible, int64_t heads)
{
    int64_t most = zero_max(REPRODUCIBLE_SLICES, tp->ranks);
    if (tp->ranks == 0) tp->ranks = 1;
    if (tp->slices > 0) return;
    bool is_fixed = reproducible && tp->ranks > 1 && most % tp->ranks == 0 &&
                    zero_is_power_of_two(most / tp->ranks) && heads % most == 0;
    tp->slices = is_fixed ? most : tp->ranks;
}

zero_status zero_tp_check(const zero_tp *tp, const zero_shape *shape)
{
    if (tp->ranks == 1 && tp->slices == 1) return ZERO_OK;
    return zero_shape_check_share(shape, (int)tp->ranks, (int)tp->slices);
}

/* ---- ranks and nodes ---- */

zero_status zero_tp_check_ranks(const zero_tp *tp, int n_ranks)
{
    int T = zero_tp_ranks(tp), below = n_ranks / T * T;
    char lower[32] = "";
    if (n_ranks % T == 0) return ZERO_OK;
    if (below > 0) zero_print(lower, "%d or ", below);
    return zero_fail(ZERO_ERR_INVALID,
                     "--tp %d does not divide %d rank%s (%d x %d + %d): start %s%d ranks, "
                     "or give a number that divides %d",
                     T, n_ranks, n_ranks == 1 ? "" : "s", T, n_ranks / T, n_ranks % T,
                     lower, below + T, n_ranks);
}

zero_status zero_tp_check_nodes(const zero_tp *tp, const zero_layout *world)
{
    int T = zero_tp_ranks(tp);
    if (tp->across_nodes) return ZERO_OK;
    for (int r = 0; r < world->size; r++) {
        int first = r / T * T;
        if (world->node_of[r] == world->node_of[first]) continue;
        return zero_fail(
            ZERO_ERR_INVALID,
            "--tp %d: ranks %d to %d share each product, and rank %d is on node %d, rank "
            "%d on node %d; every product would wait for the network between them: give a "
            "--tp that divides the ranks of each node, or --tp-across-nodes",
            T, first, first + T - 1, first, world->node_of[first], r, world->node_of[r]);
    }
    return ZERO_OK;
}

zero_status zero_tp_find_place(const zero_tp *tp, int pp, const zero_layout *world,
                               int rank, zero_tp_place *place)
{
    zero_division divided = {.size = world->size, .tp = zero_tp_ranks(tp), .pp = pp};
    const int N = divided.shard = zero_division_data(&divided);
    const int group = rank / divided.tp;
    const zero_member data = zero_member_of(ZERO_DATA_GROUP, &divided, rank),
                      tps = zero_member_of(ZERO_TP_GROUP, &divided, rank),
                      stages = zero_member_of(ZERO_PIPE_GROUP, &divided, rank);
    ZERO_AT_END(zero_tp_place_destroy)
    zero_tp_place found = {.n_ranks = N, .rank = group % N, .stage = group / N};
    ZERO_TRY(zero_member_layout(&data, world, &found.data));
    ZERO_TRY(zero_member_layout(&tps, world, &found.group));
    ZERO_TRY(zero_member_layout(&stages, world, &found.stages));
    ZERO_GIVE(place, found);
    return ZERO_OK;
}

void zero_tp_place_destroy(zero_tp_place *place)
{
    zero_layout_destroy(&place->data);
    zero_layout_destroy(&place->group);
    zero_layout_destroy(&place->stages);
    *place = (zero_tp_place){0};
}

/* ---- the model ---- */

zero_status zero_tp_cut(const zero_tp *tp, const zero_model *whole, int rank,
                        zero_model *made, const zero_model **part)
{
    int T = zero_tp_ranks(tp);
    zero_share share = {.ranks = T, .rank = rank % T, .slices = (int)tp->slices};
    *made = (zero_model){0};
    *part = whole;
    if (tp->slices <= 1) return ZERO_OK;
    ZERO_TRY(zero_model_share(whole, share, made));
    *part = made;
    return ZERO_OK;
}
