#include <stdbool.h>
#include <stddef.h>

#include "base/cpu_level.h"
#include "math/cpu_bgemm.h"

#ifdef ZERO_BGEMM_X86
#include <sys/syscall.h>
#include <unistd.h>

extern const zero_bgemm_kernels zero_bgemm_amx, zero_bgemm_avx512;

/* Linux keeps 8 KiB of tiles for a process only if it asks (5.16 and later; asm/prctl.h). */
static bool amx_is_granted(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

int zero_bgemm_list(const zero_bgemm_kernels *list[ZERO_BGEMM_VARIANTS])
{
    int n = 0;
    if (!zero_cpu_runs_bf16()) return 0;
    if (zero_cpu_has_amx() && amx_is_granted()) list[n++] = &zero_bgemm_amx;
    list[n++] = &zero_bgemm_avx512;
    return n;
}

/* CPUs with AMX do one vdpbf16ps in two cycles, half of what two fp32 fma's do: there it is
 * AMX or sgemm. CPUs without it (Zen 4, ...) do twice as much as in fp32. */
const zero_bgemm_kernels *zero_bgemm_best(void)
{
    if (!zero_cpu_runs_bf16()) return NULL;
    if (!zero_cpu_has_amx()) return &zero_bgemm_avx512;
    return amx_is_granted() ? &zero_bgemm_amx : NULL;
}
#else
int zero_bgemm_list(const zero_bgemm_kernels *list[ZERO_BGEMM_VARIANTS])
{
    (void)list;
    return 0;
}

const zero_bgemm_kernels *zero_bgemm_best(void)
{
    return NULL;
}
#endif

const char *zero_cpu_bf16_name(void)
{
    const zero_bgemm_kernels *best = zero_bgemm_best();
    return best ? best->name : NULL;
}
