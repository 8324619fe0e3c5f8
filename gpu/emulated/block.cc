/* block.cc - who runs next. */
#include "gpu/emulated/block.h"
#include "gpu/emulated/device.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emulated
{

block running;

static fiber host, *idle;
static const int nobody = -1;

/* ---- threads ---- */

static unsigned bit_of(int thread)
{
    return 1u << thread % lanes_of_warp;
}

static struct warp *warp_of(int thread)
{
    return &running.warps[thread / lanes_of_warp];
}

static bool is_fresh(int thread)
{
    return warp_of(thread)->fresh & bit_of(thread);
}

static int lane_in_order(unsigned lanes)
{
    return running.down ? 31 - __builtin_clz(lanes) : __builtin_ctz(lanes);
}

static int warp_after(int warp)
{
    const int n = running.n_warps;
    return running.down ? (warp + n - 1) % n : (warp + 1) % n;
}

/* The thread that runs next, or nobody. */
static int choose()
{
    int w = running.warp;
    for (int i = 0; i < running.n_warps; i++, w = warp_after(w)) {
        const unsigned lanes = running.warps[w].ready | running.warps[w].fresh;
        if (lanes) return w * lanes_of_warp + lane_in_order(lanes);
    }
    return nobody;
}

/* From here on `thread` runs. */
static void become(int thread)
{
    const unsigned x = running.of->threads.x, y = running.of->threads.y;
    const unsigned t = (unsigned)thread;
    warp_of(thread)->ready &= ~bit_of(thread);
    warp_of(thread)->fresh &= ~bit_of(thread);
    running.thread = thread;
    running.warp = thread / lanes_of_warp;
    threadIdx = t < x ? uint3{t, 0, 0} : uint3{t % x, t / x % y, t / x / y};
}

/* ---- fibers ---- */

static void run_threads(fiber *self);

static fiber *take_idle()
{
    fiber *f = idle;
    if (!f) return fiber_create(run_threads);
    idle = f->next;
    return f;
}

/* The next thread goes on, on its own fiber or, when it begins, on an idle one. */
static void pass_on(fiber *self)
{
    const int next = choose();
    if (next == nobody) {
        if (running.n_ended < running.n_threads) explain_deadlock();
        fiber_switch(self, &host);
    } else if (is_fresh(next)) {
        fiber_switch(self, take_idle());
    } else if (running.threads[next].on != self) {
        fiber_switch(self, running.threads[next].on);
    }
}

/* A fiber's life: it runs threads from their beginning as long as one of them is next. */
static void run_threads(fiber *self)
{
    for (;;) {
        int next = choose();
        for (; next != nobody && is_fresh(next); next = choose()) {
            running.threads[next].on = self;
            become(next);
            running.of->run_thread();
            warp_of(running.thread)->ended |= bit_of(running.thread);
            running.n_ended++;
        }
        self->next = idle;
        idle = self;
        pass_on(self);
    }
}

void give_way()
{
    const int me = running.thread;
    pass_on(running.threads[me].on);
    become(me);
}

/* ---- blocks ---- */

static void begin_block()
{
    const int n = running.n_threads;
    running.n_ended = running.n_at_barrier = 0;
    running.warp = running.down ? running.n_warps - 1 : 0;
    for (int w = 0; w < running.n_warps; w++) {
        const int lanes = n - w * lanes_of_warp;
        running.warps[w] = {};
        running.warps[w].fresh = lanes < 32 ? (1u << lanes) - 1 : 0xffffffff;
    }
}

static void begin_grid(const grid *of)
{
    running.of = of;
    running.down = the_machine()->set.down;
    running.n_threads = (int)(of->threads.x * of->threads.y * of->threads.z);
    running.n_warps = (running.n_threads + lanes_of_warp - 1) / lanes_of_warp;
    blockDim = of->threads;
    gridDim = of->blocks;
    shared_begin_launch();
}

void grid::execute()
{
    const uint64_t x = blocks.x, y = blocks.y, n = x * y * blocks.z;
    begin_grid(this);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t b = running.down ? n - 1 - i : i;
        blockIdx = {(unsigned)(b % x), (unsigned)(b / x % y), (unsigned)(b / x / y)};
        begin_block();
        shared_begin_block();
        fiber_switch(&host, take_idle());
    }
    running.of = nullptr;
}

} // namespace emulated
