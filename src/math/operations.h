/* operations.h - what the operations of a backend (backend.h, which says how lengths and
 * "+=" are meant) are given. */
#pragma once

#include "base/rng.h"
#include "zero/math.h"

/* A dropout mask: for sample b of the call the stream's sample is stream.sample + b. */
typedef struct {
    zero_rng stream;
    float p; /* 0: no dropout, the stream is not read */
} zero_dropout;

/* The end of a residual branch, for B samples of T rows:
 * out[B,T,cols] = residual + (in + bias) * mask; no mask if p is 0. `out` may be `in`. */
typedef struct {
    zero_dropout dropout;
    int64_t B, T, cols;
    zero_type type, rows_type;
    const void *bias;          /* [cols] of `type`; NULL: none */
    const void *residual, *in; /* of `rows_type`, as out */
    void *out;
} zero_branch;

/* x[rows,cols] += bias[cols], row by row; bias_gelu() then sets y from x as it is
 * stored. */
typedef struct {
    int64_t rows, cols;
    zero_type type, rows_type;
    const void *bias; /* [cols] of `type` */
    void *x, *y;      /* of `rows_type` */
    bool is_exact;    /* GELU by erf, not by its approximation */
} zero_bias;

/* dbias[cols] (+)= the sum of dy's rows; or, for bias_gelu_backward(), of dx's as they are
 * stored. */
typedef struct {
    int64_t rows, cols;
    zero_type rows_type;
    const void *x, *dy; /* x as bias_gelu() left it */
    void *dx;           /* may be dy */
    bool is_exact;      /* as zero_bias has it */
    bool accumulate;
    float *dbias;
} zero_bias_grad;

/* y = (x - mean) * rstd * gain + bias, per row of C; rstd = 1/sqrt(variance + eps). Without
 * a mean (NULL) it is the norm of Zhang & Sennrich, arXiv:1910.07467: nothing is
 * subtracted, and the mean of the squares is the variance. */
typedef struct {
    int64_t rows, C;
    zero_type type, rows_type;
    float eps;
    const void *x;           /* [rows, C] of `rows_type`, as y */
    const void *gain, *bias; /* [C] of `type`; no bias: NULL */
    void *y;
    float *mean, *rstd; /* [rows]; mean may be NULL */
} zero_layernorm_args;

/* dx += ..., dgain (+)= ..., dbias (+)= ... unless it is NULL */
typedef struct {
    int64_t rows, C;
    zero_type type, rows_type;
    const void *x;
    const void *gain;
    const float *mean, *rstd; /* as layernorm() left them; mean may be NULL */
    const void *dy;
    void *dx;
    bool accumulate;
    float *dgain, *dbias;
} zero_layernorm_grad_args;

/* Heads in an array of the call's rows_type: head h of row i is its D elements from
 * i * stride + h * head on. */
typedef struct {
    void *x;
    int64_t stride, head;
} zero_heads;

/* Causal self-attention of H heads; K divides H, and head h reads keys and values of key
 * head h K/H. Scores are scaled by 1/sqrt(D). Dropout acts on the probabilities; element
 * ((first_head + h)*T + i)*T + j.
 *
 * Factors of all products may be rounded to the type `factors`, as for zero_gemm: q, k, v
 * and probabilities, and in backward dout and the gradient of scores. Sums, softmax and lse
 * stay fp32. Rows of fp16 have no factors of bf16.
 *
 * Backward takes the same struct: it reads out and lse, and dout, and writes dq, dk and dv.
 * The terms of dk and dv are added query head by query head. */
typedef struct {
    int64_t B, T, H, K, D;
    int64_t first_head; /* of a model whose heads are shared: the number of head 0 here */
    zero_dropout dropout;
    zero_type factors, rows_type;
    zero_heads q, k, v;
    void *out;        /* [B,T,H,D] of `rows_type`, as dout */
    float *lse;       /* [B,H,T]: the logarithm of each row's sum of exponentials */
    float *work;      /* [zero_attention_workspace()] for each thread */
    const void *dout; /* [B,T,H,D] */
    zero_heads dq, dk, dv;
} zero_attention;

