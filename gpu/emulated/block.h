/* block.h - the block that runs: its threads, who may go on, and who waits for whom.
 *
 * A thread runs until it has to wait; then the next one that can does: first those of the same warp,
 * in order, then the next warp's. Threads that never wait need no stacks of their own: they
 * run one after the other on one fiber. */
#pragma once

#include "gpu/emulated/fiber.h"
#include "gpu/emulated/kernel.h"

namespace emulated
{

const int most_threads = 1024, lanes_of_warp = 32;

struct thread {
    fiber *on;       /* since it began */
    lane_call *call; /* what it waits in, among its warp */
    place barrier;   /* where it waits for the block */
};

/* Bit i is lane i's. Each lane but the one that runs is in one of the sets. */
struct warp {
    unsigned fresh, ready, meeting, at_barrier, ended;
};

struct block {
    const grid *of;
    int n_threads, n_warps, n_ended, n_at_barrier;
    int thread; /* that runs */
    int warp;   /* that is looked at first for the next one */
    bool down;  /* threads, and blocks, begin with the last */
    struct warp warps[most_threads / lanes_of_warp];
    struct thread threads[most_threads];
};

extern block running;

/* Gives way; returns when the thread that calls may go on. */
void give_way();

/* Ends the program: nobody in the block can go on. */
[[noreturn]] void explain_deadlock();

/* Ends the program with the kernel, the block, a thread of it, its line, and the text. */
[[noreturn]] void stop(int thread, place at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- shared memory ---- */

void shared_begin_launch();
void shared_begin_block();

} // namespace emulated
