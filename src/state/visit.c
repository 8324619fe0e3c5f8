#include "state/visit.h"

#include "state/host_copies.h"

static int buffer_of(const zero_schedule *s, int group, int part)
{
    return part == ZERO_STATE_MASTER ? zero_master_buffer(s, group)
                                     : s->groups[group].buffers[ZERO_ARRAY_MASTERS + part];
}

struct visit {
    zero_runner *r;
    int group;
    zero_range range;
    zero_visit_access access;
    zero_state_visitor *visit;
    void *arg;
    /* On a device: the last copy of each chunk in each direction. */
    zero_ticket fetched[2], stored[2];
    /* In a file: blocks first, first + 1, ... of the group. */
    int first, n;
    int n_fetched; /* blocks whose transfer to memory has begun */
};

/* ---- on a device ---- */

/* Block i in the host's memory: it passes through chunk i modulo 2. */
static zero_state_block in_chunk(const struct visit *v, int64_t i)
{
    const zero_schedule *s = v->r->schedule;
    int64_t begin = v->range.begin + i * ZERO_OFFLOAD_BLOCK;
    float *chunk = zero_runner_buffer(v->r, s->first_chunk + (int)(i % 2));
    zero_state_block block = {
        .range = {begin, zero_min(begin + ZERO_OFFLOAD_BLOCK, v->range.end)}};
    for (int p = 0; p < ZERO_STATES; p++)
        if (buffer_of(s, v->group, p) != ZERO_NO_BUFFER)
            block.part[p] = chunk + p * ZERO_OFFLOAD_BLOCK;
    return block;
}

static void *on_device(const struct visit *v, const zero_state_block *block, int part)
{
    return zero_runner_element(v->r, buffer_of(v->r->schedule, v->group, part),
                               block->range.begin);
}

static void fetch(struct visit *v, int64_t i)
{
    zero_state_block block = in_chunk(v, i);
    if (zero_range_is_empty(block.range)) return;
    zero_link_wait(&v->r->link, v->stored[i % 2]);
    for (int p = 0; p < ZERO_STATES && v->access != ZERO_VISIT_FILL; p++)
        if (block.part[p])
            zero_link_fetch(&v->r->link, block.part[p], on_device(v, &block, p),
                            zero_range_bytes(block.range, ZERO_FP32), &v->fetched[i % 2]);
}

static zero_status visit_chunk(struct visit *v, int64_t i)
{
    zero_state_block block = in_chunk(v, i);
    fetch(v, i + 1);
    zero_link_wait(&v->r->link, v->fetched[i % 2]);
    ZERO_TRY(zero_link_status(&v->r->link));
    ZERO_TRY(v->visit(v->arg, &block));
    for (int p = 0; p < ZERO_STATES && v->access != ZERO_VISIT_READ; p++)
        if (block.part[p])
            zero_link_store(&v->r->link, on_device(v, &block, p), block.part[p],
                            zero_range_bytes(block.range, ZERO_FP32), &v->stored[i % 2]);
    return ZERO_OK;
}

/* ---- in a file ---- */

/* A block of the file and its slot in memory: states, and parameters if they are there,
 * too. */
struct slot {
    struct {
        int file; /* the buffer */
        void *memory;
    } parts[2];
    int n_parts;
    zero_range range;
    zero_slot_view view;
};

/* The i-th block is in slot i modulo the number of slots. */
static struct slot slot_of(const struct visit *v, int i)
{
    const zero_schedule *s = v->r->schedule;
    const zero_group_state *g = &s->groups[v->group];
    int k = v->first + i;
    void *memory = zero_runner_buffer(v->r, s->first_slot + i % s->n_slots);
    return (struct slot){
        .parts = {{g->first_block + k, memory},
                  {g->first_param_block + k,
                   zero_offload_params_in(s, v->group, k, memory)}},
        .n_parts = zero_offload_has_parameters(s, v->group) ? 2 : 1,
        .range = zero_offload_range(s, v->group, k),
        .view = zero_offload_view(s, v->group, k, memory),
    };
}

static void end_transfers(const struct visit *v, int i)
{
    struct slot slot = slot_of(v, i);
    for (int p = 0; p < slot.n_parts; p++) zero_tier_end(&v->r->tier, slot.parts[p].file);
}

static void store_slot(const struct visit *v, const struct slot *slot)
{
    for (int p = 0; p < slot->n_parts; p++)
        zero_tier_begin(&v->r->tier, ZERO_MOVES_FOR_VISITS, slot->parts[p].file, true,
                        slot->parts[p].memory);
}

