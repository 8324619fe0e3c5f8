#include "engine/records.h"

#include <xxhash.h>

#include "base/fail.h"
#include "engine/finding.h"
#include "engine/states.h"

#define POLL_EVERY 64 /* blocks: 1 MiB */

/* A walk through the records of a group: takes them, or stops where one differs. */
struct walk {
    zero_runner *r;
    uint64_t *record; /* the next one */
    bool takes;
    zero_finding found;
};

static bool visit_tensor(struct walk *w, int tensor, zero_array array, zero_range part,
                         const float *x)
{
    const zero_tensor *t = &w->r->schedule->input.model->tensors[tensor];
    for (int64_t at = part.begin; at < part.end; at += ZERO_RECORD_BLOCK) {
        int64_t end = zero_min(at + ZERO_RECORD_BLOCK, part.end);
        uint64_t hash = XXH3_64bits(x + (at - part.begin), (size_t)(end - at) * sizeof *x);
        uint64_t *record = w->record++;
        if (at / ZERO_RECORD_BLOCK % POLL_EVERY == 0) zero_math_poll(&w->r->math);
        if (w->takes) *record = hash;
        if (*record == hash) continue;
        w->found = (zero_finding){tensor, array, {at - t->offset, end - t->offset}};
        return false;
    }
    return true;
}

static bool visit_group(struct walk *w, int g)
{
    const zero_schedule *s = w->r->schedule;
    const zero_group *group = &s->input.model->groups[g];
    zero_engine_state own = zero_states_of(w->r, g);
    const float *arrays[] = {own.master, own.momentum, own.variance};
    bool is_exact = s->groups[g].master == ZERO_NO_BUFFER;
    w->record = zero_runner_buffer(w->r, s->groups[g].records);
    for (int a = 0; a < 3; a++) {
        zero_array array = (zero_array)(ZERO_ARRAY_MASTERS + a);
        if (a == 0 && is_exact) array = ZERO_ARRAY_PARAMETERS;
        for (int i = group->first_tensor; i < group->first_tensor + group->n_tensors; i++) {
            zero_range part = zero_range_overlap(
                zero_range_of_tensor(&s->input.model->tensors[i]), own.range);
            if (zero_range_is_empty(part)) continue;
            if (!visit_tensor(w, i, array, part,
                              arrays[a] + (part.begin - own.range.begin)))
                return false;
        }
    }
    return true;
}

void zero_records_take(zero_runner *r, int g)
{
    struct walk w = {.r = r, .takes = true};
    if (r->schedule->groups[g].records != ZERO_NO_BUFFER) (void)visit_group(&w, g);
}

zero_status zero_records_verify(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    struct walk w = {.r = r, .found.tensor = -1};
    if (!s->input.check_memory || s->input.forward_only) return ZERO_OK;
    ZERO_TRY(r->backend->sync(&r->math)); /* the host reads what the backend wrote */
    for (int g = 0; g < s->input.model->n_groups; g++)
        if (!visit_group(&w, g)) break;
    return zero_finding_agree(r, &w.found, "sees bits changed since the last update in");
}
