#include "state/records.h"

#include "base/hash.h"
#include "state/finding.h"
#include "state/visit.h"

#define AT_ONCE ((int64_t)64 * ZERO_RECORD_BLOCK) /* 1 MiB: one block of a visit */

enum { ARRAYS = ZERO_STATES };
_Static_assert(AT_ONCE <= ZERO_OFFLOAD_BLOCK, "such a range is visited in one block");

/* A walk through the records of a group: takes them, or stops where one differs. */
struct walk {
    zero_runner *r;
    uint64_t *next[ARRAYS]; /* the next record of each array */
    bool takes;
    zero_finding found;
};

/* Some elements of a tensor in one block, so that records are whole. */
struct block {
    struct walk *w;
    int tensor, n_arrays;
};

static zero_status walk_block(void *arg, const zero_state_block *view)
{
    const struct block *b = arg;
    for (int a = 0; a < b->n_arrays && b->w->found.tensor < 0; a++) {
        const zero_tensor *t = &b->w->r->schedule->model->tensors[b->tensor];
        if (!view->part[a]) continue; /* a state that this tensor does without */
        for (int64_t at = view->range.begin; at < view->range.end;
             at += ZERO_RECORD_BLOCK) {
            int64_t end = zero_min(at + ZERO_RECORD_BLOCK, view->range.end);
            uint64_t hash = XXH3_64bits(view->part[a] + (at - view->range.begin),
                                        (size_t)(end - at) * sizeof *view->part[a]);
            uint64_t *record = b->w->next[a]++;
            if (b->w->takes) *record = hash;
            if (*record == hash) continue;
            b->w->found.tensor = b->tensor;
            /* In fp32 the parameters may be the masters. */
            const zero_schedule *s = b->w->r->schedule;
            int group = s->model->tensors[b->tensor].group;
            bool is_param = zero_master_buffer(s, group) == s->groups[group].param;
            b->w->found.array = a == 0 && is_param ? ZERO_ARRAY_PARAMETERS
                                                   : (zero_array)(ZERO_ARRAY_MASTERS + a);
            b->w->found.range = (zero_range){at - t->offset, end - t->offset};
            break;
        }
    }
    return ZERO_OK;
}

static zero_status walk_tensor(struct walk *w, int tensor, zero_range part)
{
    int group = w->r->schedule->model->tensors[tensor].group;
    struct block b = {w, tensor, zero_recorded_arrays(w->r->schedule, group)};
    for (int64_t at = part.begin; at < part.end; at += AT_ONCE) {
        zero_range range = {at, zero_min(at + AT_ONCE, part.end)};
        /* With offload the recorded arrays are masters of fp32 alone, which lie in
         * memory. */
        zero_runner *r = b.w->r;
        zero_state_block masters = {.range = range};
        if (!zero_plan_uses_file(&r->schedule->input)) {
            ZERO_TRY(zero_states_visit(r, group, range, ZERO_VISIT_READ, walk_block, &b));
        } else {
            masters.master =
                zero_runner_element(r, zero_master_buffer(r->schedule, group), range.begin);
            ZERO_TRY(walk_block(&b, &masters));
        }
        if (w->found.tensor >= 0) return ZERO_OK;
        zero_math_poll(&w->r->math);
    }
    return ZERO_OK;
}

/* The records of an array follow those of the one before it. */
static zero_status walk_group(struct walk *w, int g)
{
    const zero_schedule *s = w->r->schedule;
    zero_range part;
    uint64_t *records = zero_runner_buffer(w->r, s->groups[g].records);
    if (!records) return ZERO_OK;
    for (int a = 0; a < zero_recorded_arrays(s, g); a++)
        w->next[a] = records + a * zero_records_of(s, g);
    for (int i = -1; zero_next_part(s->model, g, zero_states_held(s, g), &i, &part);) {
        ZERO_TRY(walk_tensor(w, i, part));
        if (w->found.tensor >= 0) return ZERO_OK;
    }
    return ZERO_OK;
}

zero_status zero_records_take(zero_runner *r, int g)
{
    struct walk w = {.r = r, .takes = true, .found.tensor = -1};
    return walk_group(&w, g);
}

zero_status zero_records_verify(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    struct walk w = {.r = r, .found.tensor = -1};
    zero_status st = ZERO_OK;
    if (!s->input.check_memory || s->input.forward_only) return ZERO_OK;
    for (int g = 0; st == ZERO_OK && g < s->model->n_groups; g++) {
        if (w.found.tensor >= 0) break;
        st = walk_group(&w, g);
    }
    return zero_finding_agree(r, &w.found, st,
                              "sees bits changed since the last update in");
}
