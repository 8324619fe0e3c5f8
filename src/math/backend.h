/* backend.h - the arithmetic: one table of functions.
 *
 * Everything above computes through a backend, so the sharding logic is the same code on a
 * laptop and on a GPU node. Matrices are row-major; pointers are in the backend's memory
 * and do not overlap unless said. No call allocates.
 *
 * Calls run in the order made and may return early. Structs and scalars have been read
 * then; arrays belong to the call until it has run. sync() waits for all calls, not for
 * copies (memory.h), and reports what failed. Calls that return early poll when they are
 * made.
 *
 * Weights, gradients as the optimizer reads them, and a call's rows are arrays of a
 * zero_type: activations and their gradients, with one row for each position, are of the
 * call's `rows_type`. Everything else is fp32, and so is all arithmetic but products of
 * 16-bit factors. A call on 16-bit numbers gives the bits of the same call on these numbers
 * widened to fp32, its 16-bit results rounded once as base/half.h does; only NaN payloads
 * may differ.
 *
 * Shapes: B samples, T positions, C channels, H heads and K key heads of D channels, V
 * words; `rows` is usually B*T. Lengths count elements. "+=" adds to what is there; "(+)="
 * adds if `accumulate` is set, else it defines. */
#pragma once

#include "base/exact.h"
#include "base/number.h"
#include "base/type.h"
#include "math/bits.h"
#include "math/memory.h"
#include "math/operations.h"

#define ZERO_MATH_STATE 4

/* Given to every call: how to keep communication going, and the backend's state. */
struct zero_math {
    void (*poll)(void *arg); /* within products and long loops; NULL: no polling */
    void *poll_arg;
    float *scratch; /* [zero_math_scratch()] for each thread, borrowed, any content */
    int threads;    /* of the cpu backend, math/team.h; 0 counts as 1 */
    int device;     /* which one, if the backend has several; read by open() */
    zero_bits bits; /* likewise; zeroed: ZERO_BITS_AUTO */
    const void *state[ZERO_MATH_STATE]; /* private to the backend; set by its open() */
    struct zero_team *team; /* its threads while they are held (math/threads.h); or NULL */
    double crowded_until;   /* what those threads have found (base/crowd.h); starts as 0 */
};

/* The word of a changed parameter with this number; the largest word counts, and 0 is
 * none. */
static inline uint64_t zero_changed(int64_t number)
{
    return ~(uint64_t)number;
}

/* The measures of a device's kernels, in benches alone: its vendor's library. They queue
 * work, as the backend's calls do. */
typedef struct {
    void (*copy)(const zero_math *math, void *to, const void *from, size_t bytes);
    /* A product whose factors a and b are of the type `factors` already. */
    void (*product)(const zero_math *math, const zero_gemm *g);
} zero_yardstick;

/* Times of calls that return early, by marks in their queue. */
typedef struct {
    int marks; /* how many there are, two at least */
    /* Sets mark 0 <= mark < marks to the end of all calls made so far; waits for
     * nothing. */
    void (*set)(const zero_math *math, int mark);
    /* Seconds from one mark to another that was set later; waits until the device has come
     * there. */
    zero_status (*between)(const zero_math *math, int from, int to, double *seconds);
} zero_stopwatch;

typedef struct {
    const char *name; /* "AVX-512", "AMX-BF16", "BLAS", ... */
    bool is_portable; /* bits that every CPU gives */
} zero_products;

/* Kernels with bits of their own for the same products. Machines differ in which is the
 * fastest, and the ranks of a job take the same. They are counted from 0 on, in the order
 * of preference. */
typedef struct {
    int kernels;
    /* The nanoseconds that kernel i takes for a small product, the least of a few;
     * INT64_MAX if it does not run here. After open(), with scratch. */
    int64_t (*measure)(const zero_math *math, int i);
    void (*take)(zero_math *math, int i);
} zero_contest;

/* A product g and the call on its result that follows, as one: g->c, dense and not
 * accumulated, is that call's rows. They have the bits of the two calls, except that on
 * rows of 16 bits types, shapes and alignments may decide that g->c is not rounded in
 * between, and that GELU is of x before it is rounded. */
typedef struct {
    void (*add_bias)(const zero_math *math, const zero_gemm *g, const zero_bias *b);
    void (*bias_gelu)(const zero_math *math, const zero_gemm *g, const zero_bias *b);
    /* b->in and b->out are g->c */
    void (*add_branch)(const zero_math *math, const zero_gemm *g, const zero_branch *b);
    /* b->dy and b->dx are g->c */
    void (*bias_gelu_backward)(const zero_math *math, const zero_gemm *g,
                               const zero_bias_grad *b);
} zero_fused;

