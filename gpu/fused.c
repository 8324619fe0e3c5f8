/* fused.c - products by cuBLASLt, whose epilogues make what follows them. As in gemm.c our rows are its
 * columns, so a bias of our columns is one of its rows.
 *
 *                            cuBLASLt's result    aux            epilogue
 *     add_bias               c                    -              bias
 *     add_branch             c, with residual     -              bias; only without dropout
 *     bias_gelu              y                    c, written     GELU, aux, bias
 *     bias_gelu_backward     c                    x, read        GELU's gradient; then sums of c's rows
 *
 * For arrays of one 16-bit type, all of whose rows begin at multiples of 16 bytes, if cuBLASLt has
 * such a product for this GPU. Others are made by gemm.c, and a kernel follows: in fp32 a pass is little
 * beside a product, and stays as it was to the bit. Products of few rows are made by few_rows.cu: bits
 * of cuBLASLt would depend on m. */
#include "gpu/cuda.h"
#include "gpu/gemm.h"

#include <assert.h>
#include <string.h>

/* A product as cuBLASLt is told it. */
typedef struct {
    const zero_gemm *g;
    cublasLtEpilogue_t epilogue;
    const void *bias; /* NULL: none */
    void *aux;        /* NULL: none; rows as those of c, as of the next two */
    const void *add;  /* NULL: nothing */
    void *to;
} ending;

/* Rows begin at multiples of it: as much as a thread reads at once. */
#define ROW_BYTES 16

/* ---- which products ---- */

static int64_t lda_of(const zero_gemm *g)
{
    return zero_cuda_or_dense(g->lda, g->transpose_a ? g->m : g->k);
}

static int64_t ldb_of(const zero_gemm *g)
{
    return zero_cuda_or_dense(g->ldb, g->transpose_b ? g->k : g->n);
}

static bool begins_rows(const void *x)
{
    return (uintptr_t)x % ROW_BYTES == 0;
}

static bool may_fuse(const ending *e, zero_type bias_type, zero_type rows_type)
{
    const zero_gemm *g = e->g;
    const zero_type type = g->factors;
    const int64_t row = ROW_BYTES / (int64_t)sizeof(uint16_t);
    const bool is_one_type = g->a_type == type && g->b_type == type && g->c_type == type &&
                             bias_type == type && rows_type == type;
    return type != ZERO_FP32 && is_one_type && !g->few_rows && g->m > 0 && g->n > 0 &&
           g->k > 0 && g->n % row == 0 && lda_of(g) % row == 0 && ldb_of(g) % row == 0 &&
           begins_rows(g->a) && begins_rows(g->b) && begins_rows(e->to) &&
           begins_rows(e->bias) && begins_rows(e->aux) && begins_rows(e->add);
}

/* ---- as cuBLASLt is told ---- */

typedef struct {
    cublasLtMatmulDescOpaque_t what;
    cublasLtMatrixLayoutOpaque_t a, b, c;
} description;

/* The first status that is not good stays. */
static void keep(cublasStatus_t *all, cublasStatus_t one)
{
    if (*all == CUBLAS_STATUS_SUCCESS) *all = one;
}

static void set(cublasStatus_t *all, description *d, cublasLtMatmulDescAttributes_t which,
                const void *value, size_t bytes)
{
    keep(all, cublasLtMatmulDescSetAttribute(&d->what, which, value, bytes));
}

