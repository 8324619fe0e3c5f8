#include "math/backends.h"

#include "math/cpu_kernels.h"
#include "math/cpu_panel.h"

static const zero_backend *const backends[] = {&zero_backend_cpu, &zero_backend_naive};
#define BACKENDS ZERO_COUNT(backends)

zero_status zero_backend_find(const char *name, const zero_backend **found)
{
    char choice[512];
    for (int i = 0; i < BACKENDS; i++) {
        if (!zero_same_text(backends[i]->name, name)) continue;
        *found = backends[i];
        return ZERO_OK;
    }
    /* "'cpu' (fast) or 'naive' (...)" */
    size_t size = sizeof choice;
    size_t at = 0;
    for (int i = 0; i < BACKENDS && at < size; i++)
        at += (size_t)snprintf(choice + at, size - at, "%s'%s' (%s)",
                               i == 0              ? ""
                               : i == BACKENDS - 1 ? " or "
                                                   : ", ",
                               backends[i]->name, backends[i]->about);
    return zero_fail(ZERO_ERR_INVALID, "there is no backend '%s' in this build; choose %s",
                     name, choice);
}

bool zero_bits_find(const char *name, zero_bits *bits)
{
    static const char *const names[ZERO_BITS] = {"auto", "portable", "fastest"};
    int i = 0;
    while (i < ZERO_BITS && !zero_same_text(names[i], name)) i++;
    *bits = (zero_bits)i;
    return i < ZERO_BITS;
}

const char *zero_backend_name_at(int i)
{
    return i < BACKENDS ? backends[i]->name : NULL;
}

int64_t zero_attention_workspace(const zero_attention *a)
{
    int64_t most = 0;
    for (int i = 0; i < BACKENDS; i++)
        most = zero_max(most, backends[i]->attention_workspace(a));
    return most;
}

const char *zero_cpu_kernels_name(void)
{
    return zero_cpu_kernels_at(0)->name;
}

const char *zero_cpu_fp32_name(void)
{
    return zero_panels_at(0)->packed.name;
}

const char *zero_cpu_bf16_name(void)
{
    const zero_packed_kernels *kernels = zero_packed_bf16();
    return kernels ? kernels->name : NULL;
}
