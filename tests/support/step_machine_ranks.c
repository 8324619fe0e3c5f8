#include "support/step_machine_self.h"

#include <stdarg.h>
#include <stdio.h>

#define GARBAGE  0x4d /* in buffers of ranks that have not begun */
#define SCRIBBLE 0x5c /* in buffers of ranks that have ended */
#define MARKER   1    /* `out` first holds the values of this many trials later */

/* ---- utilities ---- */

void *machine_take(size_t n, size_t bytes)
{
    void *p = calloc(n + 1, bytes);
    if (!p) abort();
    return p;
}

void machine_fail(machine *m, int rank, const char *format, ...)
{
    const zero_collective_spec *s = &m->c.spec;
    if (m->failed) return;
    m->failed = true;
    fprintf(stderr, "trial %" PRIu64 ", %s %s of %s (%s), %d ranks on %d nodes, ",
            m->c.trial, zero_algorithm_name(s->algorithm),
            zero_collective_kind_name(s->kind), zero_type_name(s->type),
            zero_type_name(s->result), m->size, m->c.layout->n_nodes);
    fprintf(stderr,
            "count %" PRId64 ", stride %" PRId64 ", max_chunk %" PRId64
            ", message %" PRId64,
            s->count, s->stride, s->max_chunk, s->message);
    fprintf(stderr,
            "%s%s%s%s%s, root %d, %d requests: rank %d: ", s->one_out ? ", one out" : "",
            s->on_device ? ", on a device" : "", s->direct ? ", direct" : "",
            m->c.in_place ? ", in place" : "", m->c.eager ? ", eager" : "", s->root,
            m->c.requests, rank);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
}

bool machine_share_node(const machine *m, int a, int b)
{
    return m->c.layout->node_of[a] == m->c.layout->node_of[b];
}

static size_t in_size(const machine *m)
{
    return zero_type_size(m->c.spec.type);
}

static size_t out_size(const machine *m)
{
    return zero_type_size(m->c.spec.result);
}

/* ---- memory ---- */

/* Sets the addresses of rank r's buffers; the caller has set the sizes. */
static void place_buffers(machine *m, int r)
{
    const zero_collective_spec *s = &m->c.spec;
    rank_state *rank = &m->ranks[r];
    int node = m->c.layout->node_of[r], local = m->c.layout->local_of[r];
    rank->in = m->node_in[node] + (size_t)local * s->in_apart;
    rank->out = m->node_out[node] + (size_t)local * (s->one_out ? 0 : s->out_apart);
    if (!m->c.in_place) return;
    int64_t own = r * s->stride;
    if (s->kind == ZERO_REDUCE_SCATTER) rank->out = rank->in + own * (int64_t)in_size(m);
    if (s->kind == ZERO_ALL_GATHER) rank->in = rank->out + own * (int64_t)out_size(m);
    if (s->kind == ZERO_REDUCE && r == s->root) rank->out = rank->in;
    if (s->kind == ZERO_ALL_REDUCE) rank->out = rank->in;
    if (s->kind == ZERO_BROADCAST) rank->in = rank->out;
}

/* In place, buffers of neighbours are one piece further apart than their arrays. */
static void measure(machine *m)
{
    zero_collective_spec *s = &m->c.spec;
    bool reduces = s->kind == ZERO_REDUCE_SCATTER, gathers = s->kind == ZERO_ALL_GATHER;
    bool both = s->kind == ZERO_ALL_REDUCE;
    m->in_len = reduces || both ? m->size * s->stride + s->tail : s->count;
    m->out_len = gathers || both ? m->size * s->stride + s->tail : s->count;
    s->in_apart = ((size_t)m->in_len + 3) * in_size(m);
    s->out_apart = ((size_t)m->out_len + 5) * out_size(m);
}

static void adjust_for_in_place(machine *m)
{
    zero_collective_spec *s = &m->c.spec;
    size_t piece = (size_t)s->stride * in_size(m);
    if (!m->c.in_place) return;
    if (s->kind == ZERO_REDUCE_SCATTER) s->out_apart = s->in_apart + piece;
    if (s->kind == ZERO_ALL_GATHER) s->in_apart = (s->one_out ? 0 : s->out_apart) + piece;
    if (s->kind == ZERO_BROADCAST) s->in_apart = s->one_out ? 0 : s->out_apart;
    if (s->kind == ZERO_ALL_REDUCE) s->out_apart = s->in_apart;
}

