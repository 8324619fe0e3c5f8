#include "support/step_machine_self.h"

static zero_reach reach(const machine *m, int a, int b)
{
    return machine_share_node(m, a, b) ? ZERO_INSIDE : ZERO_ACROSS;
}

/* ---- memory that steps touch ---- */

void machine_touch(machine *m, int r, const char *at, size_t bytes, bool writes)
{
    for (int i = 0; i < m->n_requests; i++) {
        const request *q = &m->requests[i];
        if (!q->is_used || q->payload || (q->is_send && !writes)) continue;
        size_t len = (size_t)q->len * zero_type_size(q->type);
        if (at < q->at + len && q->at < at + bytes)
            machine_fail(m, r, "step %" PRId64 " %s what step %" PRId64 " of rank %d %s",
                         m->ranks[r].next, writes ? "writes" : "reads", q->step, q->rank,
                         q->is_send ? "still sends" : "still receives");
    }
    machine_touch_copies(m, r, at, bytes, writes);
}

void machine_note_write(machine *m, int r, zero_spot spot, int64_t len)
{
    const zero_collective_spec *s = &m->c.spec;
    if (spot.place == ZERO_IN)
        machine_fail(m, r, "step %" PRId64 " writes `in`", m->ranks[r].next);
    if (spot.place != ZERO_OUT) return;
    if (spot.rank != r)
        machine_fail(m, r, "step %" PRId64 " writes rank %d's `out`", m->ranks[r].next,
                     spot.rank);
    if (s->on_device && !s->direct) return; /* only STORE writes `out` itself */
    for (int64_t i = spot.at; i < spot.at + len && i < m->out_len; i++) {
        if (s->kind == ZERO_ALL_GATHER && i % s->stride >= s->count)
            machine_fail(m, r, "out[%" PRId64 "] is outside the window of count", i);
        m->writes[r][i]++;
    }
}

char *machine_locate(machine *m, int r, zero_spot spot, int64_t len, zero_type type)
{
    const zero_collective_spec *s = &m->c.spec;
    int64_t size = (int64_t)zero_type_size(type), limit = m->in_len;
    char *base = m->ranks[r].staging;
    bool is_staging = spot.place == ZERO_STAGING;
    if (is_staging)
        limit = (int64_t)m->ranks[r].staging_bytes / size;
    else if (spot.place == ZERO_OUT)
        limit = m->out_len;
    if (s->on_device && !s->direct && !is_staging && !zero_collective_has_root(s->kind) &&
        s->kind == (spot.place == ZERO_IN ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER))
        limit = m->size * s->count; /* pieces of mirrors adjoin */
    int64_t at = is_staging ? spot.at / size : spot.at;
    if (at < 0 || at + len > limit || spot.rank < 0 || spot.rank >= m->size ||
        (is_staging && spot.at % size != 0)) {
        machine_fail(m, r, "step %" PRId64 " is at [%" PRId64 ", %" PRId64 ") of %" PRId64,
                     m->ranks[r].next, at, at + len, limit);
        return base;
    }
    bool remote = !is_staging && spot.rank != r;
    bool has_window = zero_algorithm_get(s->algorithm)->works_in_window;
    if (remote && (!has_window || !machine_share_node(m, r, spot.rank)))
        machine_fail(m, r, "step %" PRId64 " accesses rank %d's memory", m->ranks[r].next,
                     spot.rank);
    if (!is_staging)
        base = spot.place == ZERO_IN ? m->ranks[spot.rank].mirror_in
                                     : m->ranks[spot.rank].mirror_out;
    return base + at * size;
}

/* The element of the whole `out` that element i of what steps call `out` is. */
static int64_t array_index(const machine *m, int64_t i)
{
    const zero_collective_spec *s = &m->c.spec;
    if (!s->on_device || s->direct || s->kind != ZERO_ALL_GATHER) return i;
    return i / s->count * s->stride + i % s->count;
}

void machine_note_read(machine *m, int r, zero_spot spot, int64_t len, zero_type type)
{
    if (spot.place == ZERO_STAGING || spot.rank == r) return;
    for (int64_t i = spot.at; spot.place == ZERO_OUT && i < spot.at + len; i++)
        if (!oracle_same(type, m->ranks[spot.rank].mirror_out, i,
                         machine_expected(m, spot.rank, array_index(m, i))))
            machine_fail(m, r,
                         "step %" PRId64 " reads rank %d's out[%" PRId64 "] too early",
                         m->ranks[r].next, spot.rank, i);
    int64_t bytes = len * (int64_t)zero_type_size(type);
    m->ranks[r].moved.bytes_received[ZERO_INSIDE] += bytes;
    m->ranks[spot.rank].moved.bytes_sent[ZERO_INSIDE] += bytes;
}

/* ---- messages ---- */

