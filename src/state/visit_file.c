#include "state/visit_file.h"

#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "sharding/checks.h"

/* Blocks first, first + 1, ... of a group; the i-th is in slot i modulo the number of slots. */
struct visit {
    zero_runner *r;
    int group, first, n;
    zero_range range;
    zero_visit_access access;
    int fetched; /* blocks whose transfer to memory has begun */
};

static const zero_schedule *schedule_of(const struct visit *v)
{
    return v->r->schedule;
}

static void *slot_of(const struct visit *v, int i)
{
    const zero_schedule *s = schedule_of(v);
    return zero_runner_buffer(v->r, s->first_slot + i % s->n_slots);
}

static int states_of(const struct visit *v, int i)
{
    return schedule_of(v)->groups[v->group].first_block + v->first + i;
}

/* The parameters of the i-th block in the file, or ZERO_NO_BUFFER. */
static int params_of(const struct visit *v, int i)
{
    const zero_schedule *s = schedule_of(v);
    if (!zero_offload_has_parameters(s, v->group)) return ZERO_NO_BUFFER;
    return s->groups[v->group].first_param_block + v->first + i;
}

static void *params_in(const struct visit *v, int i)
{
    return zero_offload_params_in(schedule_of(v), v->group, v->first + i, slot_of(v, i));
}

/* ---- transfers ---- */

static void begin_read(const struct visit *v, int file, void *memory)
{
    if (zero_tier_is_written(&v->r->tier, file))
        zero_tier_begin_read(&v->r->tier, ZERO_MOVED_FOR_VISITS, file, memory);
    else
        memset(memory, 0, schedule_of(v)->buffers[file].bytes);
}

static void end_transfers(const struct visit *v, int i)
{
    int params = params_of(v, i);
    zero_tier_end(&v->r->tier, states_of(v, i));
    if (params != ZERO_NO_BUFFER) zero_tier_end(&v->r->tier, params);
}

static void fetch_until(struct visit *v, int end)
{
    for (; v->fetched < end && v->fetched < v->n; v->fetched++) {
        int i = v->fetched, params = params_of(v, i);
        if (i >= schedule_of(v)->n_slots) end_transfers(v, i - schedule_of(v)->n_slots);
        begin_read(v, states_of(v, i), slot_of(v, i));
        if (params != ZERO_NO_BUFFER) begin_read(v, params, params_in(v, i));
    }
}

static void store(const struct visit *v, int i)
{
    int params = params_of(v, i);
    zero_tier_begin_write(&v->r->tier, ZERO_MOVED_FOR_VISITS, states_of(v, i),
                          slot_of(v, i));
    if (params != ZERO_NO_BUFFER)
        zero_tier_begin_write(&v->r->tier, ZERO_MOVED_FOR_VISITS, params, params_in(v, i));
}

/* ---- blocks ---- */

/* The visited elements of the i-th block. */
static zero_state_block block_at(const struct visit *v, int i)
{
    const zero_schedule *s = schedule_of(v);
    int k = v->first + i;
    zero_range all = zero_offload_range(s, v->group, k);
    zero_range range = zero_range_overlap(all, v->range);
    int64_t skip = range.begin - all.begin;
    zero_slot_view view = zero_offload_view(s, v->group, k, slot_of(v, i));
    float *master = view.master ? view.master + skip
                                : zero_runner_element(v->r, zero_master_buffer(s, v->group),
                                                      range.begin);
    return (zero_state_block){.range = range,
                              .master = master,
                              .momentum = view.momentum + skip,
                              .variance = view.variance + skip};
}

/* 16-bit parameters in the file are their masters, rounded. */
static zero_status round_params(const struct visit *v, int i)
{
    const zero_schedule *s = schedule_of(v);
    int k = v->first + i;
    zero_slot_view view = zero_offload_view(s, v->group, k, slot_of(v, i));
    if (!view.param) return ZERO_OK;
    v->r->backend->round(&v->r->math, s->input.type,
                         zero_range_len(zero_offload_range(s, v->group, k)), view.master,
                         view.param);
    return v->r->backend->sync(&v->r->math);
}

static zero_status visit_block(struct visit *v, int i, zero_state_visitor *visit, void *arg)
{
    fetch_until(v, i + schedule_of(v)->n_slots / 2 + 1);
    end_transfers(v, i);
    ZERO_TRY(zero_tier_status(&v->r->tier));
    zero_state_block block = block_at(v, i);
    ZERO_TRY(visit(arg, &block));
    zero_math_poll(&v->r->math);
    if (v->access == ZERO_VISIT_READ) return ZERO_OK;
    ZERO_TRY(round_params(v, i));
    store(v, i);
    return zero_tier_status(&v->r->tier);
}

zero_status zero_states_visit_file(zero_runner *r, int group, zero_range range,
                                   zero_visit_access access, zero_state_visitor *visit,
                                   void *arg)
{
    int64_t begin = zero_offload_range(r->schedule, group, 0).begin;
    int first = (int)((range.begin - begin) / ZERO_OFFLOAD_BLOCK);
    int end = (int)((range.end - begin + ZERO_OFFLOAD_BLOCK - 1) / ZERO_OFFLOAD_BLOCK);
    struct visit v = {.r = r,
                      .group = group,
                      .first = first,
                      .n = end - first,
                      .range = range,
                      .access = access};
    zero_status st = zero_tier_status(&r->tier);
    for (int i = 0; st == ZERO_OK && i < v.n; i++) st = visit_block(&v, i, visit, arg);
    zero_failure kept = zero_failure_keep(st);
    for (int i = 0; i < v.fetched; i++) end_transfers(&v, i); /* also after a failure */
    return st == ZERO_OK ? zero_tier_status(&r->tier) : zero_failure_restore(&kept);
}

zero_status zero_states_write_padding(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        struct visit v = {.r = r, .group = g};
        for (; v.first < s->groups[g].n_blocks; v.first++) {
            if (zero_tier_is_written(&r->tier, states_of(&v, 0))) continue;
            memset(slot_of(&v, 0), 0, s->buffers[s->first_slot].bytes);
            store(&v, 0);
            end_transfers(&v, 0);
        }
    }
    return zero_tier_status(&r->tier);
}
