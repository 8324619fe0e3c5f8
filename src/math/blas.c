#include "math/blas.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

/* gfortran's convention: the lengths of the two strings come last. */
void sgemm_(const char *transa, const char *transb, const int *m, const int *n,
            const int *k, const float *alpha, const float *a, const int *lda,
            const float *b, const int *ldb, const float *beta, float *c, const int *ldc,
            size_t transa_len, size_t transb_len);

/* Null where the library is not OpenBLAS. */
__attribute__((weak)) void openblas_set_num_threads(int n);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) char *openblas_get_config(void);
__attribute__((weak)) char *openblas_get_corename(void);

static int small(int64_t n)
{
    assert(n >= 0 && n <= INT_MAX);
    return (int)n;
}

/* BLAS wants strides of at least 1, also for empty matrices. */
static int stride(int64_t given, int64_t dense)
{
    int64_t ld = given ? given : dense;
    return ld > 0 ? small(ld) : 1;
}

void zero_blas_gemm(const zero_gemm *g)
{
    /* BLAS stores columns: what it takes for op(b)' op(a)' is our row-major product. */
    const int m = small(g->m), n = small(g->n), k = small(g->k);
    const int lda = stride(g->lda, g->transpose_a ? g->m : g->k);
    const int ldb = stride(g->ldb, g->transpose_b ? g->k : g->n);
    const int ldc = stride(g->ldc, g->n);
    const float one = 1.0f, beta = g->accumulate ? 1.0f : 0.0f;
    sgemm_(g->transpose_b ? "T" : "N", g->transpose_a ? "T" : "N", &n, &m, &k, &one, g->b,
           &ldb, g->a, &lda, &beta, g->c, &ldc, 1, 1);
}

int zero_blas_set_threads(int n)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return 0;
    openblas_set_num_threads(n);
    return openblas_get_num_threads();
}

void zero_blas_name(char *name, size_t size)
{
    char version[32];
    if (openblas_get_config && openblas_get_corename &&
        sscanf(openblas_get_config(), "OpenBLAS %31s", version) == 1)
        snprintf(name, size, "OpenBLAS %s %s", version, openblas_get_corename());
    else
        snprintf(name, size, "BLAS");
}
