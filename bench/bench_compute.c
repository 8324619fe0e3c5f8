#include "bench_compute.h"

#include <math.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/collective.h"

#define LANES        64
#define TURNS        4000 /* of the loop in a unit: about 20 us, the finest gap */
#define UNITS        2000 /* in a calibration */
#define CALIBRATIONS 5

/* The loop fits registers and the first cache, and takes only the core from communication. */
static void compute_unit(void)
{
    float x[LANES];
    for (int i = 0; i < LANES; i++) x[i] = (float)i;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < LANES; i++) x[i] = x[i] * 0.999f + 0.5f;
    volatile float kept = x[TURNS % LANES];
    (void)kept;
}

static zero_status compute_units(zero_comm *comm, int64_t units, double gap)
{
    double last = zero_clock_seconds();
    for (int64_t i = 0; i < units; i++) {
        compute_unit();
        if (gap < 0.0 || zero_clock_seconds() - last < gap) continue;
        ZERO_TRY(zero_collective_poll(comm));
        last = zero_clock_seconds();
    }
    return ZERO_OK;
}

static zero_status calibrate(void *arg)
{
    return compute_units(arg, UNITS, BENCH_NO_POLL);
}

zero_status bench_computer_init(bench_computer *computer, zero_comm *comm)
{
    bench_clock clock = {.comm = comm, .rounds = CALIBRATIONS};
    bench_work work = {NULL, calibrate, comm};
    bench_series series;
    ZERO_TRY(zero_agree(comm, bench_series_init(&series, &clock, 1)));
    zero_status st = ZERO_OK;
    while (st == ZERO_OK && bench_series_wants_more(&series))
        st = bench_series_add(&series, &clock, &work, 1);
    *computer = (bench_computer){comm, bench_seconds(&series, 0) / UNITS};
    bench_series_destroy(&series);
    return st;
}

zero_status bench_compute(const bench_computer *computer, double seconds, double gap)
{
    return compute_units(computer->comm, llround(seconds / computer->unit_seconds), gap);
}