/* The factors change places, as in gemm.c. */
static cublasStatus_t describe_factors(description *d, const zero_gemm *g)
{
    const cudaDataType type = zero_cuda_data_type(g->factors);
    const uint64_t m = (uint64_t)g->m, n = (uint64_t)g->n, k = (uint64_t)g->k;
    const bool ta = g->transpose_b, tb = g->transpose_a;
    const cublasOperation_t op_a = zero_cuda_operation(ta), op_b = zero_cuda_operation(tb);
    cublasStatus_t st = cublasLtMatmulDescInit(&d->what, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    keep(&st, cublasLtMatrixLayoutInit(&d->a, type, ta ? k : n, ta ? n : k, ldb_of(g)));
    keep(&st, cublasLtMatrixLayoutInit(&d->b, type, tb ? m : k, tb ? k : m, lda_of(g)));
    keep(&st, cublasLtMatrixLayoutInit(&d->c, type, n, m, g->n));
    set(&st, d, CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a);
    set(&st, d, CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b);
    return st;
}

static cublasStatus_t describe(description *d, const ending *e, const void *bias, void *aux)
{
    cublasStatus_t st = describe_factors(d, e->g);
    set(&st, d, CUBLASLT_MATMUL_DESC_EPILOGUE, &e->epilogue, sizeof e->epilogue);
    if (e->bias)
        set(&st, d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&bias, sizeof bias);
    if (e->aux) {
        set(&st, d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (const void *)&aux,
            sizeof aux);
        set(&st, d, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &e->g->n, sizeof e->g->n);
    }
    return st;
}

/* ---- how cuBLASLt computes it ---- */

static void prefer(cublasStatus_t *all, cublasLtMatmulPreferenceOpaque_t *wish,
                   cublasLtMatmulPreferenceAttributes_t which, const void *value,
                   size_t bytes)
{
    keep(all, cublasLtMatmulPreferenceSetAttribute(wish, which, value, bytes));
}

/* Sums are not split, whatever the shape; alignments are those that all such products have, so the
 * choice does not depend on where an array lies. */
static cublasStatus_t describe_wish(cublasLtMatmulPreferenceOpaque_t *wish)
{
    const uint64_t workspace = ZERO_CUDA_PRODUCTS_BYTES;
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_NONE, alignment = ROW_BYTES;
    cublasStatus_t st = cublasLtMatmulPreferenceInit(wish);
    prefer(&st, wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
           sizeof workspace);
    prefer(&st, wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof sums);
    const int first = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; /* of A, B, C, D */
    for (int which = first; which < first + 4; which++)
        prefer(&st, wish, (cublasLtMatmulPreferenceAttributes_t)which, &alignment,
               sizeof alignment);
    return st;
}

/* Asks cuBLASLt. It looks at the alignments of the bias and aux, so it is given the least. */
static zero_status choose(zero_cuda *c, const ending *e, zero_cuda_choice *choice)
{
    description d;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    void *const any = (void *)(uintptr_t)ROW_BYTES;
    cublasStatus_t st = describe(&d, e, any, any);
    keep(&st, describe_wish(&wish));
    if (st == CUBLAS_STATUS_SUCCESS)
        st = cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)c->products, &d.what, &d.a,
                                            &d.b, &d.c, &d.c, &wish, 1, &found, &n);
    choice->is_supported =
        st == CUBLAS_STATUS_SUCCESS && n > 0 && found.state == CUBLAS_STATUS_SUCCESS;
    if (choice->is_supported) choice->algorithm = found.algo;
    if (st == CUBLAS_STATUS_NOT_SUPPORTED) st = CUBLAS_STATUS_SUCCESS;
    return zero_cuda_check_product(c, st, "choosing how to multiply");
}

static void write_key(const ending *e, int64_t key[ZERO_CUDA_SHAPE])
{
    const zero_gemm *g = e->g;
    const int64_t of[ZERO_CUDA_SHAPE] = {(int64_t)e->epilogue,
                                         (int64_t)g->factors,
                                         g->transpose_a,
                                         g->transpose_b,
                                         g->m,
                                         g->n,
                                         g->k,
                                         lda_of(g),
                                         ldb_of(g)};
    memcpy(key, of, sizeof of);
}

/* The choice for this shape: it is asked for once, and again if newer shapes have taken its place. NULL
 * after a failure. */
static const zero_cuda_choice *choice_of(zero_cuda *c, const ending *e)
{
    int64_t key[ZERO_CUDA_SHAPE];
    write_key(e, key);
    for (int i = 0; i < ZERO_CUDA_CHOICES; i++)
        if (memcmp(c->choices[i].key, key, sizeof key) == 0) return &c->choices[i];
    zero_cuda_choice *choice = &c->choices[c->n_choices % ZERO_CUDA_CHOICES];
    memset(choice, 0, sizeof *choice);
    if (choose(c, e, choice) != ZERO_OK) return NULL;
    memcpy(choice->key, key, sizeof key);
    c->n_choices++;
    return choice;
}

