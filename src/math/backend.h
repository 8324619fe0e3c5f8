/* backend.h - the arithmetic, behind one table of functions.
 *
 * Everything above computes through a backend, so the sharding logic is the same code on a
 * laptop and on a GPU node. Matrices are row-major; pointers are in the backend's memory
 * and never overlap unless said. Calls run in the order made and may return early: sync()
 * waits for them, and reports what failed meanwhile. No call allocates.
 *
 * Weights, and gradients as the optimizer reads them, are arrays of a zero_type; everything
 * else is fp32, and so is all arithmetic but products in_bf16. A call on 16-bit numbers gives
 * the bits of the same call on the same numbers widened to fp32 (which NaN a NaN is may
 * differ).
 *
 * Shapes: B samples, T positions, C channels, H heads of C/H channels, V words; `rows` is
 * usually B*T. Lengths count elements. "+=" means that the call adds to what is there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "zero/math.h"
#include "zero/status.h"

#define ZERO_MATH_STATE 4

/* Given to every call: how to keep communication going, and the backend's state. */
struct zero_math {
    void (*poll)(void *arg); /* within products and long loops; NULL: no polling */
    void *poll_arg;
    float *scratch; /* [zero_math_scratch()], borrowed, of any content */
    const void *state[ZERO_MATH_STATE]; /* the backend's own, set by its open() */
};

/* A dropout mask: for sample b of the call the stream's sample is stream.sample + b. */
typedef struct {
    zero_rng stream;
    float p; /* 0: no dropout, the stream is not read */
} zero_dropout;

/* Causal self-attention over qkv[B,T,3C], whose rows hold q, k, v (each [H, C/H]). Scores
 * are scaled by 1/sqrt(C/H). Dropout acts on the probabilities; element (h*T + i)*T + j.
 *
 * in_bf16, as for zero_gemm: the factors of all products may be rounded to bf16, which are q, k,
 * v, probabilities, and in backward dout and the gradient of scores. Sums, softmax and lse stay
 * fp32. */
typedef struct {
    int64_t B, T, C, H;
    zero_dropout dropout;
    bool in_bf16;
} zero_attention;

/* AdamW; Loshchilov & Hutter 2019, algorithm 2, with eps outside the square root, after
 * bias correction; the decay acts on the old parameter. */
typedef struct {
    float lr, beta1, beta2, eps, weight_decay;
    float grad_scale; /* gradients are multiplied with it first (clipping) */
    int64_t step;     /* t, from 1 */
} zero_adamw;

struct zero_backend {
    const char *name;  /* as in --backend NAME */
    const char *about; /* a few words for messages */
    /* Sets math->state. ZERO_ERR_UNSUPPORTED if this machine cannot run the backend. */
    zero_status (*open)(zero_math *math);
    zero_status (*sync)(const zero_math *math);

