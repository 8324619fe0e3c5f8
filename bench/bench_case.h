/* bench_case.h - one collective on its data, as a work to be timed and checked.
 *
 * All cases of one type and size share a field: arrays of S bytes, in private memory (huge
 * pages) and in the node's window. An array may be cut into buckets of equal size, each with
 * its own collective.
 *
 * Before each run a rank writes its input anew, as a computation would, so the lines are dirty
 * in its caches. Element i of rank r's input is a small number that depends on both, so that
 * results can be checked: sums are exact, or nearly exact for 16-bit sums of many ranks. */
#pragma once

#include "base/arena.h"
#include "bench_sample.h"
#include "bench_variant.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "comm/window.h"

#define BENCH_PERIOD 4095 /* elements; odd: pieces, powers of two, differ */

typedef struct {
    zero_comm *comm; /* borrowed */
    zero_type type;
    int n_buckets;
    int64_t count;       /* elements of a piece of a bucket */
    size_t bytes;        /* S: of all buckets together; at least the bytes asked for */
    size_t bucket_bytes; /* S / n_buckets */
    zero_arena arena;
    zero_window window;          /* zeroed if no variant needs it */
    char *in, *out, *from, *to;  /* private; the last two for memcpy */
    float pattern[BENCH_PERIOD]; /* in `type` */
} bench_field;

/* Collective, the same verdict everywhere. */
zero_status bench_field_init(bench_field *field, zero_comm *comm, zero_type type,
                             size_t bytes, int n_buckets, bool needs_window);
void bench_field_destroy(bench_field *field); /* accepts a zeroed one */

/* Every rank copies S bytes: the work that all others are compared with. */
bench_work bench_copy(bench_field *field);

typedef struct {
    bench_field *field;           /* borrowed */
    const bench_variant *variant; /* borrowed */
    zero_collective op;
    zero_collective_spec spec;
    zero_arena staging;
    char *in, *out;
} bench_case;

/* Collective, the same verdict everywhere. `chunk`: bytes per message at most, or 0. */
zero_status bench_case_init(bench_case *c, bench_field *field, const bench_variant *variant,
                            int bucket, size_t chunk);
void bench_case_destroy(bench_case *c); /* accepts a zeroed one */

/* A bench_case as a work: prepare writes the input, run is begin and wait. */
bench_work bench_case_work(bench_case *c);
zero_status bench_case_prepare(void *bench_case);
zero_status bench_case_run(void *bench_case);

/* Collective: runs it once and compares every element. ZERO_ERR_DIVERGED, everywhere, if one
 * is wrong. */
zero_status bench_case_check(bench_case *c);
