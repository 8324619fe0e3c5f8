#include "sharding/work.h"

#include "sharding/offload.h"

double zero_plan_forward_flops(const zero_plan_input *in, int u)
{
    const zero_unit *unit = &in->model->units[u];
    double flops = unit->sizes(unit, in->micro_batch, in->seq).flops;
    double positions = (double)(in->micro_batch * in->seq);
    if (flops > 0.0) return flops;
    for (int k = 0; k < unit->n_groups; k++)
        flops += 2.0 * positions * (double)in->model->groups[unit->groups[k]].n_params;
    return flops;
}

/* A recomputation leaves the output out if the unit can. */
static double recompute_flops(const zero_plan_input *in, int u)
{
    const zero_unit *unit = &in->model->units[u];
    double flops = unit->sizes(unit, in->micro_batch, in->seq).recompute_flops;
    bool is_shorter = unit->recompute_without_out && flops > 0.0;
    return is_shorter ? flops : zero_plan_forward_flops(in, u);
}

static double flops_of_pass(const zero_schedule *s, const zero_instruction *i)
{
    switch (i->op) {
    case ZERO_OP_FORWARD: return zero_plan_forward_flops(&s->input, i->unit);
    case ZERO_OP_RECOMPUTE: return recompute_flops(&s->input, i->unit);
    case ZERO_OP_BACKWARD: return 2.0 * zero_plan_forward_flops(&s->input, i->unit);
    default: return 0.0;
    }
}

/* ---- parts ---- */

zero_unit_part zero_work_part(const zero_schedule *s, zero_program_kind program,
                              const zero_instruction *i, int64_t k)
{
    const zero_unit *unit = &s->model->units[i->unit];
    return unit->part(unit, zero_program_pass(program, i->op),
                      zero_program_samples(s, program), zero_program_positions(s, program),
                      k);
}

/* A pass ends by adding what its last join gave, but for a recomputation, which ends
 * without the last product. */
static bool only_takes(const zero_instruction *i, const zero_unit_part *part)
{
    return part->is_last && part->waits && i->op != ZERO_OP_RECOMPUTE;
}

double zero_work_flops(const zero_schedule *s, const zero_instruction *i, double *share)
{
    double flops = flops_of_pass(s, i);
    if (i->hashes != ZERO_NO_BUFFER) flops *= 1.0 + 1.0 / s->input.check_compute;
    if (i->part == ZERO_PART_ALL || flops == 0.0) return flops;
    if (i->part == 0) {
        zero_unit_part part = {0};
        int64_t n = 0;
        for (int64_t k = 0; !part.is_last; k++) {
            part = zero_work_part(s, ZERO_PROGRAM_STEP, i, k);
            n += !only_takes(i, &part);
        }
        *share = 1.0 / (double)n;
    }
    zero_unit_part part = zero_work_part(s, ZERO_PROGRAM_STEP, i, i->part);
    return only_takes(i, &part) ? 0.0 : *share * flops;
}

/* Owners ascend: the work of one rank is in a run. */
void zero_work_of_updates(const zero_schedule *s, double *most, double *all)
{
    double of_rank = 0.0;
    int rank = -1;
    *most = *all = 0.0;
    for (int i = 0; i < s->model->n_tensors; i++) {
        const zero_tensor *t = &s->model->tensors[i];
        const zero_group_state *g = &s->groups[t->group];
        if (!zero_rule_moves_whole(s->input.optimizer, t)) continue;
        const bool is_cut = g->optimizer_held == ZERO_HOLD_PIECE;
        const int owner = is_cut ? zero_partition_owner_of(&g->partition, t->offset) : 0;
        if (owner != rank) of_rank = 0.0;
        rank = owner;
        of_rank += zero_muon_flops(t);
        *all += zero_muon_flops(t);
        *most = fmax(*most, of_rank);
    }
}

/* ---- transfers ---- */

double zero_work_disk_seconds(const zero_schedule *s, const zero_instruction *i,
                              double read, double write)
{
    zero_file_traffic all = zero_offload_moved(s, i);
    if (read <= 0.0) return 0.0;
    return (double)all.bytes_read / read + (double)all.bytes_written / write;
}
