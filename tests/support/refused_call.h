/* refused_call.h - system calls that the kernel refuses to this process from now on (seccomp).
 *
 * A file system that cannot do something, or a disk that fails, without a shim: whatever function
 * of libc makes the call. Needs no rights. There is no way back, so a test does this in a child. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

typedef struct {
    int call;             /* SYS_pwrite64 */
    int argument;         /* 0 to 5 */
    uint32_t mask, value; /* refused if the argument's lower half & mask == value */
    int error;            /* what the caller finds in errno */
} refused_call;

/* False if this kernel or container has no seccomp. */
static inline bool refuse_call(refused_call r)
{
    const uint32_t at =
        (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)r.argument);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r.call, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, r.mask),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r.value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)r.error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
