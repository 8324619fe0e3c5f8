#include "simulation/parts.h"

/* ---- what steps wait for ---- */

/* True if the sends, or the receives, that the first `until` steps posted have ended. */
static bool have_ended(const zero_part *p, bool sends, int32_t until)
{
    if (until == 0) return true;
    for (uint32_t left = p->pending & (sends ? p->sends : ~p->sends); left;
         left &= left - 1)
        if (p->step_of[__builtin_ctz(left)] < until) return false;
    return true;
}

/* The rule of spec.in_turn. */
static bool may_send(const zero_exchanges *x, const zero_part *p)
{
    if (!p->set->spec.in_turn) return true;
    for (const zero_part *o = x->ranks[p->rank].first; o != p; o = o->next_of_rank)
        if (o->group == p->group && o->set->spec.in_turn &&
            o->next_step < o->list->until_sent)
            return false;
    return true;
}

static bool has_reached(const zero_part *p, int member, int64_t phase)
{
    const zero_call_member *m = &p->call->members[member];
    return m->is_over || (m->part && m->part->phase >= phase);
}

/* The first neighbour whose phase the step still has to await, or -1. Members of a node
 * need not follow each other. */
static int find_missing(const zero_part *p, const zero_packed_step *step)
{
    const zero_peers *peers = &p->set->peers;
    const zero_layout *layout = peers->layout;
    if (step->peer != ZERO_ALL_NEIGHBOURS) {
        int member = zero_peers_member(peers, p->member, step->peer);
        return has_reached(p, member, step->value) ? -1 : member;
    }
    int node = layout->node_of[p->member];
    int first = layout->in_blocks ? layout->first[node] : 0;
    int end = layout->in_blocks ? layout->first[node + 1] : layout->size;
    for (int m = first; m < end; m++)
        if (m != p->member && layout->node_of[m] == node && !has_reached(p, m, step->value))
            return m;
    return -1;
}

static bool is_ready(const zero_exchanges *x, const zero_part *p,
                     const zero_packed_step *step)
{
    bool has_room = ~p->pending != 0;
    if (!have_ended(p, false, step->received) || !have_ended(p, true, step->sent))
        return false;
    switch ((zero_packed_kind)step->kind) {
    case ZERO_PACKED_SEND: return has_room && may_send(x, p);
    case ZERO_PACKED_RECEIVE: return has_room;
    case ZERO_PACKED_READ: return !p->is_reading;
    case ZERO_PACKED_AWAIT: return !p->is_waiting && find_missing(p, step) < 0;
    case ZERO_PACKED_WORK:
    case ZERO_PACKED_LEND:
    case ZERO_PACKED_SIGNAL: break;
    }
    return true;
}

void zero_looks_notice(zero_exchanges *x, zero_part *p)
{
    bool can = p->next_step < p->list->n ? is_ready(x, p, &p->list->steps[p->next_step])
                                         : p->pending == 0;
    if (can) zero_parts_stir(x, p->rank);
}

/* ---- what steps do ---- */

/* Waits in the list of a member that has not reached the phase. */
static void await(zero_part *p, const zero_packed_step *step)
{
    int missing = p->is_waiting ? -1 : find_missing(p, step);
    if (missing < 0) return;
    zero_call_member *m = &p->call->members[missing];
    p->is_waiting = true;
    p->next_waiter = m->waiter;
    m->waiter = p;
}

/* Wakes those that wait for the phase; they may have to wait for another member. */
static void signal_phase(zero_exchanges *x, zero_part *p, int64_t phase)
{
    zero_call_member *m = &p->call->members[p->member];
    zero_part *waiter = m->waiter;
    p->phase = phase;
    m->waiter = NULL;
    for (zero_part *next; waiter; waiter = next) {
        next = waiter->next_waiter;
        waiter->is_waiting = false;
        await(waiter, &waiter->list->steps[waiter->next_step]);
        if (!waiter->is_waiting) zero_parts_stir(x, waiter->rank);
    }
}

/* Returns false if that takes no time: there are many reads. */
static bool begin_read(zero_exchanges *x, const zero_part *p, const zero_packed_step *step,
                       int64_t cookie)
{
    if (!x->reads_take_time) return false;
    int owner = ZERO_NETWORK_SEVERAL;
    if (step->peer != ZERO_ALL_NEIGHBOURS)
        owner = p->group->ranks[zero_peers_member(&p->set->peers, p->member, step->peer)];
    zero_network_read(x->network, owner, p->rank, step->value, cookie);
    return true;
}

/* Returns the seconds of arithmetic. */
static double run(zero_exchanges *x, zero_part *p, const zero_packed_step *step)
{
    switch ((zero_packed_kind)step->kind) {
    case ZERO_PACKED_SEND:
    case ZERO_PACKED_RECEIVE: zero_parts_post(x, p, step); break;
    case ZERO_PACKED_WORK: return (double)step->value / x->input.memory_bandwidth;
    case ZERO_PACKED_READ:
        p->is_reading = begin_read(x, p, step, zero_parts_cookie(ZERO_COOKIE_READ, p));
        break;
    case ZERO_PACKED_LEND:
        begin_read(x, p, step, zero_parts_cookie(ZERO_COOKIE_NOTHING, NULL));
        break;
    case ZERO_PACKED_SIGNAL: signal_phase(x, p, step->value); break;
    case ZERO_PACKED_AWAIT: break;
    }
    return 0.0;
}

double zero_looks_advance(zero_exchanges *x, zero_part *p)
{
    const zero_packed_list *list = p->list;
    double seconds = 0.0;
    while (seconds == 0.0 && p->next_step < list->n && !x->failed) {
        const zero_packed_step *step = &list->steps[p->next_step];
        if (!is_ready(x, p, step)) {
            if (step->kind == ZERO_PACKED_AWAIT) await(p, step);
            break;
        }
        seconds = run(x, p, step);
        if (p->is_reading) break; /* the step is over when its bytes are here */
        p->next_step++;
    }
    if (seconds > 0.0)
        zero_parts_stir(x, p->rank);
    else if (p->next_step == list->n && p->pending == 0)
        zero_parts_end(x, p);
    return seconds;
}
