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

static bool has_room(const zero_part *p)
{
    return ~p->pending != 0;
}

static const zero_packed_list *list_of(const zero_exchanges *x, const zero_part *p)
{
    return zero_step_lists_get(&x->lists, p->set, p->member);
}

/* The rule of spec.in_turn. */
static bool may_send(const zero_exchanges *x, int32_t part)
{
    const zero_part *p = &x->parts[part];
    if (!x->lists.sets[p->set].spec.in_turn) return true;
    for (int32_t o = x->ranks[p->rank].first; o != part; o = x->parts[o].next_of_rank) {
        const zero_part *other = &x->parts[o];
        if (other->group == p->group && x->lists.sets[other->set].spec.in_turn &&
            other->next_step < list_of(x, other)->until_sent)
            return false;
    }
    return true;
}

static bool has_reached(const zero_exchanges *x, const zero_part *p, int member,
                        int64_t phase)
{
    const zero_call_member *m = &x->calls[p->call].members[member];
    return m->is_over || (m->part >= 0 && x->parts[m->part].phase >= phase);
}

/* The first neighbour whose phase the step still has to await, or -1. Members of a node
 * need not follow each other. */
static int find_missing(const zero_exchanges *x, const zero_part *p,
                        const zero_packed_step *step)
{
    const zero_peers *peers = &x->lists.sets[p->set].peers;
    const zero_layout *layout = peers->layout;
    if (step->peer != ZERO_ALL_NEIGHBOURS) {
        int member = zero_peers_member(peers, p->member, step->peer);
        return has_reached(x, p, member, step->value) ? -1 : member;
    }
    int node = layout->node_of[p->member];
    int first = layout->in_blocks ? layout->first[node] : 0;
    int end = layout->in_blocks ? layout->first[node + 1] : layout->size;
    for (int m = first; m < end; m++)
        if (m != p->member && layout->node_of[m] == node &&
            !has_reached(x, p, m, step->value))
            return m;
    return -1;
}

static bool is_ready(const zero_exchanges *x, int32_t part, const zero_packed_step *step)
{
    const zero_part *p = &x->parts[part];
    if (!have_ended(p, false, step->received) || !have_ended(p, true, step->sent))
        return false;
    switch ((zero_packed_kind)step->kind) {
    case ZERO_PACKED_SEND: return has_room(p) && may_send(x, part);
    case ZERO_PACKED_RECEIVE: return has_room(p);
    case ZERO_PACKED_READ: return !p->is_reading;
    case ZERO_PACKED_AWAIT: return !p->is_waiting && find_missing(x, p, step) < 0;
    case ZERO_PACKED_WORK:
    case ZERO_PACKED_LEND:
    case ZERO_PACKED_SIGNAL: break;
    }
    return true;
}

void zero_looks_notice(zero_exchanges *x, int32_t part)
{
    const zero_part *p = &x->parts[part];
    const zero_packed_list *list = list_of(x, p);
    bool can = p->next_step < list->n ? is_ready(x, part, &list->steps[p->next_step])
                                      : p->pending == 0;
    if (can) zero_parts_stir(x, p->rank);
}

void zero_looks_has_read(zero_exchanges *x, int32_t part)
{
    zero_part *p = &x->parts[part];
    p->is_reading = false;
    p->next_step++;
    zero_parts_stir(x, p->rank);
}

/* ---- phases ---- */

static void wait_for(zero_exchanges *x, int32_t part, int member)
{
    zero_part *p = &x->parts[part];
    zero_call_member *m = &x->calls[p->call].members[member];
    p->is_waiting = true;
    p->next_waiter = m->waiter;
    m->waiter = part;
}

/* Waits in the list of a member that has not reached the phase. */
static void await(zero_exchanges *x, int32_t part, const zero_packed_step *step)
{
    const zero_part *p = &x->parts[part];
    int missing = p->is_waiting ? -1 : find_missing(x, p, step);
    if (missing >= 0) wait_for(x, part, missing);
}

static void wake(zero_exchanges *x, int32_t part)
{
    zero_part *p = &x->parts[part];
    const zero_packed_step *step = &list_of(x, p)->steps[p->next_step];
    p->is_waiting = false;
    await(x, part, step);
    if (!p->is_waiting) zero_parts_stir(x, p->rank);
}

static void signal_phase(zero_exchanges *x, int32_t part, int64_t phase)
{
    zero_part *p = &x->parts[part];
    zero_call_member *m = &x->calls[p->call].members[p->member];
    int32_t waiter = m->waiter;
    p->phase = phase;
    m->waiter = ZERO_NO_PART;
    while (waiter >= 0) {
        int32_t next = x->parts[waiter].next_waiter;
        wake(x, waiter);
        waiter = next;
    }
}

/* ---- what steps do ---- */

/* Returns false if that takes no time: there are many reads. */
static bool begin_read(zero_exchanges *x, const zero_part *p, const zero_packed_step *step,
                       int64_t cookie)
{
    const zero_peers *peers = &x->lists.sets[p->set].peers;
    const int *ranks = x->groups[p->group].ranks;
    if (!x->reads_take_time) return false;
    int owner = step->peer == ZERO_ALL_NEIGHBOURS
                    ? ZERO_NETWORK_SEVERAL
                    : ranks[zero_peers_member(peers, p->member, step->peer)];
    zero_network_read(x->network, owner, p->rank, step->value, cookie);
    return true;
}

/* Returns the seconds of arithmetic. */
static double run(zero_exchanges *x, int32_t part, const zero_packed_step *step)
{
    switch ((zero_packed_kind)step->kind) {
    case ZERO_PACKED_SEND: zero_matching_send(x, part, step); break;
    case ZERO_PACKED_RECEIVE: zero_matching_receive(x, part, step); break;
    case ZERO_PACKED_WORK: return (double)step->value / x->memory_bandwidth;
    case ZERO_PACKED_READ:
        x->parts[part].is_reading =
            begin_read(x, &x->parts[part], step, zero_parts_cookie(ZERO_COOKIE_READ, part));
        break;
    case ZERO_PACKED_LEND:
        begin_read(x, &x->parts[part], step, zero_parts_cookie(ZERO_COOKIE_NOTHING, 0));
        break;
    case ZERO_PACKED_SIGNAL: signal_phase(x, part, step->value); break;
    case ZERO_PACKED_AWAIT: break;
    }
    return 0.0;
}

double zero_looks_advance(zero_exchanges *x, int32_t part)
{
    zero_part *p = &x->parts[part];
    const zero_packed_list *list = list_of(x, p);
    double seconds = 0.0;
    while (seconds == 0.0 && p->next_step < list->n && !x->failed) {
        const zero_packed_step *step = &list->steps[p->next_step];
        if (!is_ready(x, part, step)) {
            if (step->kind == ZERO_PACKED_AWAIT) await(x, part, step);
            break;
        }
        seconds = run(x, part, step);
        if (p->is_reading) break; /* the step is over when its bytes are here */
        p->next_step++;
    }
    if (seconds == 0.0 && p->next_step == list->n && p->pending == 0)
        zero_parts_end(x, part);
    return seconds;
}
