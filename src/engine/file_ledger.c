#include "engine/file_ledger.h"

#include <string.h>

/* States move only in walks with an update. */
static zero_offload_traffic plan_of(const zero_runner *r)
{
    zero_offload_traffic sum = {.states.reads = 0};
    for (int p = 0; p < ZERO_PROGRAMS; p++) {
        zero_offload_traffic one = zero_offload_count(r->schedule, (zero_program_kind)p);
        uint64_t walks = (uint64_t)r->walks[p], updates = (uint64_t)r->updates[p];
        zero_file_traffic_add(&sum.states, updates, &one.states);
        zero_file_traffic_add(&sum.parameters, walks, &one.parameters);
        zero_file_traffic_add(&sum.activations, walks, &one.activations);
    }
    return sum;
}

zero_file_ledger zero_runner_file_ledger(const zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    const zero_file_traffic *moved = r->tier.moved;
    zero_file_ledger l = {.planned = plan_of(r),
                          .measured = {.states = moved[ZERO_MOVED_STATES],
                                       .parameters = moved[ZERO_MOVED_PARAMETERS],
                                       .activations = moved[ZERO_MOVED_ACTIVATIONS]},
                          .visits = moved[ZERO_MOVED_FOR_VISITS]};
    for (int i = 0; i < s->n_buffers; i++) {
        const zero_buffer *b = &s->buffers[i];
        if (b->space != ZERO_SPACE_FILE) continue;
        l.planned_bytes[b->class] += b->bytes;
        if (zero_tier_is_written(&r->tier, i)) l.measured_bytes[b->class] += b->bytes;
    }
    return l;
}

bool zero_file_ledger_is_as_planned(const zero_file_ledger *l)
{
    return memcmp(&l->planned, &l->measured, sizeof l->planned) == 0;
}
_Static_assert(sizeof(zero_offload_traffic) == 12 * sizeof(uint64_t), "it has no holes");
