/* cpu_packed_dispatch.c - the kernels of products: which this CPU runs, and which are worth
 * it. */

#include "base/cpu_level.h"
#include "math/blas.h"
#include "math/cpu_panel.h"

extern const zero_panel_kernels zero_cpu_panel_base;

#ifdef ZERO_KERNEL_LEVELS
extern const zero_panel_kernels zero_cpu_panel_v3, zero_cpu_panel_v4;

static const zero_panel_kernels *const levels[] = {
    [ZERO_CPU_BASE] = &zero_cpu_panel_base,
    [ZERO_CPU_V3] = &zero_cpu_panel_v3,
    [ZERO_CPU_V4] = &zero_cpu_panel_v4,
};
#else
static const zero_panel_kernels *const levels[] = {&zero_cpu_panel_base};
#endif
#define LEVELS ZERO_COUNT(levels)

const zero_panel_kernels *zero_panels_at(int i)
{
    int level = zero_cpu_best_level(LEVELS) - i;
    return level >= 0 ? levels[level] : NULL;
}

const zero_packed_kernels *zero_packed_fp32(void)
{
    const zero_panel_kernels *best = zero_panels_at(0);
    return best->beats_blas && zero_blas_threads() <= 1 ? &best->packed : NULL;
}

#ifdef ZERO_BGEMM_X86
#include <sys/syscall.h>
#include <unistd.h>

extern const zero_packed_kernels zero_bgemm_amx, zero_bgemm_avx512;

static const zero_packed_kernels *const bf16[ZERO_PACKED_BF16] = {&zero_bgemm_amx,
                                                                  &zero_bgemm_avx512};

/* Linux (5.16 and later; asm/prctl.h) reserves the 8 KiB of tile registers on request
 * only. */
static bool amx_is_granted(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* The best that runs here; ZERO_PACKED_BF16 if none does. */
static int first_bf16(void)
{
    if (zero_cpu_runs(ZERO_CPU_AMX) && amx_is_granted()) return 0;
    return zero_cpu_runs(ZERO_CPU_BF16) ? 1 : ZERO_PACKED_BF16;
}
#else
static const zero_packed_kernels *const bf16[ZERO_PACKED_BF16] = {NULL};

static int first_bf16(void)
{
    return ZERO_PACKED_BF16;
}
#endif

const zero_packed_kernels *zero_packed_bf16_at(int i)
{
    return first_bf16() <= i && i < ZERO_PACKED_BF16 ? bf16[i] : NULL;
}

const zero_packed_kernels *zero_packed_bf16(void)
{
    const int i = first_bf16();
    return i < ZERO_PACKED_BF16 ? bf16[i] : NULL;
}

const zero_packed_kernels *zero_packed_at(int i)
{
    i += first_bf16();
    if (i < ZERO_PACKED_BF16) return bf16[i];
    i -= ZERO_PACKED_BF16;
    const zero_panel_kernels *panels = zero_panels_at(i);
    return panels && (i == 0 || zero_panels_at(i + 1)) ? &panels->packed : NULL;
}
