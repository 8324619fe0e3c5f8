#include <math.h>

#include "fuzz.h"
#include "report/machine_file.h"

static void check(const zero_machine_file *m)
{
    bool has_peak = false;
    FUZZ_LAW(m->name[0] && m->about[0] && m->source[0] && m->date[0] && m->fit[0]);
    FUZZ_LAW(m->devices >= 1.0 && m->devices == floor(m->devices));
    FUZZ_LAW(m->memory >= 1.0 && m->memory_bandwidth >= 1.0 && m->host >= 1.0);
    FUZZ_LAW(m->share > 0.0 && m->share <= 1.0 && m->tokens >= 0.0);
    FUZZ_LAW(m->unaligned_every >= 1.0 && m->unaligned_share > 0.0);
    FUZZ_LAW(m->inside.latency >= 0.0 && m->inside.bandwidth >= 1.0);
    FUZZ_LAW(m->between.latency >= 0.0 && m->between.bandwidth >= 1.0);
    for (int t = 0; t < ZERO_TYPES; t++) {
        FUZZ_LAW(m->peak[t] >= 0.0 && isfinite(m->peak[t]));
        has_peak = has_peak || m->peak[t] > 0.0;
    }
    FUZZ_LAW(has_peak);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_machine_file machine;
    zero_status st =
        zero_machine_file_parse("f.machine", (const char *)data, size, &machine);
    FUZZ_LAW(st == ZERO_OK || st == ZERO_ERR_INVALID);
    fuzz_check_refusal(st);
    if (st == ZERO_OK) check(&machine);
    return 0;
}
