#include <stdbool.h>
#include <stddef.h>

#include "base/cpu_level.h"
#include "math/blas.h"
#include "math/cpu_bgemm.h"
#include "math/cpu_panel.h"

extern const zero_panel_kernels zero_cpu_panel_base;

typedef struct {
    const zero_panel_kernels *kernels;
    bool (*runs_here)(void);
} variant;

#ifdef ZERO_KERNELS_X86
extern const zero_panel_kernels zero_cpu_panel_v3, zero_cpu_panel_v4;

static const variant variants[ZERO_PANEL_VARIANTS] = {
    {&zero_cpu_panel_v4, zero_cpu_runs_v4},
    {&zero_cpu_panel_v3, zero_cpu_runs_v3},
    {&zero_cpu_panel_base, zero_cpu_runs_any},
};
#else
static const variant variants[] = {{&zero_cpu_panel_base, zero_cpu_runs_any}};
#endif

int zero_panels_list(const zero_panel_kernels *list[ZERO_PANEL_VARIANTS])
{
    int n = 0;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        if (variants[i].runs_here()) list[n++] = variants[i].kernels;
    return n;
}

const zero_panel_kernels *zero_panels_best(void)
{
    const zero_panel_kernels *list[ZERO_PANEL_VARIANTS];
    zero_panels_list(list);
    return list[0];
}

const zero_packed_kernels *zero_packed_fp32(void)
{
    const zero_panel_kernels *best = zero_panels_best();
    return best->beats_blas && zero_blas_threads() <= 1 ? &best->packed : NULL;
}

#ifdef ZERO_BGEMM_X86
#include <sys/syscall.h>
#include <unistd.h>

extern const zero_packed_kernels zero_bgemm_amx, zero_bgemm_avx512;

/* Linux keeps 8 KiB of tiles for a process only if it asks (5.16 and later; asm/prctl.h). */
static bool amx_is_granted(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static int list_bf16(const zero_packed_kernels **list)
{
    int n = 0;
    if (!zero_cpu_runs_bf16()) return 0;
    if (zero_cpu_has_amx() && amx_is_granted()) list[n++] = &zero_bgemm_amx;
    list[n++] = &zero_bgemm_avx512;
    return n;
}

/* CPUs with AMX do one vdpbf16ps in two cycles, half of what two fp32 fma's do: there it is
 * AMX or fp32. CPUs without it (Zen 4, ...) do twice as much as in fp32. */
const zero_packed_kernels *zero_packed_bf16(void)
{
    if (!zero_cpu_runs_bf16()) return NULL;
    if (!zero_cpu_has_amx()) return &zero_bgemm_avx512;
    return amx_is_granted() ? &zero_bgemm_amx : NULL;
}
#else
static int list_bf16(const zero_packed_kernels **list)
{
    (void)list;
    return 0;
}

const zero_packed_kernels *zero_packed_bf16(void)
{
    return NULL;
}
#endif

int zero_packed_list(const zero_packed_kernels *list[ZERO_PACKED_VARIANTS])
{
    const zero_panel_kernels *panels[ZERO_PANEL_VARIANTS];
    int n = list_bf16(list), n_panels = zero_panels_list(panels);
    for (int i = 0; i < n_panels; i++) list[n++] = &panels[i]->packed;
    return n;
}

static const char *name_of(const zero_packed_kernels *kernels)
{
    return kernels ? kernels->name : NULL;
}

const char *zero_cpu_fp32_name(void)
{
    return name_of(zero_packed_fp32());
}

const char *zero_cpu_bf16_name(void)
{
    return name_of(zero_packed_bf16());
}
