/* test_emulated_kernels.h - launchers of small kernels that keep the rules, and of some that break
 * one. Pointers are the device's, unless a name says otherwise. */
#pragma once

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- emulated_right.cu: these keep the rules ---- */

/* x[n] *= factor */
void run_scale(cudaStream_t stream, int64_t n, float factor, float *x);
/* out[0] += 1 by one thread, `turns` times, so that a launch takes a while */
void run_count(cudaStream_t stream, int turns, float *out);
/* Each thread writes its number in the launch to out[], blocks and threads with three coordinates. */
void run_numbers(dim3 grid, dim3 block, int *out);
/* out[4][32]: what each lane gets by __shfl_sync, _up, _down and _xor of its lane, with `by` */
void run_shuffles(int by, int width, int *out);
/* The sum of 1..threads in each block, by shuffles, shared memory and a barrier; in double. */
void run_sums(int blocks, int threads, double *out);
/* out[32]: the votes of lanes 0-15 on even lanes, and of lanes 16-31 on odd ones */
void run_votes(unsigned *out);
/* out[n]: the 16-bit number of x, as fp32, by fp16 and by bf16 */
void run_round(int n, const float *x, float *fp16, float *bf16);
/* c[16,16] = factor * (a b + c): factors of 16 bits, bf16 or half, a and b by rows or by columns */
void run_tiles(bool bf16, bool a_by_rows, bool b_by_rows, const float *a, const float *b,
               float factor, float *c);

/* ---- emulated_wrong.cu: each breaks a rule ---- */

/* out[i] = in[i + 1], 0 at the end of each of two blocks of n, through shared memory; without a
 * barrier if `wrong`. */
void run_neighbours(bool wrong, int n, const float *in, float *out);
/* The same by one warp, and __syncwarp(). */
void run_neighbours_of_warp(bool wrong, const float *in, float *out);
/* out[64] = the sum of `turns` tiles; each is overwritten before all threads have read if `wrong`. */
void run_tile_sums(bool wrong, int turns, float *out);
void run_leaving_lane(float *out);    /* lane 5 leaves before a shuffle */
void run_leaving_thread(float *out);  /* thread 40 leaves before a barrier */
void run_different_lines(float *out); /* half of a warp shuffles in another line */
void run_different_barriers(void);    /* threads wait for the block in two lines */
void run_barrier_and_shuffle(float *out);
void run_outside_of_mask(float *out);     /* reads lane 16 with the mask of lanes 0-15 */
void run_not_in_mask(float *out);         /* lane 16 calls with that mask */
void run_short_warp(float *out);          /* a block of 8 threads, the mask of 32 */
void run_odd_width(int *out);             /* a shuffle with width 12 */
void run_out_of_range(int i, float *out); /* writes element i of a shared array of 64 */
void run_much_shared_memory(float *out);  /* 49 KiB */
void run_crooked_tile(float *c);          /* a tile 4 bytes away from where one can lie */
void run_write(float *at);                /* *at = 1 */

#ifdef __cplusplus
}
#endif
