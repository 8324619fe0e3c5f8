#include "support/step_machine_self.h"

static uint64_t draw(machine *m)
{
    m->random = oracle_mix(m->random);
    return m->random;
}

/* ---- steps ---- */

static void add(machine *m, int r, const zero_collective_step *step)
{
    const zero_sum *sum = &m->ranks[r].steps.sums[step->sum];
    zero_tree_term *terms = machine_take((size_t)sum->n, sizeof *terms);
    size_t bytes = (size_t)step->len * zero_type_size(step->type);
    char *to = machine_locate(m, r, step->to, step->len, step->type);
    for (int64_t t = 0; t < sum->n; t++) {
        const zero_term *term = &sum->terms[t];
        zero_spot spot = machine_term_spot(r, step, term);
        char *from = machine_locate(m, r, spot, step->len, term->type);
        machine_touch(m, r, from, (size_t)step->len * zero_type_size(term->type), false);
        machine_note_read(m, r, spot, step->len, term->type);
        terms[t] = (zero_tree_term){
            .data = from, .type = term->type, .first = term->first, .count = term->count};
    }
    machine_touch(m, r, to, bytes, true);
    machine_note_write(m, r, step->to, step->len);
    if (!m->failed) zero_tree_sum((int)sum->n, terms, step->len, step->type, to, false);
    free(terms);
}

static void copy(machine *m, int r, const zero_collective_step *step)
{
    size_t bytes = (size_t)step->len * zero_type_size(step->type);
    char *from = machine_locate(m, r, step->from, step->len, step->type);
    char *to = machine_locate(m, r, step->to, step->len, step->type);
    machine_note_read(m, r, step->from, step->len, step->type);
    machine_touch(m, r, from, bytes, false);
    if (from == to || m->failed) return;
    machine_touch(m, r, to, bytes, true);
    machine_note_write(m, r, step->to, step->len);
    memmove(to, from, bytes);
}

static bool has_reached(const machine *m, int r, const zero_collective_step *step)
{
    for (int peer = 0; peer < m->size; peer++) {
        bool is_meant = step->peer == ZERO_ALL_NEIGHBOURS ? machine_share_node(m, r, peer)
                                                          : peer == step->peer;
        if (is_meant && peer != r && m->ranks[peer].phase < step->phase) return false;
    }
    return true;
}

static bool is_ready(const machine *m, int r, const zero_collective_step *step)
{
    if (!machine_have_ended(m, r, false, step->received) ||
        !machine_have_ended(m, r, true, step->sent))
        return false;
    if (machine_count_copies(m, r, true, step->fetched) > 0) return false;
    if (machine_count_copies(m, r, false, step->stored) > 0) return false;
    if (step->kind == ZERO_STEP_SEND || step->kind == ZERO_STEP_RECEIVE)
        return m->ranks[r].in_flight < m->c.requests;
    bool fetches = step->kind == ZERO_STEP_FETCH;
    bool near =
        step->kind == ZERO_STEP_MARK || zero_steps_is_near(&m->ranks[r].steps, step);
    if (fetches || near || step->kind == ZERO_STEP_STORE)
        return machine_count_copies(m, r, fetches, INT64_MAX) < m->c.copies;
    return step->kind != ZERO_STEP_AWAIT || has_reached(m, r, step);
}

static void set_phase(machine *m, int r, int64_t phase)
{
    if (phase <= m->ranks[r].phase)
        machine_fail(m, r, "phase %" PRId64 " after %" PRId64, phase, m->ranks[r].phase);
    m->ranks[r].phase = phase;
}

static void run_step(machine *m, int r, const zero_collective_step *step)
{
    bool near = zero_steps_is_near(&m->ranks[r].steps, step);
    switch (step->kind) {
    case ZERO_STEP_SEND:
    case ZERO_STEP_RECEIVE: machine_post(m, r, step); break;
    case ZERO_STEP_MARK: machine_begin_near(m, r, step); break;
    case ZERO_STEP_ADD: (near ? machine_begin_near : add)(m, r, step); break;
    case ZERO_STEP_COPY: (near ? machine_begin_near : copy)(m, r, step); break;
    case ZERO_STEP_SIGNAL: set_phase(m, r, step->phase); break;
    case ZERO_STEP_AWAIT: break;
    case ZERO_STEP_FETCH:
    case ZERO_STEP_STORE: machine_begin_copy(m, r, step); break;
    case ZERO_STEP_MPI: machine_fail(m, r, "there is no MPI here"); break;
    }
    zero_steps_count(&m->ranks[r].steps, step, &m->ranks[r].counted);
}

/* ---- the order of events ---- */

/* True if rank r did something. A lazy machine makes ranks late. */
static bool advance(machine *m, int r, bool lazy)
{
    rank_state *rank = &m->ranks[r];
    bool is_edge = !rank->has_begun || rank->next == rank->steps.n;
    if (rank->has_ended || (lazy && is_edge && draw(m) % 4 > 0)) return false;
    if (!rank->has_begun) {
        machine_begin_rank(m, r);
        return true;
    }
    if (rank->next == rank->steps.n) {
        if (rank->in_flight > 0 || machine_count_copies(m, r, true, INT64_MAX) > 0 ||
            machine_count_copies(m, r, false, INT64_MAX) > 0)
            return false;
        machine_end_rank(m, r);
        return true;
    }
    const zero_collective_step *step = &rank->steps.list[rank->next];
    if (!is_ready(m, r, step)) return false;
    run_step(m, r, step);
    rank->next++;
    return true;
}

