/* The devices: copies end in any order. Their source is read at the last moment, and until then
 * their destination is garbage. */
#include "base/tree.h"
#include "support/step_machine_self.h"

static bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void machine_touch_copies(machine *m, int r, const char *at, size_t bytes, bool writes)
{
    for (int i = 0; m->n_copies > 0 && i < MACHINE_COPIES * m->size; i++) {
        const copy_state *c = &m->copies[i];
        if (!c->is_used) continue;
        if (overlap(at, bytes, c->to, c->bytes) ||
            (writes && overlap(at, bytes, c->from, c->bytes)))
            machine_fail(m, r, "step %" PRId64 " %s what step %" PRId64 " of rank %d %s",
                         m->ranks[r].next, writes ? "writes" : "reads", c->step, c->rank,
                         c->is_fetch ? "still fetches" : "still stores");
    }
}

int machine_count_copies(const machine *m, int r, bool fetches, int64_t until)
{
    int n = 0;
    const copy_state *own = m->copies + (int64_t)r * MACHINE_COPIES;
    for (int i = 0; m->n_copies > 0 && i < MACHINE_COPIES; i++) {
        const copy_state *c = &own[i];
        n += c->is_used && c->is_fetch == fetches && c->step < until;
    }
    return n;
}

/* The address of elements of the device's array; fails outside the pieces' first `count`. */
static char *locate(machine *m, int r, zero_spot spot, const zero_collective_step *step)
{
    const zero_collective_spec *s = &m->c.spec;
    bool is_in = step->kind == ZERO_STEP_FETCH;
    int64_t limit = is_in ? m->in_len : m->out_len;
    bool pieces = s->kind == (is_in ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER);
    int64_t in_piece = pieces ? spot.at % s->stride : spot.at;
    if (spot.rank != r || spot.place != (is_in ? ZERO_IN : ZERO_OUT) || step->len <= 0 ||
        spot.at < 0 || spot.at + step->len > limit || in_piece + step->len > s->count)
        machine_fail(m, r, "step %" PRId64 " copies [%" PRId64 ", %" PRId64 ") of %" PRId64,
                     m->ranks[r].next, spot.at, spot.at + step->len, limit);
    char *base = is_in ? m->ranks[r].in : m->ranks[r].out;
    return base + spot.at * (int64_t)zero_type_size(step->type);
}

void machine_begin_copy(machine *m, int r, const zero_collective_step *step)
{
    const zero_collective_spec *s = &m->c.spec;
    bool is_fetch = step->kind == ZERO_STEP_FETCH;
    size_t bytes = (size_t)step->len * zero_type_size(step->type);
    zero_spot mirror = is_fetch ? step->to : step->from;
    char *there = locate(m, r, is_fetch ? step->from : step->to, step);
    char *here = machine_locate(m, r, mirror, step->len, step->type);
    if (!s->on_device || mirror.rank != r || (mirror.place == ZERO_STAGING) != s->direct)
        machine_fail(m, r, "step %" PRId64 " copies without a device", m->ranks[r].next);
    machine_touch(m, r, is_fetch ? there : here, bytes, false);
    machine_touch(m, r, is_fetch ? here : there, bytes, true);
    if (m->failed) return;
    for (int64_t i = step->to.at; !is_fetch && i < step->to.at + step->len; i++)
        m->writes[r][i]++;
    int slot = r * MACHINE_COPIES;
    while (m->copies[slot].is_used) slot++;
    m->copies[slot] = (copy_state){.is_used = true,
                                   .is_fetch = is_fetch,
                                   .rank = r,
                                   .step = m->ranks[r].next,
                                   .from = is_fetch ? there : here,
                                   .to = is_fetch ? here : there,
                                   .bytes = bytes};
    m->n_copies++;
    memset(m->copies[slot].to, MACHINE_POISON, bytes);
    zero_traffic *t = &m->ranks[r].moved;
    *(is_fetch ? &t->bytes_fetched : &t->bytes_stored) += (int64_t)bytes;
}

/* ---- direct ---- */

