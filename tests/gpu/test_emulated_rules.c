/* Kernels that break a rule: the emulator shows each of them, by NaN or by a message that names the
 * kernel, the block, a thread and its line. */

#include "support/test.h"

#include "gpu/child.h"
#include "gpu/emulated/emulator.h"
#include "gpu/emulated/sanitizer_seen.h"
#include "gpu/test_emulated_kernels.h"

static float *room(void)
{
    void *memory;
    if (cudaMalloc(&memory, 4096) != cudaSuccess) abort();
    return memory;
}

/* ---- missing barriers give NaN, or other numbers ---- */

enum { block = 256 };

/* Of two blocks of 256 threads: how many results are wrong, with threads in the order. Both have the
 * same numbers, so what the first one left in shared memory would look right. */
static int wrong_neighbours(bool wrong, bool down)
{
    float host[2 * block], *in = room(), *out = room();
    int bad = 0;
    for (int i = 0; i < 2 * block; i++) host[i] = (float)(i % block + 1);
    zero_emulated_threads(down);
    assert_int_equal(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice),
                     cudaSuccess);
    run_neighbours(wrong, block, in, out);
    assert_int_equal(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    for (int i = 0; i < 2 * block; i++)
        bad += !(host[i] == ((i + 1) % block ? (float)(i % block + 2) : 0.0f));
    assert_int_equal(cudaFree(in) | cudaFree(out), 0);
    return bad;
}

/* The same of one warp. */
static int wrong_neighbours_of_warp(bool wrong, bool down)
{
    float host[32], *in = room(), *out = room();
    int bad = 0;
    for (int i = 0; i < 32; i++) host[i] = (float)(i + 1);
    zero_emulated_threads(down);
    assert_int_equal(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice),
                     cudaSuccess);
    run_neighbours_of_warp(wrong, in, out);
    assert_int_equal(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost),
                     cudaSuccess);
    for (int i = 0; i < 32; i++) bad += !(host[i] == (i + 1 < 32 ? (float)(i + 2) : 0.0f));
    assert_int_equal(cudaFree(in) | cudaFree(out), 0);
    return bad;
}

/* ---- messages ---- */

static void run_and_wait(void (*run)(float *out))
{
    run(room());
    cudaDeviceSynchronize();
}

static void leave_shuffle(void)
{
    run_and_wait(run_leaving_lane);
}

TEST(a_lane_that_leaves_before_a_shuffle_is_named)
{
    assert_child_ends(leave_shuffle, "ZERO_EMULATED_THREADS=up",
                      "kernel leaving_lane, block (0,0,0), thread (0,0,0)",
                      "emulated_wrong.cu:",
                      "__shfl_xor_sync() waits for thread (5,0,0), "
                      "which has ended",
                      NULL);
    assert_child_ends(leave_shuffle, "ZERO_EMULATED_THREADS=down",
                      "waits for thread (5,0,0), which has ended", NULL);
}

static void leave_barrier(void)
{
    run_and_wait(run_leaving_thread);
}

TEST(a_thread_that_leaves_before_a_barrier_is_named)
{
    assert_child_ends(leave_barrier, "ZERO_EMULATED_THREADS=down",
                      "kernel leaving_thread, block (1,0,0), thread (0,0,0)",
                      "emulated_wrong.cu:",
                      "__syncthreads() waits for thread (40,0,0), which has ended", NULL);
}

static void meet_in_two_lines(void)
{
    run_and_wait(run_different_lines);
}

TEST(lanes_that_wait_in_different_lines_are_named)
{
    assert_child_ends(meet_in_two_lines, NULL,
                      "kernel different_lines, block (0,0,0), thread (0,0,0)",
                      "__shfl_xor_sync() waits for thread (16,0,0), which waits in "
                      "__shfl_xor_sync() at ",
                      "emulated_wrong.cu:", NULL);
}

static void meet_at_two_barriers(void)
{
    run_different_barriers();
    cudaDeviceSynchronize();
}

TEST(barriers_in_different_lines_are_named)
{
    assert_child_ends(meet_at_two_barriers, NULL, "kernel different_barriers",
                      "__syncthreads() waits for thread (32,0,0), which waits in "
                      "__syncthreads() at ",
                      NULL);
}

static void mix_barriers(void)
{
    run_and_wait(run_barrier_and_shuffle);
}

TEST(a_barrier_within_a_shuffle_is_named)
{
    assert_child_ends(mix_barriers, NULL, "thread (0,0,0)",
                      "__syncthreads() waits for thread (8,0,0), which waits in "
                      "__shfl_down_sync() at ",
                      NULL);
}

static void read_outside(void)
{
    run_and_wait(run_outside_of_mask);
}