/* Lets one actor move, the first in a row that can: a rank, the network as number `size`, or the
 * devices as the next. The row begins with the trial's favourite or, now and then and in every
 * fourth trial, anywhere. */
static bool happen(machine *m, bool lazy)
{
    int n = m->size + 2;
    bool fair = m->c.trial % 4 == 0 || draw(m) % 8 == 0;
    int start = (int)((fair ? draw(m) : oracle_mix(m->c.trial)) % (uint64_t)n);
    bool down = m->c.trial / 4 % 2;
    for (int i = 0; i < n; i++) {
        int actor = (start + (down ? n - i : i)) % n;
        if (actor == m->size       ? machine_deliver(m, draw(m))
            : actor == m->size + 1 ? machine_end_copy(m, draw(m))
                                   : advance(m, actor, lazy))
            return true;
    }
    return false;
}

static bool is_over(const machine *m)
{
    for (int r = 0; r < m->size; r++)
        if (!m->ranks[r].has_ended) return false;
    return true;
}

static void report_deadlock(machine *m)
{
    for (int r = 0; r < m->size; r++)
        if (!m->ranks[r].has_ended) {
            machine_fail(m, r, "deadlock; this rank waits at step %" PRId64 " of %" PRId64,
                         m->ranks[r].next, m->ranks[r].steps.n);
            return;
        }
}

/* ---- checks at the end ---- */

static void check_writes(machine *m)
{
    const zero_collective_spec *s = &m->c.spec;
    for (int r = 0; r < m->size; r++)
        for (int64_t i = 0; i < m->out_len; i++) {
            int64_t owner = s->kind == ZERO_ALL_GATHER ? i / s->stride : s->root;
            bool own = owner == r || (s->one_out && machine_share_node(m, r, (int)owner));
            bool in_place = m->c.in_place && !zero_collective_sums(s->kind) && own;
            if (s->on_device && !s->direct) in_place = s->in_place && own;
            bool is_gap = s->kind == ZERO_ALL_GATHER && i % s->stride >= s->count;
            is_gap = is_gap || machine_is_gap(m, i);
            bool is_unused = s->kind == ZERO_REDUCE && r != s->root;
            if (m->writes[r][i] != (is_gap || in_place || is_unused ? 0 : 1))
                machine_fail(m, r, "out[%" PRId64 "] is written %d times", i,
                             m->writes[r][i]);
        }
}

static void check_traffic(machine *m, int r, zero_traffic *traffic)
{
    zero_traffic planned;
    const rank_state *rank = &m->ranks[r];
    if (zero_collective_traffic(&m->c.spec, m->c.layout, r, &planned) != ZERO_OK)
        machine_fail(m, r, "no planned traffic");
    else if (memcmp(&planned, &rank->counted, sizeof planned) != 0)
        machine_fail(m, r, "planned traffic differs from counted traffic");
    if (memcmp(&rank->moved, &rank->counted, sizeof rank->moved) != 0)
        machine_fail(
            m, r,
            "counts %" PRId64 " B sent, %" PRId64
            " B received inside its node, but %" PRId64 " and %" PRId64 " moved; %" PRId64
            " and %" PRId64 " B fetched and stored, but %" PRId64 " and %" PRId64 " were",
            rank->counted.bytes_sent[ZERO_INSIDE],
            rank->counted.bytes_received[ZERO_INSIDE], rank->moved.bytes_sent[ZERO_INSIDE],
            rank->moved.bytes_received[ZERO_INSIDE], rank->counted.bytes_fetched,
            rank->counted.bytes_stored, rank->moved.bytes_fetched,
            rank->moved.bytes_stored);
    if (traffic) traffic[r] = rank->counted;
}

bool machine_run(const machine_case *c, zero_traffic *traffic)
{
    machine m = {.c = *c, .size = c->layout->size, .random = c->trial};
    m.ranks = machine_take((size_t)m.size, sizeof *m.ranks);
    machine_allocate(&m);
    for (int r = 0; r < m.size && !m.failed; r++)
        if (!machine_build_rank(&m, r)) machine_fail(&m, r, "%s", zero_last_error());
    while (!m.failed && (happen(&m, true) || happen(&m, false))) continue;
    if (!m.failed && !is_over(&m)) report_deadlock(&m);
    for (int i = 0; i < m.n_requests && !m.failed; i++)
        if (m.requests[i].is_used)
            machine_fail(&m, m.requests[i].rank, "a message to rank %d was never received",
                         m.requests[i].peer);
    if (!m.failed) check_writes(&m);
    for (int r = 0; r < m.size && !m.failed; r++) check_traffic(&m, r, traffic);
    machine_release(&m);
    return !m.failed;
}
