/* cpu_attention.h - what forward and backward of the cpu backend's attention share: one head,
 * whose factors are packed to panels (cpu_panel.h), and its scores.
 *
 *          keys 0 ........ first + rows
 *   first   | P P P P P P .        one panel of queries meets the panels of keys up to its own
 *   + rows  | P P P P P P P        diagonal; what lies above that is zero
 *
 * Nothing is as large as T x T: forward has the scores of one panel of queries at a time,
 * backward those of one block of panels. Sums run along channels, keys or queries in order, in
 * backward block by block: bits depend on T and C/H alone. */
#pragma once

#include "math/cpu.h"
#include "math/cpu_panel.h"

/* Queries whose scores exist at one time in backward, and between two polls; whole panels of
 * every kernel. */
#define ZERO_ATTENTION_ROWS 48

_Static_assert(ZERO_CPU_PANEL >= ZERO_PANEL_ROWS &&
                   ZERO_ATTENTION_ROWS % ZERO_PANEL_ROWS == 0,
               "scores of a panel of queries are a panel of cpu_kernels.h");

typedef enum { ZERO_QUERY, ZERO_KEY, ZERO_VALUE } zero_head_part;

typedef struct {
    const zero_math *math;
    const zero_attention *s;
    const zero_panel_kernels *panels;
    const zero_cpu_kernels *kernels;
    int64_t b, h;
    int64_t size, width; /* C/H, and rounded up to whole panels */
    int64_t stride;      /* from row to row of scores */
    float scale;         /* of scores */
    float scale_base2;   /* times log2(e): what queries are multiplied with, see softmax */
} zero_head;

zero_head zero_head_at(const zero_math *math, const zero_attention *s, int64_t b,
                       int64_t h);

/* Offsets of position t: in qkv[B,T,3C], in out[B,T,C], in lse[B,H,T]. */
int64_t zero_head_in_qkv(const zero_head *k, int64_t t, zero_head_part part);
int64_t zero_head_in_out(const zero_head *k, int64_t t);
int64_t zero_head_in_lse(const zero_head *k, int64_t t);

/* The next n floats of the workspace, from the start of a cache line on. */
float *zero_head_take(float **work, int64_t n);

/* Packs x[n, C/H], whose rows are `stride` apart: with rows as lanes, [n/cols][C/H][cols], */
void zero_head_pack_rows(const zero_head *k, const float *x, int64_t stride, int64_t n,
                         float *out);
/* or with channels as lanes, [width/cols][n][cols]. What is missing of a panel is zero. */
void zero_head_pack_channels(const zero_head *k, const float *x, int64_t stride, int64_t n,
                             float *out);

/* out[panel, C/H] = factor * x[n, C/H]; rows of the panel from n on become zero. */
void zero_head_copy(const zero_head *k, const float *x, int64_t stride, int64_t n,
                    float factor, float *out);

/* score[panel, stride] = x[panel, C/H] y' for the first n keys; y packed by rows. */
void zero_head_scores(const zero_head *k, const float *x, const float *y, int64_t n,
                      float *score);

/* out[panel, width] = weight[panel, stride] y for the first n keys; y[T] packed by channels. */
void zero_head_mix(const zero_head *k, const float *weight, const float *y, int64_t n,
                   float *out);

/* mask[i + 1] = what dropout multiplies the probabilities of query i with. */
void zero_head_mask(const zero_head *k, int64_t i, float *mask);
