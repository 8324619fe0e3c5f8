/* collective_api.h - tests of zero/collective.h: a world around them, numbers of every type, and
 * values whose reductions are exact. */
#pragma once

#include "support/mpi_cmocka.h"

#include "zero/collective.h"

static zero_comm *world;

static void open_world(int *argc, char ***argv)
{
    int provided; /* assert_all() calls MPI */
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    test_begin(argc, argv);
    assert_ok(zero_world_open(20.0, &world));
}

static int close_world(int failed)
{
    return zero_world_close(&world) == ZERO_OK ? test_end(failed) : 1;
}

__attribute__((constructor)) static void test_has_world(void)
{
    around.begin = open_world;
    around.end = close_world;
}

static void put(zero_number number, void *data, int64_t i, double x)
{
    float narrow = (float)x;
    char *at = (char *)data + (size_t)i * zero_number_size(number);
    switch (number) {
    case ZERO_NUMBER_FP64: memcpy(at, &x, 8); break;
    case ZERO_NUMBER_INT8: *(int8_t *)at = (int8_t)x; break;
    case ZERO_NUMBER_UINT8: *(uint8_t *)at = (uint8_t)x; break;
    case ZERO_NUMBER_INT16: *(int16_t *)at = (int16_t)x; break;
    case ZERO_NUMBER_INT32: *(int32_t *)at = (int32_t)x; break;
    case ZERO_NUMBER_INT64: *(int64_t *)at = (int64_t)x; break;
    default: zero_convert(ZERO_FP32, (zero_type)number, 1, &narrow, at);
    }
}

/* What rank r has at element i: exact in all types, and so are all reductions but means, whose
 * sums are not exact in 16 bits. */
static double value(zero_reduction reduction, int rank, int64_t i)
{
    if (reduction == ZERO_PRODUCT) return (double)((rank + i) % 2 + 1);
    if (reduction == ZERO_MEAN) return (double)((rank * 37 + i * 3 + i / 11) % 251);
    return (double)((rank * 7 + i * 3 + i / 11) % 9);
}

static double expected(zero_reduction reduction, zero_number number, int n, int64_t i)
{
    double all = value(reduction, 0, i);
    for (int r = 1; r < n; r++) {
        double x = value(reduction, r, i);
        switch (reduction) {
        case ZERO_SUM:
        case ZERO_MEAN: all += x; break;
        case ZERO_PRODUCT: all *= x; break;
        case ZERO_LEAST: all = fmin(all, x); break;
        case ZERO_GREATEST: all = fmax(all, x); break;
        case ZERO_AND: all = (double)((int)all & (int)x); break;
        case ZERO_OR: all = (double)((int)all | (int)x); break;
        case ZERO_XOR: all = (double)((int)all ^ (int)x); break;
        }
    }
    if (reduction != ZERO_MEAN) return all;
    return number == ZERO_NUMBER_FP64 ? all / n : (double)((float)all / (float)n);
}

/* The number of wrong elements of data[count], which is a reduction from element `first` on. */
static int64_t wrong(zero_reduction reduction, zero_number number, int n, int64_t first,
                     int64_t count, const void *data)
{
    const size_t size = zero_number_size(number);
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        char want[8];
        put(number, want, 0, expected(reduction, number, n, first + i));
        bad += memcmp(want, (const char *)data + (size_t)i * size, size) != 0;
    }
    return bad;
}

static void *filled(zero_reduction reduction, zero_number number, int rank, int64_t count)
{
    char *data = malloc((size_t)count * zero_number_size(number) + 8);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) put(number, data, i, value(reduction, rank, i));
    memset(data + (size_t)count * zero_number_size(number), 0x5a, 8);
    return data;
}

static void end(zero_work *work)
{
    bool done = false;
    assert_ok(zero_work_wait(work, 0.0, &done));
    assert_true(done);
    zero_work_close(&work);
}
