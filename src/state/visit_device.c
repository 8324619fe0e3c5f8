#include "state/visit_device.h"

#include "base/range.h"
#include "sharding/checks.h"
#include "sharding/offload.h"

enum { ARRAYS = 3 };

/* Blocks 0, 1, ... of a range; the i-th passes through chunk i modulo 2. */
struct visit {
    zero_runner *r;
    int buffers[ARRAYS]; /* masters, momentum, variance; any may be ZERO_NO_BUFFER */
    zero_range range;
    zero_visit_access access;
    zero_ticket fetched[2], stored[2]; /* the last copy of a chunk in each direction */
};

static zero_range range_of(const struct visit *v, int64_t i)
{
    int64_t begin = v->range.begin + i * ZERO_OFFLOAD_BLOCK;
    return (zero_range){begin, zero_min(begin + ZERO_OFFLOAD_BLOCK, v->range.end)};
}

/* An array of the i-th block in the host's memory. */
static float *host_at(const struct visit *v, int64_t i, int array)
{
    float *chunk = zero_runner_buffer(v->r, v->r->schedule->first_chunk + (int)(i % 2));
    return v->buffers[array] == ZERO_NO_BUFFER ? NULL : chunk + array * ZERO_OFFLOAD_BLOCK;
}

static void fetch(struct visit *v, int64_t i)
{
    zero_range range = range_of(v, i);
    if (zero_range_is_empty(range)) return;
    zero_link_wait(&v->r->link, v->stored[i % 2]);
    if (v->access == ZERO_VISIT_FILL) return;
    for (int a = 0; a < ARRAYS; a++)
        if (host_at(v, i, a))
            zero_link_fetch(&v->r->link, host_at(v, i, a),
                            zero_runner_element(v->r, v->buffers[a], range.begin),
                            (size_t)zero_range_len(range) * sizeof(float),
                            &v->fetched[i % 2]);
}

static void store(struct visit *v, int64_t i)
{
    zero_range range = range_of(v, i);
    for (int a = 0; a < ARRAYS; a++)
        if (host_at(v, i, a))
            zero_link_store(&v->r->link,
                            zero_runner_element(v->r, v->buffers[a], range.begin),
                            host_at(v, i, a), (size_t)zero_range_len(range) * sizeof(float),
                            &v->stored[i % 2]);
}

static zero_status visit_block(struct visit *v, int64_t i, zero_state_visitor *visit,
                               void *arg)
{
    zero_state_block block = {.range = range_of(v, i),
                              .master = host_at(v, i, 0),
                              .momentum = host_at(v, i, 1),
                              .variance = host_at(v, i, 2)};
    fetch(v, i + 1);
    zero_link_wait(&v->r->link, v->fetched[i % 2]);
    ZERO_TRY(zero_link_status(&v->r->link));
    ZERO_TRY(visit(arg, &block));
    if (v->access != ZERO_VISIT_READ) store(v, i);
    return ZERO_OK;
}

zero_status zero_states_visit_device(zero_runner *r, int group, zero_range range,
                                     zero_visit_access access, zero_state_visitor *visit,
                                     void *arg)
{
    const zero_group_state *g = &r->schedule->groups[group];
    struct visit v = {
        .r = r,
        .buffers = {zero_master_buffer(r->schedule, group), g->momentum, g->variance},
        .range = range,
        .access = access};
    zero_status st = ZERO_OK;
    fetch(&v, 0);
    for (int64_t i = 0; st == ZERO_OK && !zero_range_is_empty(range_of(&v, i)); i++)
        st = visit_block(&v, i, visit, arg);
    zero_failure kept = zero_failure_keep(st);
    for (int k = 0; k < 2; k++) { /* also after a failure: the chunks are free afterwards */
        zero_link_wait(&r->link, v.fetched[k]);
        zero_link_wait(&r->link, v.stored[k]);
    }
    return st == ZERO_OK ? zero_link_status(&r->link) : zero_failure_restore(&kept);
}