bool machine_is_gap(const machine *m, int64_t i)
{
    const zero_collective_spec *s = &m->c.spec;
    return s->kind == ZERO_ALL_REDUCE && i < m->size * s->stride &&
           i % s->stride >= s->count;
}

static float marker(const machine *m, int r, int64_t i)
{
    int64_t whose = m->c.spec.one_out ? 0 : r + 1;
    return oracle_leaf(m->c.spec.result, m->c.trial + MARKER, (int)whose, i);
}

static void mark_out(machine *m, int r)
{
    for (int64_t i = 0; i < m->out_len; i++)
        oracle_store(m->c.spec.result, m->ranks[r].out, i, marker(m, r, i));
}

/* Sets where the `in` and `out` of rank r's steps are. */
static void place_mirrors(machine *m, int r)
{
    rank_state *rank = &m->ranks[r];
    zero_mirrors at = zero_collective_mirrors(&m->c.spec, m->size, r);
    bool on_device = m->c.spec.on_device && !m->c.spec.direct;
    rank->mirror_in = on_device ? rank->memory + at.in : rank->in;
    rank->mirror_out = on_device ? rank->memory + at.out : rank->out;
    rank->staging = rank->memory + at.staged;
    rank->staging_bytes = rank->memory_bytes - at.staged;
}

void machine_allocate(machine *m)
{
    const zero_layout *layout = m->c.layout;
    measure(m);
    m->node_in = machine_take((size_t)layout->n_nodes, sizeof *m->node_in);
    m->node_out = machine_take((size_t)layout->n_nodes, sizeof *m->node_out);
    for (int node = 0; node < layout->n_nodes; node++) {
        size_t in = (size_t)m->size * m->c.spec.in_apart;
        size_t out = (size_t)m->size * m->c.spec.out_apart;
        m->node_in[node] = memset(machine_take(in, 1), GARBAGE, in);
        m->node_out[node] = memset(machine_take(out, 1), GARBAGE, out);
    }
    for (int r = 0; r < m->size; r++) place_buffers(m, r);
    adjust_for_in_place(m);
    m->copies = machine_take((size_t)m->size * MACHINE_COPIES, sizeof *m->copies);
    m->writes = machine_take((size_t)m->size, sizeof *m->writes);
    for (int r = 0; r < m->size; r++) {
        bool own = !m->c.spec.one_out || layout->local_of[r] == 0;
        if (own) m->writes[r] = machine_take((size_t)m->out_len, 1);
        if (own && m->c.spec.one_out) mark_out(m, r);
        if (!own) m->writes[r] = m->writes[r - layout->local_of[r]];
    }
}

bool machine_build_rank(machine *m, int r)
{
    rank_state *rank = &m->ranks[r];
    if (zero_steps_init(&rank->steps, &m->c.spec, m->c.layout, r) != ZERO_OK) return false;
    rank->memory_bytes = zero_collective_staging(&m->c.spec, m->c.layout);
    rank->memory =
        memset(machine_take(rank->memory_bytes, 1), MACHINE_POISON, rank->memory_bytes);
    place_mirrors(m, r);
    rank->sent_to = machine_take((size_t)m->size, sizeof *rank->sent_to);
    rank->received_from = machine_take((size_t)m->size, sizeof *rank->received_from);
    return true;
}

void machine_release(machine *m)
{
    for (int r = 0; r < m->size; r++) {
        rank_state *rank = &m->ranks[r];
        zero_steps_destroy(&rank->steps);
        free(rank->memory);
        free(rank->sent_to);
        free(rank->received_from);
        if (!m->c.spec.one_out || m->c.layout->local_of[r] == 0) free(m->writes[r]);
    }
    for (int node = 0; node < m->c.layout->n_nodes; node++) {
        free(m->node_in[node]);
        free(m->node_out[node]);
    }
    for (int i = 0; i < m->n_requests; i++) free(m->requests[i].payload);
    free(m->node_in);
    free(m->node_out);
    free(m->writes);
    free(m->copies);
    free(m->requests);
    free(m->ranks);
}

/* ---- begin and end of a rank ---- */

/* The element of `in` where the sum replaces this rank's data, or -1. */
static int64_t sum_in_place(const machine *m, int r)
{
    const zero_collective_spec *s = &m->c.spec;
    if (m->c.in_place && s->kind == ZERO_REDUCE_SCATTER) return r * s->stride;
    return m->c.in_place && s->kind == ZERO_REDUCE && r == s->root ? 0 : -1;
}