/* ---- calls ---- */

static void multiply(zero_cuda *c, const ending *e, const zero_cuda_choice *choice)
{
    const float one = 1.0f, more = e->add ? 1.0f : 0.0f;
    const void *add = e->add ? e->add : e->to;
    const zero_gemm *g = e->g;
    description d;
    cublasStatus_t st = describe(&d, e, e->bias, e->aux);
    if (st == CUBLAS_STATUS_SUCCESS)
        st = cublasLtMatmul((cublasLtHandle_t)c->products, &d.what, &one, g->b, &d.a, g->a,
                            &d.b, &more, add, &d.c, e->to, &d.c, &choice->algorithm,
                            c->workspace, ZERO_CUDA_PRODUCTS_BYTES, c->compute);
    (void)!zero_cuda_check_product(c, st, "gemm with an epilogue");
}

/* Whether the product was made with its ending, or nothing is to be made any more. */
static bool fused(const zero_math *math, const ending *e, zero_type bias_type,
                  zero_type rows_type)
{
    assert(e->g->slices == 0 && !e->g->accumulate);
    assert(e->g->ldc == 0 || e->g->ldc == e->g->n);
    if (!may_fuse(e, bias_type, rows_type)) return false;
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return true;
    const zero_cuda_choice *choice = choice_of(c, e);
    if (choice && !choice->is_supported) return false;
    if (choice) multiply(c, e, choice);
    zero_cuda_end(math, "gemm with an epilogue");
    return true;
}

static void add_bias(const zero_math *math, const zero_gemm *g, const zero_bias *b)
{
    const ending e = {
        .g = g, .epilogue = CUBLASLT_EPILOGUE_BIAS, .bias = b->bias, .to = g->c};
    assert(b->x == g->c && b->rows == g->m && b->cols == g->n);
    if (fused(math, &e, b->type, b->rows_type)) return;
    zero_cuda_gemm(math, g);
    zero_backend_cuda.add_bias(math, b);
}

static void add_branch(const zero_math *math, const zero_gemm *g, const zero_branch *b)
{
    const ending e = {.g = g,
                      .epilogue =
                          b->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT,
                      .bias = b->bias,
                      .add = b->residual,
                      .to = g->c};
    assert(b->in == g->c && b->out == g->c && b->B * b->T == g->m && b->cols == g->n);
    if (b->dropout.p == 0.0f && fused(math, &e, b->type, b->rows_type)) return;
    zero_cuda_gemm(math, g);
    zero_backend_cuda.add_branch(math, b);
}

static void bias_gelu(const zero_math *math, const zero_gemm *g, const zero_bias *b)
{
    const ending e = {.g = g,
                      .epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                      .bias = b->bias,
                      .aux = b->x,
                      .to = b->y};
    assert(b->x == g->c && b->rows == g->m && b->cols == g->n);
    if (!b->is_exact && fused(math, &e, b->type, b->rows_type)) return;
    zero_cuda_gemm(math, g);
    zero_backend_cuda.bias_gelu(math, b);
}

/* The bias' gradient is a pass of its own: cuBLASLt's would be of 16 bits, and could not be added to. */
static void bias_gelu_backward(const zero_math *math, const zero_gemm *g,
                               const zero_bias_grad *b)
{
    const ending e = {
        .g = g, .epilogue = CUBLASLT_EPILOGUE_DGELU, .aux = (void *)b->x, .to = g->c};
    assert(b->dx == g->c && b->dy == g->c && b->rows == g->m && b->cols == g->n);
    if (!b->is_exact && fused(math, &e, g->factors, b->rows_type)) {
        zero_backend_cuda.bias_backward(math, b);
        return;
    }
    zero_cuda_gemm(math, g);
    zero_backend_cuda.bias_gelu_backward(math, b);
}

const zero_fused zero_cuda_fused = {.add_bias = add_bias,
                                    .add_branch = add_branch,
                                    .bias_gelu = bias_gelu,
                                    .bias_gelu_backward = bias_gelu_backward};
