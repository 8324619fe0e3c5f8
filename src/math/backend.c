#include "math/backend.h"

#include <string.h>

#include "base/fail.h"
#include "math/cpu.h"

static const zero_backend *const built_in[] = {&zero_backend_cpu, &zero_backend_naive};

zero_status zero_backend_find(const char *name, const zero_backend **found)
{
    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++) {
        if (strcmp(built_in[i]->name, name) != 0) continue;
        *found = built_in[i];
        return ZERO_OK;
    }
    return zero_fail(
        ZERO_ERR_INVALID,
        "there is no backend '%s' in this build; choose 'cpu' (fast) or 'naive' "
        "(plain loops, for checking)",
        name);
}

int64_t zero_attention_workspace(const zero_attention *s)
{
    int64_t cpu = zero_cpu_attention_workspace(s), naive = 3 * s->T;
    return cpu > naive ? cpu : naive;
}

int64_t zero_math_scratch(void)
{
    return ZERO_TILE_N * ZERO_TILE_K;
}