struct zero_backend {
    const char *name;  /* as in --backend NAME */
    const char *about; /* a few words for messages */
    /* Sets math->state. ZERO_ERR_UNSUPPORTED if this machine cannot run the backend. */
    zero_status (*open)(zero_math *math);
    /* The kernels for products of fp32, or of bf16 factors, after open(); NULL: its own
     * loops, or its vendor's library. */
    zero_products (*products)(const zero_math *math, zero_type factors);
    /* Of kernels for products of bf16 factors; NULL: there is nothing to choose. */
    const zero_contest *contest;
    /* Accepts a math that was not opened. NULL: nothing to do. */
    void (*close)(zero_math *math);
    zero_status (*sync)(const zero_math *math);
    /* ZERO_ERR_UNSUPPORTED, with what to choose instead, if this machine cannot compute
     * with weights of this type; NULL: all types. After open(). */
    zero_status (*accepts)(const zero_math *math, zero_type type);
    /* NULL: arrays are the host's, and calls end before they return. */
    const zero_memory *memory;
    const zero_stopwatch *stopwatch; /* NULL: the host's clock tells times */
    const zero_yardstick *yardstick; /* of a device; NULL: benches measure otherwise */
    const zero_fused *fused;         /* NULL: nothing is gained over two calls */
    bool halves_logits;              /* cross_entropy() writes gradients of 16 bits, too */

    void (*clear)(const zero_math *math, int64_t n, float *x); /* x[n] = 0 */
    void (*gemm)(const zero_math *math, const zero_gemm *g);
    void (*add_bias)(const zero_math *math, const zero_bias *b);
    void (*bias_backward)(const zero_math *math, const zero_bias_grad *b);
    void (*add_branch)(const zero_math *math, const zero_branch *b);
    /* y = x * mask for B samples of n elements of `rows_type`; y may be x. The derivative
     * is the same. */
    void (*dropout)(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y);
    /* x += bias, then y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), or the exact
     * 0.5 x (1 + erf(x / sqrt(2))) */
    void (*bias_gelu)(const zero_math *math, const zero_bias *b);
    /* dx = dy * gelu'(x), then dbias (+)= the sum of dx's rows */
    void (*bias_gelu_backward)(const zero_math *math, const zero_bias_grad *b);
    void (*layernorm)(const zero_math *math, const zero_layernorm_args *n);
    void (*layernorm_backward)(const zero_math *math, const zero_layernorm_grad_args *n);
    void (*swiglu)(const zero_math *math, const zero_swiglu *s);
    void (*swiglu_backward)(const zero_math *math, const zero_swiglu *s);
    void (*turn)(const zero_math *math, const zero_turn *t);
    void (*turn_backward)(const zero_math *math, const zero_turn *t);
    /* Floats of workspace for either direction and each thread; reads the shape alone. */
    int64_t (*attention_workspace)(const zero_attention *a);
    void (*attention)(const zero_math *math, const zero_attention *a);
    void (*attention_backward)(const zero_math *math, const zero_attention *a);
    void (*remember)(const zero_math *math, const zero_cached *a);
    void (*recall)(const zero_math *math, const zero_cached *a);
    void (*embedding)(const zero_math *math, const zero_embedding *e);
    void (*embedding_backward)(const zero_math *math, const zero_embedding_grad *e);
    void (*cross_entropy)(const zero_math *math, const zero_cross_entropy *e);
    /* The two calls of zero_softmax. NULL: the backend computes no models in slices. */
    void (*softmax_slices)(const zero_math *math, const zero_softmax *s);
    void (*softmax_loss)(const zero_math *math, const zero_softmax *s);
    /* One optimizer step, element by element: any cut of the range gives the same bits. */
    void (*adamw)(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a);
    /* *sum = the sum of x's squares over the fixed tree of base/tree.h. */
    void (*sum_squares)(const zero_math *math, zero_type type, int64_t n, const void *x,
                        double *sum);
    /* *sum += the squares of x, exactly: ranks of a model in slices add in any order. NULL:
     * as with softmax_slices. */
    void (*exact_squares)(const zero_math *math, zero_type type, int64_t n, const void *x,
                          zero_exact *sum);
    /* out = in rounded to `type`, as base/half.h does; with fp32 a copy, and out may be
     * in */
    void (*round)(const zero_math *math, zero_type type, int64_t n, const float *in,
                  void *out);
    /* out = sum + (leaf rounded to `type`): one microbatch's gradient is added. Without a
     * sum (NULL) out is the rounded leaf. out may be sum or leaf. */
    void (*accumulate)(const zero_math *math, zero_type type, int64_t n, const float *sum,
                       const float *leaf, float *out);
};

/* Declares zero_BACKEND_OP, the function of a backend for that member of its table. */
#define ZERO_OPERATION(backend, op) \
    __typeof__(*((zero_backend *)NULL)->op) zero_##backend##_##op

#define ZERO_LAYERNORM_EPS 1e-5f

extern const zero_backend zero_backend_naive; /* plain loops: the oracle of every test */
extern const zero_backend zero_backend_cpu;   /* BLAS and vectorised kernels */