static int find_slot(machine *m)
{
    for (int i = 0; i < m->n_requests; i++)
        if (!m->requests[i].is_used) return i;
    m->requests =
        realloc(m->requests, (size_t)(2 * m->n_requests + 16) * sizeof *m->requests);
    if (!m->requests) abort();
    memset(m->requests + m->n_requests, 0,
           (size_t)(m->n_requests + 16) * sizeof *m->requests);
    int first = m->n_requests;
    m->n_requests = 2 * m->n_requests + 16;
    return first;
}

static void find_partner(machine *m, int slot)
{
    request *q = &m->requests[slot];
    q->partner = -1;
    for (int i = 0; i < m->n_requests; i++) {
        request *p = &m->requests[i];
        if (!p->is_used || p->is_send == q->is_send || p->rank != q->peer ||
            p->peer != q->rank || p->number != q->number)
            continue;
        if (p->len != q->len || p->type != q->type)
            machine_fail(
                m, q->rank, "a message of %" PRId64 " %s meets rank %d's of %" PRId64 " %s",
                q->len, zero_type_name(q->type), q->peer, p->len, zero_type_name(p->type));
        q->partner = i;
        p->partner = slot;
    }
}

static void note_message(machine *m, int r, const request *q)
{
    int64_t bytes = q->len * (int64_t)zero_type_size(q->type);
    zero_traffic *t = &m->ranks[r].moved;
    zero_reach where = reach(m, r, q->peer);
    (q->is_send ? t->bytes_sent : t->bytes_received)[where] += bytes;
    (q->is_send ? t->messages_sent : t->messages_received)[where]++;
}

/* With bounded messages pairs keep pace: as many are received as are sent, in rounds. */
static void check_pace(machine *m, int r)
{
    const zero_collective_spec *s = &m->c.spec;
    rank_state *rank = &m->ranks[r];
    bool is_paced = s->message > 0 && s->algorithm == ZERO_ALGORITHM_P2P &&
                    !zero_collective_has_root(s->kind);
    rank->n_sent++;
    if (is_paced && rank->n_sent - rank->n_received > ZERO_PACE)
        machine_fail(m, r, "sends message %" PRId64 " after receiving %" PRId64,
                     rank->n_sent, rank->n_received);
}

void machine_post(machine *m, int r, const zero_collective_step *step)
{
    rank_state *rank = &m->ranks[r];
    bool is_send = step->kind == ZERO_STEP_SEND;
    zero_spot spot = is_send ? step->from : step->to;
    size_t bytes = (size_t)step->len * zero_type_size(step->type);
    char *at = machine_locate(m, r, spot, step->len, step->type);
    if (step->peer < 0 || step->peer >= m->size || step->peer == r || step->len <= 0)
        machine_fail(m, r, "step %" PRId64 ": %" PRId64 " elements with rank %d",
                     rank->next, step->len, step->peer);
    machine_touch(m, r, at, bytes, !is_send);
    if (is_send)
        machine_note_read(m, r, spot, step->len, step->type);
    else
        machine_note_write(m, r, spot, step->len);
    if (is_send) check_pace(m, r);
    if (m->failed) return;
    int slot = find_slot(m);
    int64_t *numbers = is_send ? rank->sent_to : rank->received_from;
    m->requests[slot] = (request){.is_used = true,
                                  .is_send = is_send,
                                  .rank = r,
                                  .peer = step->peer,
                                  .partner = -1,
                                  .number = numbers[step->peer]++,
                                  .step = rank->next,
                                  .len = step->len,
                                  .type = step->type,
                                  .at = at};
    note_message(m, r, &m->requests[slot]);
    if (is_send && m->c.eager && rank->n_buffered < m->c.requests) {
        m->requests[slot].payload = memcpy(machine_take(bytes, 1), at, bytes);
        rank->n_buffered++;
    } else {
        rank->in_flight++;
    }
    find_partner(m, slot);
}

/* Delivers one message, any that both sides have posted. */
bool machine_deliver(machine *m, uint64_t random)
{
    if (m->n_requests == 0) return false;
    int start = (int)(random % (uint64_t)m->n_requests);
    for (int i = 0; i < m->n_requests; i++) {
        request *send = &m->requests[(start + i) % m->n_requests];
        if (!send->is_used || !send->is_send || send->partner < 0) continue;
        request *receive = &m->requests[send->partner];
        memcpy(receive->at, send->payload ? send->payload : send->at,
               (size_t)send->len * zero_type_size(send->type));
        m->ranks[receive->rank].in_flight--;
        m->ranks[receive->rank].n_received++;
        send->payload ? m->ranks[send->rank].n_buffered--
                      : m->ranks[send->rank].in_flight--;
        free(send->payload);
        *send = *receive = (request){0};
        return true;
    }
    return false;
}

bool machine_have_ended(const machine *m, int r, bool sends, int64_t until)
{
    for (int i = 0; until > 0 && i < m->n_requests; i++) {
        const request *q = &m->requests[i];
        if (q->is_used && !q->payload && q->rank == r && q->is_send == sends &&
            q->step < until)
            return false;
    }
    return true;
}