zero_spot machine_term_spot(int r, const zero_collective_step *step, const zero_term *term)
{
    if (term->staged < 0) return (zero_spot){ZERO_IN, term->first, step->from.at};
    return (zero_spot){ZERO_STAGING, r, step->staged + term->staged};
}

static void note_near(machine *m, int r, const zero_collective_step *step)
{
    const zero_sum *sum =
        step->kind == ZERO_STEP_ADD ? &m->ranks[r].steps.sums[step->sum] : NULL;
    for (int64_t t = 0; sum && t < sum->n; t++) {
        zero_spot spot = machine_term_spot(r, step, &sum->terms[t]);
        machine_note_read(m, r, spot, step->len, m->c.spec.type);
    }
    if (!sum) machine_note_read(m, r, step->from, step->len, step->type);
    machine_note_write(m, r, step->to, step->len);
}

void machine_begin_near(machine *m, int r, const zero_collective_step *step)
{
    bool is_mark = step->kind == ZERO_STEP_MARK;
    char *to = NULL, *from = NULL;
    size_t bytes = (size_t)step->len * zero_type_size(step->type);
    if (!is_mark) to = machine_locate(m, r, step->to, step->len, step->type);
    if (step->kind == ZERO_STEP_COPY)
        from = machine_locate(m, r, step->from, step->len, step->type);
    if (to && to == from) {
        machine_note_read(m, r, step->from, step->len, step->type);
        return;
    }
    if (!is_mark) note_near(m, r, step);
    if (to) machine_touch(m, r, to, bytes, true);
    if (m->failed) return;
    if (to && step->to.place == ZERO_STAGING) {
        m->ranks[r].moved.bytes_fetched += (int64_t)bytes;
        memset(to, MACHINE_POISON, bytes);
    }
    int slot = r * MACHINE_COPIES;
    while (m->copies[slot].is_used) slot++;
    m->copies[slot] = (copy_state){.is_used = true,
                                   .rank = r,
                                   .step = m->ranks[r].next,
                                   .from = from,
                                   .to = to,
                                   .bytes = bytes};
    m->n_copies++;
}

static void add(machine *m, int r, const zero_collective_step *step)
{
    const zero_sum *sum = &m->ranks[r].steps.sums[step->sum];
    zero_tree_term *terms = machine_take((size_t)sum->n, sizeof *terms);
    for (int64_t t = 0; t < sum->n; t++) {
        const zero_term *term = &sum->terms[t];
        zero_spot spot = machine_term_spot(r, step, term);
        terms[t] = (zero_tree_term){machine_locate(m, r, spot, step->len, term->type),
                                    term->type, term->first, term->count};
    }
    zero_tree_sum((int)sum->n, terms, step->len, step->type,
                  machine_locate(m, r, step->to, step->len, step->type), false);
    free(terms);
}

/* The first thing that the copy's device has to do: it keeps the order of its steps, but for fetches. */
static copy_state *first_of(machine *m, copy_state *c)
{
    copy_state *own = m->copies + (int64_t)c->rank * MACHINE_COPIES;
    for (int i = 0; i < MACHINE_COPIES; i++)
        if (own[i].is_used && own[i].is_fetch == c->is_fetch && own[i].step < c->step)
            c = &own[i];
    return c;
}

static void end_near(machine *m, const copy_state *c)
{
    const zero_collective_step *step = &m->ranks[c->rank].steps.list[c->step];
    if (step->kind == ZERO_STEP_MARK) machine_fill(m, c->rank);
    if (step->kind == ZERO_STEP_ADD) add(m, c->rank, step);
    if (c->from) memcpy(c->to, c->from, c->bytes);
}

bool machine_end_copy(machine *m, uint64_t random)
{
    int n = MACHINE_COPIES * m->size, start = (int)(random % (uint64_t)n);
    for (int i = 0; m->n_copies > 0 && i < n; i++) {
        copy_state *c = &m->copies[(start + i) % n];
        if (!c->is_used) continue;
        if (m->c.spec.direct)
            end_near(m, c = first_of(m, c));
        else
            memcpy(c->to, c->from, c->bytes);
        c->is_used = false;
        m->n_copies--;
        return true;
    }
    return false;
}