/* Floats of zero_math's scratch, for any backend and each thread: 2 MiB. A bias, or a gain
 * with its bias, holds at most as many elements (2^19) if it is not fp32; rows of 16 bits
 * are normed up to a quarter of that. */
static inline int64_t zero_math_scratch(void)
{
    return (int64_t)1 << 19;
}

/* A product's factors from element (i, p) and (p, j) on, and its sums from (i, j) on, with
 * strides that are given. */
static inline const void *zero_gemm_a(const zero_gemm *g, int64_t i, int64_t p)
{
    return zero_type_at(g->a_type, g->a, g->transpose_a ? p * g->lda + i : i * g->lda + p);
}

static inline const void *zero_gemm_b(const zero_gemm *g, int64_t p, int64_t j)
{
    return zero_type_at(g->b_type, g->b, g->transpose_b ? j * g->ldb + p : p * g->ldb + j);
}

static inline void *zero_gemm_c(const zero_gemm *g, int64_t i, int64_t j)
{
    return zero_type_to(g->c_type, g->c, i * g->ldc + j);
}

/* The row of wpe that number i of a call's B*T positions gets. */
static inline int64_t zero_embedding_position(const zero_embedding *e, int64_t i)
{
    return (e->past ? e->past[i / e->T] : 0) + i % e->T;
}

/* Channels `first` .. of dense rows of `stride` elements, as heads of D. NULL stays
 * NULL. */
static inline zero_heads zero_heads_of(zero_type type, const void *rows, int64_t first,
                                       int64_t stride, int64_t D)
{
    const zero_heads x = {rows ? zero_type_to(type, (void *)rows, first) : NULL, stride, D};
    return x;
}

/* Where head h of row i begins. */
static inline int64_t zero_heads_at(const zero_heads *x, int64_t i, int64_t h)
{
    return i * x->stride + h * x->head;
}

/* Elements from the first to the last one of n heads in each of some rows. */
static inline int64_t zero_heads_extent(const zero_heads *x, int64_t rows, int64_t n,
                                        int64_t D)
{
    return rows > 0 && n > 0 ? zero_heads_at(x, rows - 1, n - 1) + D : 0;
}

/* Rows of queries, keys and values end to end: [H D | K D | K D]. */
static inline void zero_attention_rows(zero_attention *a, const void *qkv, void *dqkv)
{
    const int64_t k = a->H * a->D, v = k + a->K * a->D, stride = v + a->K * a->D;
    a->q = zero_heads_of(a->rows_type, qkv, 0, stride, a->D);
    a->k = zero_heads_of(a->rows_type, qkv, k, stride, a->D);
    a->v = zero_heads_of(a->rows_type, qkv, v, stride, a->D);
    a->dq = zero_heads_of(a->rows_type, dqkv, 0, stride, a->D);
    a->dk = zero_heads_of(a->rows_type, dqkv, k, stride, a->D);
    a->dv = zero_heads_of(a->rows_type, dqkv, v, stride, a->D);
}

/* Floats that the keys and values of one text take. */
static inline int64_t zero_cache_kept(zero_type type, int64_t room, int64_t K, int64_t D)
{
    return zero_round_up(type == ZERO_FP32 ? 2 * room * K * D : room * K * D, 16);
}

/* Floats of a head's workspace: a query and scores. */
static inline int64_t zero_cache_room(int64_t room, int64_t D)
{
    return zero_round_up(D, 16) + zero_round_up(room, 16);
}

/* Floats of one text's part of a cache: keys, values, and a query and scores of each head.
 * Parts begin cache lines. */
static inline int64_t zero_cache_floats(zero_type type, int64_t room, int64_t H, int64_t K,
                                        int64_t D)
{
    return zero_cache_kept(type, room, K, D) + H * zero_cache_room(room, D);
}

/* Text b's part of the cache. */
static inline float *zero_cached_part(const zero_cached *a, int64_t b)
{
    return a->cache + b * zero_cache_floats(a->rows_type, a->room, a->H, a->K, a->D);
}

/* Where in a text's part key head k's key of position t begins: counted in numbers of
 * `rows_type`. It has D numbers; those of t + 1 follow. The value comes room * K * D
 * numbers later. */
static inline int64_t zero_cached_key(const zero_cached *a, int64_t k, int64_t t)
{
    return (k * a->room + t) * a->D;
}

static inline int64_t zero_cached_value(const zero_cached *a, int64_t k, int64_t t)
{
    return zero_cached_key(a, k, t) + a->room * a->K * a->D;
}

/* Head h's workspace. */
static inline float *zero_cached_room(const zero_cached *a, int64_t b, int64_t h)
{
    return zero_cached_part(a, b) + zero_cache_kept(a->rows_type, a->room, a->K, a->D) +
           h * zero_cache_room(a->room, a->D);
}

static inline void zero_math_poll(const zero_math *math)
{
    if (math->poll) math->poll(math->poll_arg);
}