/* A slot holds a block of the file; these are its elements that are visited. */
static zero_state_block in_slot(const struct visit *v, zero_range all, zero_slot_view view)
{
    zero_state_block block = {.range = zero_range_overlap(all, v->range)};
    int64_t skip = block.range.begin - all.begin;
    block.master =
        view.master
            ? view.master + skip
            : zero_runner_element(v->r, zero_master_buffer(v->r->schedule, v->group),
                                  block.range.begin);
    for (int k = 0; k < ZERO_MOST_STATES; k++)
        block.part[1 + k] = view.state[k] ? view.state[k] + skip : NULL;
    return block;
}

static zero_status visit_slot(struct visit *v, int i)
{
    zero_runner *r = v->r;
    const zero_schedule *s = r->schedule;
    struct slot slot = slot_of(v, i);
    const zero_slot_view *view = &slot.view;
    zero_state_block block = in_slot(v, slot.range, *view);
    /* Blocks that were never written are zeros. */
    for (; v->n_fetched < i + s->n_slots / 2 + 1 && v->n_fetched < v->n; v->n_fetched++) {
        struct slot ahead = slot_of(v, v->n_fetched);
        if (v->n_fetched >= s->n_slots) end_transfers(v, v->n_fetched - s->n_slots);
        for (int p = 0; p < ahead.n_parts; p++) {
            int file = ahead.parts[p].file;
            if (zero_tier_is_written(&v->r->tier, file))
                zero_tier_begin(&v->r->tier, ZERO_MOVES_FOR_VISITS, file, false,
                                ahead.parts[p].memory);
            else
                memset(ahead.parts[p].memory, 0, s->buffers[file].bytes);
        }
    }
    end_transfers(v, i);
    ZERO_TRY(zero_tier_status(&r->tier));
    ZERO_TRY(v->visit(v->arg, &block));
    zero_math_poll(&r->math);
    if (v->access == ZERO_VISIT_READ) return ZERO_OK;
    if (view->param) { /* 16-bit parameters in the file are their masters, rounded */
        r->backend->round(&r->math, s->input.type, zero_range_len(slot.range), view->master,
                          view->param);
        ZERO_TRY(r->backend->sync(&r->math));
    }
    store_slot(v, &slot);
    return zero_tier_status(&r->tier);
}

zero_status zero_states_write_padding(zero_runner *r)
{
    const zero_schedule *s = r->schedule;
    for (int g = 0; g < s->model->n_groups; g++) {
        struct visit v = {.r = r, .group = g};
        for (; v.first < s->groups[g].n_blocks; v.first++) {
            struct slot slot = slot_of(&v, 0);
            if (zero_tier_is_written(&r->tier, slot.parts[0].file)) continue;
            memset(slot.parts[0].memory, 0, s->buffers[s->first_slot].bytes);
            store_slot(&v, &slot);
            end_transfers(&v, 0);
        }
    }
    return zero_tier_status(&r->tier);
}

/* ---- wherever they are ---- */

static bool is_in_file(const zero_runner *r, int group)
{
    return r->schedule->groups[group].n_blocks > 0;
}

/* With offload states lie beside the device. */
bool zero_states_are_in_reach(const zero_runner *r)
{
    return !r->link.memory || zero_plan_updates_beside(&r->schedule->input);
}

static inline bool is_held(const zero_runner *r, int group, zero_range range)
{
    zero_range held = zero_states_held(r->schedule, group);
    return zero_range_len(zero_range_overlap(range, held)) == zero_range_len(range);
}

/* Lets the host use states in its memory: what has been queued there has ended. Reading
 * needs no wait for copies to the device. */
static zero_status wait_for_host(zero_runner *r, int group, zero_visit_access access)
{
    if (!zero_plan_updates_beside(&r->schedule->input)) return r->backend->sync(&r->math);
    if (access != ZERO_VISIT_READ) zero_host_await(r, group);
    return ZERO_OK;
}

/* Where some tensors keep fewer states, the range is of one. */
static zero_state_block resident(const zero_runner *r, int group, zero_range range)
{
    const zero_schedule *s = r->schedule;
    const int least = zero_rule_least_states(s->input.optimizer);
    zero_state_block block = {.range = range};
    for (int p = 0; p <= least; p++)
        block.part[p] = zero_runner_element(r, buffer_of(s, group, p), range.begin);
    zero_range part = {0, 0};
    int t = -1;
    if (!zero_next_part(s->model, group, range, &t, &part)) return block;
    for (int k = least; k < zero_rule_states(s->input.optimizer, &s->model->tensors[t]);
         k++) {
        float *all = zero_runner_buffer(r, buffer_of(s, group, 1 + k));
        if (all) block.part[1 + k] = all + zero_state_index(s, group, k, range.begin);
    }
    return block;
}