static void call_outside(void)
{
    run_and_wait(run_not_in_mask);
}

static void call_in_short_warp(void)
{
    run_and_wait(run_short_warp);
}

static void shuffle_by_odd_width(void)
{
    run_odd_width((int *)room());
    cudaDeviceSynchronize();
}

TEST(masks_are_checked)
{
    assert_child_ends(read_outside, NULL,
                      "kernel outside_of_mask, block (0,0,0), thread (0,0,0)",
                      "__shfl_sync(): reads lane 16, outside of its mask 0x0000ffff", NULL);
    assert_child_ends(call_outside, NULL, "thread (16,0,0)",
                      "its mask 0x0000ffff leaves out lane 16, which calls it", NULL);
    assert_child_ends(call_in_short_warp, NULL, "kernel short_warp",
                      "its mask 0xffffffff has lanes from 8, but this warp has 8 threads",
                      NULL);
    assert_child_ends(shuffle_by_odd_width, NULL, "the width is 12", NULL);
}

/* ---- memory ---- */

static void use_much(void)
{
    run_and_wait(run_much_shared_memory);
}

TEST(shared_memory_has_48_kib)
{
    assert_child_ends(use_much, NULL, "kernel much_shared_memory",
                      "emulated_wrong.cu:", "shared memory second needs 25600 bytes", NULL);
}

static void store_crooked_tile(void)
{
    run_and_wait(run_crooked_tile);
}

TEST(tiles_are_aligned)
{
    assert_child_ends(store_crooked_tile, NULL, "kernel crooked_tile",
                      "emulated_wrong.cu:", "store_matrix_sync()",
                      "not aligned to 32 bytes", NULL);
}

static void multiply_bf16(void)
{
    float *x = room();
    run_tiles(true, true, true, x, x, 1.0f, x);
    cudaDeviceSynchronize();
}

TEST(bf16_tiles_need_sm_80)
{
    assert_child_passes(multiply_bf16, "ZERO_EMULATED_SM=80");
    assert_child_ends(multiply_bf16, "ZERO_EMULATED_SM=75", "sm_75 has no products of bf16",
                      NULL);
}

static void write_past_the_end(void)
{
    run_out_of_range(64, room());
    cudaDeviceSynchronize();
}

static void write_before_the_beginning(void)
{
    run_out_of_range(-1, room());
    cudaDeviceSynchronize();
}

TEST(the_address_sanitizer_sees_the_ends_of_shared_arrays)
{
    if (!ZERO_ADDRESS_SANITIZER) skip();
    assert_child_ends(write_past_the_end, NULL, "use-after-poison",
                      "emulated_wrong.cu:", NULL);
    assert_child_ends(write_before_the_beginning, NULL, "use-after-poison", NULL);
}

static void write_past_a_piece(void)
{
    void *memory;
    child_assert(cudaMalloc(&memory, 4096) == cudaSuccess);
    run_write((float *)memory + 1024);
    cudaDeviceSynchronize();
}

TEST(a_kernel_faults_past_the_end_of_a_piece)
{
    assert_child_ends(write_past_a_piece, NULL, "emulator: kernel write_one",
                      "emulated_wrong.cu:", "thread (0,0,0) touches 0x", NULL);
}

/* Ascending threads read what nobody has written; descending ones hide the mistake. So every kernel
 * is tested in both orders. */
TEST(one_order_shows_a_missing_barrier)
{
    assert_int_equal(wrong_neighbours(false, false), 0);
    assert_int_equal(wrong_neighbours(false, true), 0);
    assert_int_equal(wrong_neighbours(true, false), 2 * (block - 1));
    assert_int_equal(wrong_neighbours(true, true), 0);
}

TEST(one_order_shows_a_missing_barrier_of_a_warp)
{
    assert_int_equal(wrong_neighbours_of_warp(false, false), 0);
    assert_int_equal(wrong_neighbours_of_warp(false, true), 0);
    assert_int_equal(wrong_neighbours_of_warp(true, false), 31);
    assert_int_equal(wrong_neighbours_of_warp(true, true), 0);
}

TEST(both_orders_show_a_tile_that_is_overwritten_early)
{
    for (int kind = 0; kind < 4; kind++) {
        const bool wrong = kind & 1;
        float host[64], *out = room();
        int bad = 0;
        zero_emulated_threads(kind & 2);
        run_tile_sums(wrong, 3, out);
        assert_int_equal(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost),
                         cudaSuccess);
        for (int i = 0; i < 64; i++) bad += host[i] != 64.0f * (1 + 2 + 3);
        assert_true(wrong ? bad > 0 : bad == 0);
        assert_int_equal(cudaFree(out), cudaSuccess);
    }
}
