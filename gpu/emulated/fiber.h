/* fiber.h - stacks that take turns on one processor. Each thread of a block that has to wait keeps
 * one; the host is a fiber too, whose stack is the caller's. */
#pragma once

#include <cstddef>

namespace emulated
{

struct fiber {
    void *stack_pointer; /* where it was left */
    const void *stack;   /* its lowest byte, as the address sanitizer is told */
    std::size_t bytes;
    void *sanitizer; /* what that keeps of a fiber that was left */
    fiber *next;     /* in a list of its owner */
    void (*body)(fiber *self);
};

/* Maps a stack with a guard page. The first switch to the fiber calls body(it), which must not
 * return. Ends the program if there is no memory. */
fiber *fiber_create(void (*body)(fiber *self));

/* Leaves `from`, which has to be the one that runs; returns when somebody switches to it again. */
void fiber_switch(fiber *from, fiber *to);

} // namespace emulated