zero_status zero_states_visit(zero_runner *r, int group, zero_range range,
                              zero_visit_access access, zero_state_visitor *visit,
                              void *arg)
{
    struct visit v = {r, group, range, access, visit, arg, .n_fetched = 0};
    if (zero_range_is_empty(range)) return ZERO_OK;
    assert(is_held(r, group, range));
    if (!zero_states_are_in_reach(r)) {
        zero_status st = ZERO_OK;
        fetch(&v, 0);
        for (int64_t i = 0; st == ZERO_OK && !zero_range_is_empty(in_chunk(&v, i).range);
             i++)
            st = visit_chunk(&v, i);
        zero_failure kept = zero_failure_keep(st);
        for (int k = 0; k < 2;
             k++) { /* also after a failure: the chunks are free afterwards */
            zero_link_wait(&v.r->link, v.fetched[k]);
            zero_link_wait(&v.r->link, v.stored[k]);
        }
        return st == ZERO_OK ? zero_link_status(&v.r->link) : zero_failure_restore(&kept);
    }
    ZERO_TRY(wait_for_host(r, group, access));
    if (is_in_file(r, group)) {
        int64_t begin = zero_offload_range(v.r->schedule, v.group, 0).begin;
        v.first = (int)((v.range.begin - begin) / ZERO_OFFLOAD_BLOCK);
        v.n = (int)zero_divide_up(v.range.end - begin, ZERO_OFFLOAD_BLOCK) - v.first;
        zero_status st = zero_tier_status(&v.r->tier);
        for (int i = 0; st == ZERO_OK && i < v.n; i++) st = visit_slot(&v, i);
        zero_failure kept = zero_failure_keep(st);
        for (int i = 0; i < v.n_fetched; i++)
            end_transfers(&v, i); /* also after a failure */
        return st == ZERO_OK ? zero_tier_status(&v.r->tier) : zero_failure_restore(&kept);
    }
    const int optimizer = r->schedule->input.optimizer;
    const bool is_even =
        zero_rule_least_states(optimizer) == zero_rule_most_states(optimizer);
    zero_range part = range;
    for (int t = -1;
         is_even ? t < 0 : zero_next_part(r->schedule->model, group, range, &t, &part);
         t += is_even) {
        zero_state_block block = resident(r, group, part);
        ZERO_TRY(visit(arg, &block));
    }
    return ZERO_OK;
}

static zero_status copy_block(void *arg, const zero_state_block *block)
{
    const zero_state_block *to = arg;
    for (int p = 0; p < ZERO_STATES; p++)
        if (block->part[p])
            memcpy(to->part[p] + (block->range.begin - to->range.begin), block->part[p],
                   zero_range_bytes(block->range, ZERO_FP32));
    return ZERO_OK;
}

static zero_state_block in_room(const zero_runner *r, zero_range range, float *room)
{
    const int n = 1 + zero_rule_most_states(r->schedule->input.optimizer);
    zero_state_block block = {.range = range};
    for (int p = 0; p < n; p++) block.part[p] = room + p * zero_range_len(range);
    return block;
}

zero_status zero_states_view(zero_runner *r, int group, zero_range range, float *room,
                             zero_state_block *view)
{
    assert(zero_range_len(range) <= ZERO_STATES_VIEW && is_held(r, group, range));
    if (is_in_file(r, group) || !zero_states_are_in_reach(r)) {
        zero_state_block copy = in_room(r, range, room);
        ZERO_TRY(zero_states_visit(r, group, range, ZERO_VISIT_READ, copy_block, &copy));
        *view = copy;
        return ZERO_OK;
    }
    ZERO_TRY(wait_for_host(r, group, ZERO_VISIT_READ));
    *view = resident(r, group, range);
    return ZERO_OK;
}

zero_status zero_states_view_beside(zero_runner *r, int group, zero_range range,
                                    float *room, zero_state_block *view)
{
    const zero_schedule *s = r->schedule;
    const int64_t begin = zero_offload_range(s, group, 0).begin;
    void *slot = room + ZERO_STATES * ZERO_STATES_VIEW;
    assert(zero_range_len(range) <= ZERO_STATES_VIEW && is_held(r, group, range));
    *view = is_in_file(r, group) ? in_room(r, range, room) : resident(r, group, range);
    for (int64_t at = range.begin; is_in_file(r, group) && at < range.end;) {
        int k = (int)((at - begin) / ZERO_OFFLOAD_BLOCK);
        int file = s->groups[group].first_block + k;
        struct visit v = {.r = r, .group = group, .range = range, .first = k};
        ZERO_TRY(zero_tier_peek(&r->tier, file, slot, s->buffers[file].bytes));
        zero_state_block block = in_slot(&v, zero_offload_range(s, group, k),
                                         zero_offload_view(s, group, k, slot));
        ZERO_TRY(copy_block(view, &block));
        at = block.range.end;
    }
    return ZERO_OK;
}
