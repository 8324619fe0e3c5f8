/* cpu_head.h - one head of attention, for its forward and its backward pass: factors packed
 * in panels (cpu_packed.h), products of them, and scores.
 *
 *          keys 0 ........ first + rows
 *   first   | P P P P P P .        a panel of queries meets the panels of keys up to its
 *   + rows  | P P P P P P P        diagonal; scores above the diagonal are zero
 *
 * Nothing is as large as T x T: forward holds the scores of one panel of queries at a time,
 * backward those of one block of panels. Sums run along channels, keys or queries in order,
 * in backward block by block and head by head of a key head: bits depend on T, D and H/K
 * alone. */
#pragma once

#include "math/cpu_state.h"

/* Queries of a block, at most: backward holds the scores of one. */
#define ZERO_HEAD_BLOCK 64

_Static_assert(ZERO_SCORE_ROWS >= ZERO_PANEL_ROWS, "a panel of queries fits the scores");

#define ZERO_HEAD_LINE 16 /* floats of a cache line */

/* The stride of scores: whole panels of keys, and of queries on the diagonal. It is never a
 * power of two, which would put all rows into the same lines of L1. */
static inline int64_t zero_head_stride(int64_t T)
{
    return zero_round_up(T, ZERO_PANEL_COLS) + ZERO_HEAD_LINE;
}

typedef struct {
    const zero_math *math;
    const zero_attention *a;
    const zero_cpu_kernels *kernels;
    /* for products in fp32 the packed ones of `panels` */
    const zero_packed_kernels *packed;
    const zero_panel_kernels *panels; /* NULL: products are in bf16 */
    int64_t b, h, k;                  /* k: the key head of h */
    int64_t rows, block;              /* queries of a panel, and of a block */
    int64_t size, width;              /* D, and D rounded up to whole panels */
    int64_t stride;                   /* from row to row of scores */
    float scale;                      /* of scores: 1/sqrt(D) */
    float scale_base2; /* scale * log2(e), for queries: softmax takes powers of 2 */
    void *left;        /* in bf16: one packed panel of a product's left factor */
} zero_head;

/* Position t of this head: of q or dq with head->h, of keys and values with head->k; and in
 * out[B,T,H,D] and dout. */
void *zero_head_row(const zero_head *head, const zero_heads *x, int64_t h, int64_t t);
void *zero_head_out(const zero_head *head, int64_t t);
const void *zero_head_dout(const zero_head *head, int64_t t);
/* The offset in lse[B,H,T]. */
int64_t zero_head_in_lse(const zero_head *head, int64_t t);

/* The next n floats of the workspace, from the start of a cache line on. */
float *zero_head_take(float **work, int64_t n);

/* Packs x[n, D], rows of the call whose stride is given, to panels with rows as lanes: in
 * fp32 [n/cols][D][cols]. */
void zero_head_pack_rows(const zero_head *head, const void *x, int64_t stride, int64_t n,
                         void *out);
/* The same with channels as lanes: in fp32 [width/cols][n][cols]. */
void zero_head_pack_channels(const zero_head *head, const void *x, int64_t stride,
                             int64_t n, void *out);

/* out[panel, D] = factor * x[n, D], rows of the call from position t on; rows of the
 * panel from n on become zero. */
void zero_head_copy(const zero_head *head, const void *x, int64_t stride, int64_t t,
                    int64_t n, float factor, float *out);

/* out[n, D], rows of the call from position t on, = x[n, width] times factor, or times
 * each row's one of factors[n]. */
void zero_head_store(const zero_head *head, const float *x, int64_t t, int64_t n,
                     float factor, const float *factors, void *out, int64_t stride);

/* A panel of a product's left factor: element (i, p) is x[i * row + p * along], p < k; one
 * of the strides is 1. Its first `rows` are needed. */
typedef struct {
    const float *x;
    int64_t rows, row, along, k;
} zero_left;

/* c[panel, n] = a b, or +=; n rounded up to half panels. Rows of c that are not needed may
 * stay as they are. b was packed for b_k of k; those from b_from on are used. */
void zero_head_multiply(const zero_head *head, const zero_left *a, int64_t n, const void *b,
                        int64_t b_from, int64_t b_k, bool add, float *c, int64_t ldc);

/* score[rows, stride] = x[panel, D] y' for the first n keys; y packed by rows. */
void zero_head_scores(const zero_head *head, const float *x, int64_t rows, const void *y,
                      int64_t n, float *score);

/* out[rows, width] = weight[panel, stride] y for the first n keys; y[T] packed by
 * channels. */
void zero_head_mix(const zero_head *head, const float *weight, int64_t rows, const void *y,
                   int64_t n, float *out);

/* mask[i + 1] = the dropout mask of query i's probabilities. */
void zero_head_mask(const zero_head *head, int64_t i, float *mask);

/* Computes all heads of a key head, given the first of them; `work` is the rest of the
 * thread's workspace. */
typedef void zero_head_work(const zero_head *head, float *work);

/* All key heads of all samples, each by one thread. `floats`: the workspace of a thread. */
void zero_heads_run(const zero_math *math, const zero_attention *a, int64_t floats,
                    zero_head_work *work);