/* Attention with a cache of keys and values, for texts that grow: sample b's positions
 * before past[b] are in the cache. A text's part of it is [K,room,D] keys, as many values,
 * and workspace of its H heads.
 *
 *     remember    keeps k and v of B*T rows, positions past[b] .. past[b] + T - 1
 *     recall      T = 1: out[B,H,D] of each query over the past[b] + 1 positions that are
 *                 kept
 *
 * Keys and values are kept as they are, of `rows_type`. Arithmetic is fp32; a text's bits
 * do not depend on the others. */
typedef struct {
    int64_t B, T, H, K, D, room;
    const int64_t *past; /* [B] of the host, read before the call returns; NULL: 0 */
    zero_type rows_type;
    zero_heads q, k,
        v;        /* of `rows_type`, as out; remember does not read q, nor recall k, v */
    float *cache; /* [B,zero_cache_floats(rows_type, room, H, K, D)] */
    void *out;    /* recall */
} zero_cached;

#define ZERO_CACHED_TEXTS 256 /* B is at most that where `past` is given */

#define ZERO_TURN_PAIRS 128 /* at most */

/* Rotary positions: Su et al., arXiv:2104.09864. In each of the H heads of q and the K of k
 * channels i and i + R/2 are a pair, i < R/2, which turns by the angle (float)t *
 * frequency[i], in fp32; its cosine and sine are the exact ones rounded to fp32. Channels
 * from R on stay. Positions t count from past[b].
 *
 *     y[i] = x[i] cos - x[i + R/2] sin       y[i + R/2] = x[i + R/2] cos + x[i] sin
 *
 * With gains, heads are normed first, as by layernorm() without a mean and a bias; rstd
 * holds H of a row's q, then K of its k.
 *
 * Backward turns dq and dk back, in place. With gains it reads q, k and rstd; it continues
 * through the norm, and sums[slices, 2 D] (+)= the gradients of gain_q, then of gain_k:
 * each slice of the heads has a sum of its own, row by row and head by head. */
typedef struct {
    int64_t B, T, H, K, D, R; /* R is even */
    zero_type type, rows_type;
    float frequency[ZERO_TURN_PAIRS]; /* [R/2] */
    const int64_t *past;              /* [B], as zero_cached has it; forward alone */
    const void *gain_q, *gain_k;      /* [D] of `type`; both NULL: nothing is normed */
    float eps;
    float *rstd;           /* [B,T,H+K], with gains */
    zero_heads q, k;       /* of `rows_type`, as all heads here */
    zero_heads to_q, to_k; /* forward; may be q and k */
    zero_heads dq, dk;     /* backward */
    int slices;            /* backward with gains, as the next two: they divide H and K */
    bool accumulate;
    float *sums;
} zero_turn;

/* The gate of Shazeer, arXiv:2002.05202, over x[rows,2F], whose rows hold z, then u:
 * y[rows,F] = z sigmoid(z) u. Backward reads x, and turns d[rows,2F], whose rows begin with
 * the F numbers of dy, into the gradient of x. */
typedef struct {
    int64_t rows, F;
    zero_type rows_type;
    const void *x;
    void *y, *d;
} zero_swiglu;

/* out[B,T,C] = wte[token] + wpe[t], t counted from past[b] unless that is NULL; without wpe
 * (NULL) wte[token]. With words > 0 wte holds the words [first, first + words) alone:
 * positions of other tokens become zeros, and 0 is added to all others (-0 + 0 = +0). The
 * sum over the ranks that share the words then has the same bits, however the words are
 * dealt. */
typedef struct {
    int64_t B, T, C;
    int64_t first, words;
    const int32_t *tokens; /* [B,T] */
    zero_type type, rows_type;
    const void *wte, *wpe; /* [V,C], [T,C] of `type` */
    void *out;             /* of `rows_type` */
    const int64_t *past;   /* [B], as zero_cached has it */
} zero_embedding;

/* dwte[V,C] += ..., dwpe[T,C] += ... unless it is NULL, in the order of the positions. With
 * words > 0 dwte
 * holds words [first, first + words) alone, and tokens elsewhere add to dwpe only. */
