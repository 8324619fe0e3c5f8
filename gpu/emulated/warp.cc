/* warp.cc - how threads meet: at a block's barrier, and in the operations of a warp. */
#include <cstdio>

#include "gpu/emulated/block.h"

namespace emulated
{

/* ---- a block's barrier ---- */

static bool is_same(place a, place b)
{
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

static bool all_at(place at)
{
    if (running.n_at_barrier < running.n_threads) return false;
    for (int t = 0; t < running.n_threads; t++)
        if (!is_same(running.threads[t].barrier, at)) return false;
    return true;
}

static void leave_barrier()
{
    running.n_at_barrier = 0;
    running.warp = running.down ? running.n_warps - 1 : 0;
    for (int w = 0; w < running.n_warps; w++) {
        running.warps[w].ready = running.warps[w].at_barrier;
        running.warps[w].at_barrier = 0;
    }
}

void meet_block(place at)
{
    const int me = running.thread;
    running.threads[me].barrier = at;
    running.warps[me / lanes_of_warp].at_barrier |= 1u << me % lanes_of_warp;
    running.n_at_barrier++;
    if (all_at(at)) leave_barrier();
    give_way();
}

/* ---- operations of a warp ---- */

static bool is_same(const lane_call *a, const lane_call *b)
{
    return a->mask == b->mask && a->finish == b->finish && is_same(a->at, b->at);
}

/* Which of the mask's lanes wait in the same operation. */
static unsigned lanes_alike(int warp, const lane_call *call)
{
    unsigned alike = 0;
    for (unsigned left = running.warps[warp].meeting & call->mask; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        if (is_same(running.threads[warp * lanes_of_warp + lane].call, call))
            alike |= 1u << lane;
    }
    return alike;
}

static void finish(int warp, const lane_call *call)
{
    lane_call *lanes[lanes_of_warp];
    for (int i = 0; i < lanes_of_warp; i++)
        lanes[i] = running.threads[warp * lanes_of_warp + i].call;
    call->finish(lanes, call->mask);
    running.warps[warp].meeting &= ~call->mask;
    running.warps[warp].ready |= call->mask;
}

static void check_mask(const lane_call *call, int lane)
{
    const int warp = running.thread / lanes_of_warp;
    const int n = running.n_threads - warp * lanes_of_warp;
    if (!(call->mask >> lane & 1))
        stop(running.thread, call->at,
             "%s(): its mask 0x%08x leaves out lane %d, which calls it", call->name,
             call->mask, lane);
    if (n < lanes_of_warp && call->mask >> n)
        stop(running.thread, call->at,
             "%s(): its mask 0x%08x has lanes from %d, but this warp has %d threads",
             call->name, call->mask, n, n);
}

void meet(lane_call *call)
{
    const int me = running.thread, warp = me / lanes_of_warp, lane = me % lanes_of_warp;
    check_mask(call, lane);
    running.threads[me].call = call;
    running.warps[warp].meeting |= 1u << lane;
    if ((running.warps[warp].meeting & call->mask) == call->mask &&
        lanes_alike(warp, call) == call->mask)
        finish(warp, call);
    give_way();
}

/* ---- what the operations do ---- */

void finish_nothing(lane_call *const *, unsigned)
{
}

void finish_ballot(lane_call *const *lanes, unsigned mask)
{
    unsigned votes = 0;
    for (int i = 0; i < lanes_of_warp; i++)
        if (mask >> i & 1) votes |= (unsigned)lanes[i]->value << i;
    for (int i = 0; i < lanes_of_warp; i++)
        if (mask >> i & 1) lanes[i]->result = votes;
}

/* The lane that a lane of a segment of `width` reads. */
typedef int source(int lane, int by, int width);

static int thread_of(int lane)
{
    return running.thread / lanes_of_warp * lanes_of_warp + lane;
}

static void move(lane_call *const *lanes, unsigned mask, source *source_of)
{
    for (int i = 0; i < lanes_of_warp; i++) {
        if (!(mask >> i & 1)) continue;
        lane_call *call = lanes[i];
        if (call->width < 1 || call->width > 32 || (call->width & (call->width - 1)))
            stop(thread_of(i), call->at,
                 "%s(): the width is %d, not a power of two up to 32", call->name,
                 call->width);
        const int from = source_of(i, call->by, call->width);
        if (!(mask >> from & 1))
            stop(thread_of(i), call->at, "%s(): reads lane %d, outside of its mask 0x%08x",
                 call->name, from, mask);
        call->result = lanes[from]->value;
    }
}

static int last_of_segment(int lane, int width)
{
    return lane | (width - 1);
}

void finish_shuffle(lane_call *const *lanes, unsigned mask)
{
    move(lanes, mask, [](int lane, int by, int width) {
        return (lane & ~(width - 1)) | (by & (width - 1));
    });
}

void finish_shuffle_up(lane_call *const *lanes, unsigned mask)
{
    move(lanes, mask,
         [](int lane, int by, int width) { return lane % width >= by ? lane - by : lane; });
}

void finish_shuffle_down(lane_call *const *lanes, unsigned mask)
{
    move(lanes, mask, [](int lane, int by, int width) {
        return by <= last_of_segment(lane, width) - lane ? lane + by : lane;
    });
}

/* An earlier segment may be read, a later one may not. */
void finish_shuffle_xor(lane_call *const *lanes, unsigned mask)
{
    move(lanes, mask, [](int lane, int by, int width) {
        const int from = lane ^ (by & 31);
        return from <= last_of_segment(lane, width) ? from : lane;
    });
}

/* ---- nobody can go on ---- */

static place place_of(int thread, const char **doing)
{
    const warp *w = &running.warps[thread / lanes_of_warp];
    const struct thread *t = &running.threads[thread];
    const bool meets = w->meeting >> thread % lanes_of_warp & 1;
    *doing = meets ? t->call->name : "__syncthreads";
    return meets ? t->call->at : t->barrier;
}

/* Whether `other` keeps `waiting` from going on. */
static bool blocks(int other, int waiting)
{
    const warp *w = &running.warps[waiting / lanes_of_warp];
    const unsigned other_bit = 1u << other % lanes_of_warp;
    const struct thread *t = &running.threads[waiting];
    if (w->at_barrier >> waiting % lanes_of_warp & 1)
        return !(running.warps[other / lanes_of_warp].at_barrier & other_bit) ||
               !is_same(running.threads[other].barrier, t->barrier);
    return other / lanes_of_warp == waiting / lanes_of_warp &&
           (t->call->mask & other_bit) &&
           (!(w->meeting & other_bit) || !is_same(running.threads[other].call, t->call));
}

static const char *name_of(int thread)
{
    static char text[64];
    const dim3 n = running.of->threads;
    const unsigned t = (unsigned)thread;
    std::snprintf(text, sizeof text, "thread (%u,%u,%u)", t % n.x, t / n.x % n.y,
                  t / n.x / n.y);
    return text;
}

static void explain(int waiting, int other)
{
    const char *doing, *other_doing;
    const place at = place_of(waiting, &doing);
    if (running.warps[other / lanes_of_warp].ended >> other % lanes_of_warp & 1)
        stop(waiting, at, "%s() waits for %s, which has ended", doing, name_of(other));
    const place other_at = place_of(other, &other_doing);
    stop(waiting, at, "%s() waits for %s, which waits in %s() at %s:%d", doing,
         name_of(other), other_doing, other_at.file, other_at.line);
}

void explain_deadlock()
{
    for (int t = 0; t < running.n_threads; t++) {
        if (running.warps[t / lanes_of_warp].ended >> t % lanes_of_warp & 1) continue;
        for (int other = 0; other < running.n_threads; other++)
            if (other != t && blocks(other, t)) explain(t, other);
    }
    stop(0, {"?", 0}, "nobody can go on, which is a defect of the emulator");
}

} // namespace emulated
