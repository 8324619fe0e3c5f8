#include "simulation/walker_stream.h"

void zero_walker_begin_transfer(zero_walkers *w, int rank, const zero_action *a)
{
    if (a->seconds > 0.0) zero_disk_begin(w->disks, rank, a->file, a->seconds);
}

bool zero_walker_transfer_is_over(const zero_walkers *w, int rank, const zero_action *a)
{
    return !w->disks || zero_disk_is_over(w->disks, rank, a->file);
}

void zero_walker_run_ahead(zero_walkers *w, int rank)
{
    zero_walker *k = &w->list[rank];
    const zero_actions *all = zero_walker_actions(w, rank);
    /* The walk itself is at one of them. */
    if (!w->disks || zero_walker_present(w, rank)->is_of_stream) return;
    for (; k->ahead < all->n; k->ahead++) {
        const zero_action *a = &all->list[k->ahead];
        if (!a->is_of_stream) continue;
        if (a->after >= k->at) return;
        if (a->kind == ZERO_WORK_TRANSFER_WAIT && !zero_walker_transfer_is_over(w, rank, a))
            return;
        if (a->kind == ZERO_WORK_TRANSFER) zero_walker_begin_transfer(w, rank, a);
        zero_walker_emit(w, rank, a, zero_walker_now(w), 0.0);
    }
}