typedef struct {
    int64_t B, T, C;
    int64_t first, words;
    const int32_t *tokens;
    zero_type rows_type;
    const void *dout; /* of `rows_type` */
    float *dwte, *dwpe;
} zero_embedding_grad;

/* loss[rows] = -log softmax(logits)[target], target < V, NaN if a logit is. A row whose
 * target is negative does not count: its loss and its gradient are 0. If dscale != 0 the
 * logits become their gradient, dscale * (softmax - onehot); if it is 0 they are
 * left as they are. A gradient of 16 bits, which a backend may have (halves_logits), begins
 * where its row of logits began: its rows are 2 * stride numbers apart. */
typedef struct {
    int64_t rows, V;
    int64_t stride; /* floats from row to row of the logits; 0: V */
    const int32_t *targets;
    float dscale;
    zero_type gradient; /* rounded to it */
    float *logits, *loss;
} zero_cross_entropy;

static inline int64_t zero_logits_stride(const zero_cross_entropy *e)
{
    return e->stride > 0 ? e->stride : e->V;
}

/* cross_entropy() over a vocabulary in slices, which are dealt to ranks: each has `slices`
 * of them. This rank has the V words [first, first + V) of all; its slice s has columns
 * [ends[s - 1], ends[s]) of `logits`, where ends[-1] is 0 and ends[slices - 1] is V. No
 * slice is empty. There are two calls, between which each rank's `stats` are gathered into
 * `all`, in the order of the words:
 *
 *     softmax_slices    reads targets and logits, and writes
 *                         stats[s]            the largest logit of slice s, row by row
 *                         stats[slices + s]   the sum of e^(logit - largest) over slice s
 *                         stats[2 * slices]   the target's logit, or 0 if another rank has
 *                                             it
 *                         logits              e^(logit - largest of its slice)
 *     softmax_loss      reads `all` and these logits, and writes the loss of each row, the
 *                       same on all ranks. If dscale != 0 logits become their gradient, and
 *                       else anything
 *
 * Words and slices alone decide the bits, not ranks: the sum over all slices is the tree of
 * base/tree.h in double. A NaN among a row's logits makes its loss NaN on all ranks. A
 * negative target is that of cross_entropy(). */
typedef struct {
    int64_t rows, V, first;
    int slices;
    const int64_t *ends;    /* [slices] */
    const int32_t *targets; /* [rows]: words, of all ranks' */
    float *logits;          /* [rows,V] */
    float *stats;           /* [2 * slices + 1,rows] */
    int ranks, rank;        /* rank: which part of `all` is this rank's stats */
    const float *all;       /* [ranks,2 * slices + 1,rows] */
    float dscale;
    float *loss; /* [rows] */
} zero_softmax;

/* Where gradients have become exactly zero, moments shrink from step to step. CPUs take 20
 * times as long for denormal numbers, which they would become for ever: old moments below
 * the first limit, twice FLT_MIN, count as zero of their sign. A new first moment below the
 * second moves no parameter: its product with the learning rate would be denormal long
 * before it is. */
#define ZERO_ADAMW_LEAST_MOMENT 0x1p-125f
#define ZERO_ADAMW_LEAST_MOVE   0x1p-90f

/* AdamW; Loshchilov & Hutter 2019, algorithm 2, with eps outside the square root, after
 * bias correction; the decay acts on the old parameter. */
typedef struct {
    float lr, beta1, beta2, eps, weight_decay;
    float grad_scale; /* multiplies gradients first (clipping) */
    int64_t step;     /* t, from 1 */
} zero_adamw;

/* The n parameters that a step moves. */
typedef struct {
    int64_t n;
    zero_type type;
    const void *grad;      /* of `type` */
    float *master, *m, *v; /* updated */
    /* The master rounded to `type`. NULL with fp32, whose master is the parameter. */
    void *param;
    /* In the backend's memory, or NULL: a word that is told of parameters which are not
     * their old masters, rounded. Element 0 has the number `first`. Of several such calls,
     * and elements, the word keeps the least number: zero_changed(). */
    int64_t first;
    uint64_t *changed;
} zero_adamw_arrays;
