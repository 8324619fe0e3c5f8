/* fiber.cc - how the processor changes stacks, on x86-64 and on ARM. */
#include "gpu/emulated/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "gpu/emulated/sanitizer.h"

/* void zero_emulated_switch(void **left, void *to): pushes what a called function has to keep, stores
 * the stack pointer in *left, takes the other one, and pops. A fresh stack looks as if it had been
 * left at the entry of enter(). */
#if defined(__x86_64__)
asm(R"(
    .text
    .hidden zero_emulated_switch
    .globl zero_emulated_switch
    .type zero_emulated_switch, @function
zero_emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size zero_emulated_switch, . - zero_emulated_switch
)");
/* Six registers, the entry, and a zero in the place of a caller: at its entry a function expects a
 * stack pointer that is 8 modulo 16. */
static const int saved_words = 8, entry_word = 6;
#elif defined(__aarch64__)
asm(R"(
    .text
    .hidden zero_emulated_switch
    .globl zero_emulated_switch
    .type zero_emulated_switch, %function
zero_emulated_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size zero_emulated_switch, . - zero_emulated_switch
)");
static const int saved_words = 20, entry_word = 11;
#else
#error "the emulator switches stacks on x86-64 and aarch64; configure with -DZERO_TESTS=OFF"
#endif

extern "C" __attribute__((visibility("hidden"))) void zero_emulated_switch(void **left,
                                                                           void *to);

namespace emulated
{

/* The address sanitizer makes frames several times larger. */
static const std::size_t stack_bytes = ZERO_ADDRESS_SANITIZER ? 512 << 10 : 128 << 10;

/* Whoever is switched to announces where it came from, which is the only way to learn the host's
 * stack, and what to call in a fresh fiber. */
static fiber *left, *entered;

static void arrive(void *kept)
{
    sanitizer_arrived(kept, &left->stack, &left->bytes);
}

static void enter()
{
    fiber *self = entered;
    arrive(nullptr);
    self->body(self);
    std::abort();
}

fiber *fiber_create(void (*body)(fiber *self))
{
    const std::size_t page = (std::size_t)sysconf(_SC_PAGESIZE);
    void *mapped = mmap(nullptr, page + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED || mprotect(mapped, page, PROT_NONE) != 0) {
        std::perror("emulator: no memory for the stack of a thread");
        std::abort();
    }
    char *lowest = (char *)mapped + page;
    void **top = (void **)(void *)(lowest + stack_bytes);
    top[entry_word - saved_words] = (void *)enter;
    return new fiber{top - saved_words, lowest, stack_bytes, nullptr, nullptr, body};
}

void fiber_switch(fiber *from, fiber *to)
{
    left = from, entered = to;
    sanitizer_leaves(&from->sanitizer, to->stack, to->bytes);
    zero_emulated_switch(&from->stack_pointer, to->stack_pointer);
    arrive(from->sanitizer);
}

} // namespace emulated