static int64_t first_input(const machine *m, int r)
{
    return m->c.spec.kind == ZERO_ALL_GATHER ? r * m->c.spec.stride : 0;
}

/* True if element i of the one `out` is also an element of some rank's `in`. */
static bool is_input_in_place(const machine *m, int64_t i)
{
    if (!m->c.in_place) return false;
    return m->c.spec.kind == ZERO_BROADCAST || i % m->c.spec.stride < m->c.spec.count;
}

void machine_begin_rank(machine *m, int r)
{
    rank_state *rank = &m->ranks[r];
    const zero_collective_spec *s = &m->c.spec;
    for (int64_t i = 0; s->one_out && i < m->out_len; i++)
        if (!is_input_in_place(m, i) &&
            !oracle_same(s->result, rank->out, i, marker(m, r, i)))
            machine_fail(m, r, "out[%" PRId64 "] changes before this rank has begun", i);
    if (!s->direct) machine_fill(m, r);
    rank->has_begun = true;
}

void machine_fill(machine *m, int r)
{
    const zero_collective_spec *s = &m->c.spec;
    rank_state *rank = &m->ranks[r];
    bool in_place = m->c.in_place && s->kind == ZERO_ALL_REDUCE;
    if (!s->one_out && sum_in_place(m, r) < 0 && !in_place) mark_out(m, r);
    if (zero_collective_stages_on_device(s))
        memset(rank->memory, MACHINE_POISON, rank->memory_bytes);
    for (int64_t i = 0; i < m->in_len; i++) {
        float x = oracle_leaf(s->type, m->c.trial, r, first_input(m, r) + i);
        if (s->kind != ZERO_BROADCAST || r == s->root)
            oracle_store(s->type, rank->in, i, x);
    }
}

float machine_expected(const machine *m, int r, int64_t i)
{
    const zero_collective_spec *s = &m->c.spec;
    switch (s->kind) {
    case ZERO_REDUCE_SCATTER:
        return oracle_sum(s->type, m->c.trial, 0, m->size, r * s->stride + i);
    case ZERO_ALL_GATHER:
        if (i % s->stride >= s->count) return marker(m, r, i);
        return oracle_leaf(s->type, m->c.trial, (int)(i / s->stride), i);
    case ZERO_ALL_REDUCE:
        if (machine_is_gap(m, i))
            return m->c.in_place ? oracle_leaf(s->type, m->c.trial, r, i) : marker(m, r, i);
        return oracle_sum(s->type, m->c.trial, 0, m->size, i);
    case ZERO_REDUCE:
        if (r != s->root) return marker(m, r, i);
        return oracle_sum(s->type, m->c.trial, 0, m->size, i);
    case ZERO_BROADCAST: break;
    }
    return oracle_leaf(s->type, m->c.trial, s->root, i);
}

static void check_inputs(machine *m, int r)
{
    const zero_collective_spec *s = &m->c.spec;
    int64_t sum = sum_in_place(m, r);
    for (int64_t i = 0; i < m->in_len; i++) {
        if (s->kind == ZERO_BROADCAST && r != s->root) continue;
        if (sum >= 0 && i >= sum && i < sum + s->count) continue;
        if (m->c.in_place && s->kind == ZERO_ALL_REDUCE && !machine_is_gap(m, i)) continue;
        float x = oracle_leaf(s->type, m->c.trial, r, first_input(m, r) + i);
        if (!oracle_same(s->type, m->ranks[r].in, i, x))
            machine_fail(m, r, "in[%" PRId64 "] has changed", i);
    }
}

void machine_end_rank(machine *m, int r)
{
    rank_state *rank = &m->ranks[r];
    for (int64_t i = 0; i < m->out_len; i++)
        if (!oracle_same(m->c.spec.result, rank->out, i, machine_expected(m, r, i))) {
            machine_fail(m, r, "out[%" PRId64 "] is %a, expected %a", i,
                         (double)oracle_load(m->c.spec.result, rank->out, i),
                         (double)machine_expected(m, r, i));
            break;
        }
    check_inputs(m, r);
    bool in_is_out = m->c.in_place && !zero_collective_sums(m->c.spec.kind);
    if (!in_is_out) memset(rank->in, SCRIBBLE, (size_t)m->in_len * in_size(m));
    if (!m->c.spec.one_out) memset(rank->out, SCRIBBLE, (size_t)m->out_len * out_size(m));
    if (m->c.spec.on_device) memset(rank->memory, SCRIBBLE, rank->memory_bytes);
    rank->has_ended = true;
}
