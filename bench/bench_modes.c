#include "bench_modes.h"

#include "base/fail.h"

zero_status bench_each_field(const bench_run *run, int n_buckets, bench_field_mode *mode)
{
    const bench_options *o = run->options;
    for (int i = 0; i < o->n_types * o->n_sizes; i++) {
        bench_field field;
        ZERO_TRY(bench_field_init(&field, run->clock.comm, o->types[i / o->n_sizes],
                                  o->sizes[i % o->n_sizes], n_buckets, run->needs_window));
        zero_status st = mode(&field, run);
        bench_field_destroy(&field);
        ZERO_TRY(st);
    }
    return ZERO_OK;
}
