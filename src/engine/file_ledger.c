#include "engine/file_ledger.h"

zero_file_ledger zero_runner_file_ledger(const zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    zero_file_ledger l = {.measured = r->tier.moved, .visits = r->tier.moved.visits};
    l.measured.visits = (zero_file_traffic){0};
    zero_file_traffic_add(&l.visits, 1, &r->tier.peeked);
    for (zero_program_kind p = 0; p < ZERO_PROGRAMS; p++) {
        zero_offload_traffic one = zero_offload_count(s, p);
        for (int k = 0; k < ZERO_MOVES_KINDS; k++) {
            /* States move only in walks with an update. */
            int64_t times = k == ZERO_MOVES_STATES ? r->updates[p] : r->walks[p];
            zero_file_traffic_add(&l.planned.of[k], (uint64_t)times, &one.of[k]);
        }
    }
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
_Static_assert(sizeof(zero_offload_traffic) == 20 * sizeof(uint64_t), "it has no holes");