    void (*clear)(const zero_math *math, int64_t n, float *x); /* x[n] = 0 */
    void (*gemm)(const zero_math *math, const zero_gemm *g);
    /* x[rows,cols] += bias[cols], row by row */
    void (*add_bias)(const zero_math *math, int64_t rows, int64_t cols, zero_type type,
                     const void *bias, float *x);
    /* dbias[cols] (+)= the sum of dy's rows */
    void (*bias_backward)(const zero_math *math, int64_t rows, int64_t cols,
                          const float *dy, bool accumulate, float *dbias);
    /* The end of a branch and the way around it, for B samples of T rows:
     * x[B,T,cols] = around + (x + bias) * mask; no mask if p is 0 */
    void (*add_branch)(const zero_math *math, const zero_dropout *d, int64_t B, int64_t T,
                       int64_t cols, zero_type type, const void *bias, const float *around,
                       float *x);
    /* y = x * mask for B samples of n elements; y may be x. Its own derivative. */
    void (*dropout)(const zero_math *math, const zero_dropout *d, int64_t B, int64_t n,
                    const float *x, float *y);
    /* x[rows,cols] += bias[cols], then y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    void (*bias_gelu)(const zero_math *math, int64_t rows, int64_t cols, zero_type type,
                      const void *bias, float *x, float *y);
    /* dx = dy * gelu'(x), dbias[cols] (+)= the sum of dx's rows; x as bias_gelu() left it, dx
     * may be dy */
    void (*bias_gelu_backward)(const zero_math *math, int64_t rows, int64_t cols,
                               const float *x, const float *dy, float *dx, bool accumulate,
                               float *dbias);
    /* y = (x - mean) * rstd * gain + bias, per row of C; rstd = 1/sqrt(variance + 1e-5) */
    void (*layernorm)(const zero_math *math, int64_t rows, int64_t C, const float *x,
                      zero_type type, const void *gain, const void *bias, float *y,
                      float *mean, float *rstd);
    /* dx += ..., dgain (+)= ..., dbias (+)= ... */
    void (*layernorm_backward)(const zero_math *math, int64_t rows, int64_t C,
                               const float *x, zero_type type, const void *gain,
                               const float *mean, const float *rstd, const float *dy,
                               float *dx, bool accumulate, float *dgain, float *dbias);
    /* Floats of workspace that the two calls below need. */
    int64_t (*attention_workspace)(const zero_attention *s);
    /* out[B,T,C]; lse[B,H,T] = log of each row's sum of exponentials */
    void (*attention)(const zero_math *math, const zero_attention *s, const float *qkv,
                      float *out, float *lse, float *work);
    /* dqkv[B,T,3C] = ...; out and lse as attention() left them */
    void (*attention_backward)(const zero_math *math, const zero_attention *s,
                               const float *qkv, const float *out, const float *lse,
                               const float *dout, float *dqkv, float *work);
    /* out[B,T,C] = wte[token] + wpe[t] */
    void (*embedding)(const zero_math *math, int64_t B, int64_t T, int64_t C,
                      const int32_t *tokens, zero_type type, const void *wte,
                      const void *wpe, float *out);
    /* dwte[V,C] += ..., dwpe[T,C] += ..., in the order of the positions */
    void (*embedding_backward)(const zero_math *math, int64_t B, int64_t T, int64_t C,
                               const int32_t *tokens, const float *dout, float *dwte,
                               float *dwpe);
    /* loss[rows] = -log softmax(logits)[target], 0 <= target < V, NaN if a logit is; if
     * dscale != 0, logits[rows,V] become their gradient, dscale * (softmax - onehot); if it
     * is 0 they are left as they are. */
    void (*cross_entropy)(const zero_math *math, int64_t rows, int64_t V,
                          const int32_t *targets, float dscale, float *logits, float *loss);
    /* One optimizer step over n parameters; master, m and v are updated. grad and param have
     * `type`: param[i] = master[i] rounded. With fp32 the master is the parameter, and param
     * is NULL. Element by element: any cut of the range gives the same bits. */
    void (*adamw)(const zero_math *math, const zero_adamw *h, int64_t n, zero_type type,
                  const void *grad, float *master, float *m, float *v, void *param);
    /* The sum of x's squares over the fixed tree of base/tree.h. */
    double (*sum_squares)(const zero_math *math, zero_type type, int64_t n, const void *x);
    /* out = in rounded to `type`, as base/half.h does; with fp32 a copy, and out may be in */
    void (*round)(const zero_math *math, zero_type type, int64_t n, const float *in,
                  void *out);
    /* out = sum + (leaf rounded to `type`): one microbatch's gradient is added. Without a sum
     * (NULL) out is the rounded leaf. out may be sum or leaf. */
    void (*accumulate)(const zero_math *math, zero_type type, int64_t n, const float *sum,
                       const float *leaf, float *out);
};

#define ZERO_LAYERNORM_EPS 1e-5f

extern const zero_backend zero_backend_naive; /* plain loops: the oracle of every test */
extern const zero_backend zero_backend_cpu;   /* BLAS and vectorised kernels */

/* Floats of zero_math's scratch, for any backend: 2 MiB. A bias, or a gain with its bias, holds
 * at most as many elements (2^19) if it is not fp32. */
static inline int64_t zero_math_scratch(void)
{
    return (int64_t)1 << 19;
}

static inline void zero_math_poll(const zero_math *math)
{
    if (math->poll) math->poll(math->poll_arg);
}
