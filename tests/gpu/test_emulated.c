/* Each word of the kernels' dialect, on the emulator, in both orders of threads. */

#define TEST_HAS_MAIN
#include "support/test.h"

#include "base/half.h"
#include "gpu/emulated/emulator.h"
#include "gpu/test_emulated_kernels.h"

static void *room(size_t bytes)
{
    void *memory;
    assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

static void *store(const void *host, size_t bytes)
{
    void *memory = room(bytes);
    assert_int_equal(cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    return memory;
}

static void fetch(void *host, void *memory, size_t bytes)
{
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaMemcpy(host, memory, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

/* ---- places ---- */

static void every_thread_of_every_block_runs_once(void **state)
{
    (void)state;
    static const dim3 grids[] = {{1, 1, 1}, {7, 1, 1}, {3, 2, 4}};
    static const dim3 blocks[] = {
        {1, 1, 1}, {33, 1, 1}, {5, 3, 2}, {1024, 1, 1}, {8, 8, 8}};
    int host[24 * 1024];
    for (int i = 0; i < 15; i++) {
        const dim3 g = grids[i / 5], b = blocks[i % 5];
        const unsigned n = g.x * g.y * g.z * b.x * b.y * b.z;
        int *memory = room(n * sizeof *memory);
        run_numbers(g, b, memory);
        fetch(host, memory, n * sizeof *host);
        for (unsigned j = 0; j < n; j++) assert_int_equal(host[j], (int)j);
    }
}

/* ---- warps ---- */

/* The lane that a lane reads, by the text of CUDA's manual. */
static int shuffle_source(int kind, int lane, int by, int width)
{
    const int first = lane / width * width, last = first + width - 1;
    if (kind == 0) return first + by % width;
    if (kind == 1) return lane - by >= first ? lane - by : lane;
    if (kind == 2) return lane + by <= last ? lane + by : lane;
    return (lane ^ by) <= last ? lane ^ by : lane;
}

static void shuffles_read_the_lanes_of_the_manual(void **state)
{
    (void)state;
    int host[4][32];
    for (int width = 1; width <= 32; width *= 2)
        for (int by = 0; by < 32; by++) {
            int *memory = room(sizeof host);
            run_shuffles(by, width, memory);
            fetch(host, memory, sizeof host);
            for (int i = 0; i < 128; i++)
                assert_int_equal(host[i / 32][i % 32],
                                 shuffle_source(i / 32, i % 32, by, width));
        }
}

static void warps_add_through_shared_memory(void **state)
{
    (void)state;
    double host[9];
    for (int threads = 32; threads <= 1024; threads *= 2) {
        double *memory = room(sizeof host);
        run_sums(9, threads, memory);
        fetch(host, memory, sizeof host);
        for (int i = 0; i < 9; i++) assert_true(host[i] == threads * (threads + 1) / 2);
    }
}

static void parts_of_a_warp_meet_on_their_own(void **state)
{
    (void)state;
    unsigned host[32];
    unsigned *memory = room(sizeof host);
    run_votes(memory);
    fetch(host, memory, sizeof host);
    for (int i = 0; i < 32; i++)
        assert_int_equal(host[i], i < 16 ? 0x00005555u : 0xaaaa0000u);
}

/* ---- 16 bits ---- */

/* The library's own rounding, but for fp32 denormals, which a GPU keeps when it makes bf16. */
static void sixteen_bits_are_rounded_to_even(void **state)
{
    (void)state;
    enum { n = 40000 };
    static float x[n], half[n], bf16[n];
    for (int i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)i * 2654435761u;
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (int i = 0; i < 4096; i++) x[i] = ldexpf((float)(2 * i + 1), -25 + i % 3);
    float *on_device = store(x, sizeof x), *to_half = room(sizeof x),
          *to_bf16 = room(sizeof x);
    run_round(n, on_device, to_half, to_bf16);
    fetch(half, to_half, sizeof x);
    fetch(bf16, to_bf16, sizeof x);
    fetch(x, on_device, sizeof x);
    for (int i = 0; i < n; i++) {
        if (isnan(x[i])) {
            assert_true(isnan(half[i]) && isnan(bf16[i]));
            continue;
        }
        assert_true(half[i] == zero_from_fp16(zero_to_fp16(x[i])));
        assert_true(fpclassify(x[i]) == FP_SUBNORMAL
                        ? fabsf(bf16[i] - x[i]) <= 0x1p-134f
                        : bf16[i] == zero_from_bf16(zero_to_bf16(x[i])));
    }
}

/* ---- tiles ---- */

static float at(const float *x, bool by_rows, int row, int col)
{
    return by_rows ? x[16 * row + col] : x[16 * col + row];
}

/* The factors have few bits, so every order of a sum has the same result. */
static void tiles_are_multiplied(void **state)
{
    (void)state;
    float a[256], b[256], c[256], host[256];
    for (int i = 0; i < 256; i++) {
        a[i] = (float)(i * 7 % 31 - 15);
        b[i] = (float)(i * 5 % 29 - 14);
        c[i] = (float)(i % 23);
    }
    for (int kind = 0; kind < 8; kind++) {
        const bool a_by_rows = kind & 1, b_by_rows = kind & 2;
        float *on_device = store(c, sizeof c), *left = store(a, sizeof a);
        float *right = store(b, sizeof b);
        run_tiles(kind & 4, a_by_rows, b_by_rows, left, right, 0.5f, on_device);
        fetch(host, on_device, sizeof host);
        for (int i = 0; i < 256; i++) {
            float sum = at(c, false, i / 16, i % 16);
            for (int k = 0; k < 16; k++)
                sum += at(a, a_by_rows, i / 16, k) * at(b, b_by_rows, k, i % 16);
            assert_true(host[i] == 0.5f * sum);
        }
        fetch(host, left, sizeof host);
        fetch(host, right, sizeof host);
    }
}

/* ---- both orders ---- */

static int threads_ascend(void **state)
{
    (void)state;
    zero_emulated_threads(false);
    return 0;
}

static int threads_descend(void **state)
{
    (void)state;
    zero_emulated_threads(true);
    return 0;
}

#define TESTS \
    cmocka_unit_test(every_thread_of_every_block_runs_once), \
        cmocka_unit_test(shuffles_read_the_lanes_of_the_manual), \
        cmocka_unit_test(warps_add_through_shared_memory), \
        cmocka_unit_test(parts_of_a_warp_meet_on_their_own), \
        cmocka_unit_test(sixteen_bits_are_rounded_to_even), \
        cmocka_unit_test(tiles_are_multiplied)

int main(void)
{
    const struct CMUnitTest tests[] = {TESTS};
    return cmocka_run_group_tests_name("threads ascend", tests, threads_ascend, NULL) +
           cmocka_run_group_tests_name("threads descend", tests, threads_descend, NULL);
}
