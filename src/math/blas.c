#include "math/blas.h"

#include <limits.h>

/* gfortran's convention: the lengths of the two strings come last. */
void sgemm_(const char *transa, const char *transb, const int *m, const int *n,
            const int *k, const float *alpha, const float *a, const int *lda,
            const float *b, const int *ldb, const float *beta, float *c, const int *ldc,
            size_t transa_len, size_t transb_len);

/* NULL if the library is another one. */
__attribute__((weak)) void openblas_set_num_threads(int n);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) char *openblas_get_config(void);
__attribute__((weak)) char *openblas_get_corename(void);

/* BLIS has an integer type of its own, 64 bits unless built otherwise: our values fit
 * both. */
__attribute__((weak)) void bli_thread_set_num_threads(int64_t n);
__attribute__((weak)) int64_t bli_thread_get_num_threads(void);
__attribute__((weak)) const char *bli_info_get_version_str(void);
__attribute__((weak)) int bli_arch_query_id(void);
__attribute__((weak)) const char *bli_arch_string(int id);

/* The C interface of Intel MKL; its lower-case names are the Fortran interface. */
__attribute__((weak)) void MKL_Set_Num_Threads(int n);
__attribute__((weak)) int MKL_Get_Max_Threads(void);
__attribute__((weak)) void MKL_Get_Version_String(char *text, int size);

static int small(int64_t n)
{
    assert(n >= 0 && n <= INT_MAX);
    return (int)n;
}

/* BLAS requires strides of at least 1, even for empty matrices. */
static int stride(int64_t given, int64_t dense)
{
    int64_t ld = given ? given : dense;
    return ld > 0 ? small(ld) : 1;
}

void zero_blas_gemm(const zero_gemm *g)
{
    assert(g->b_type == ZERO_FP32 && "BLAS multiplies floats");
    /* BLAS is column-major: its op(b)' op(a)' is our row-major product. */
    const int m = small(g->m), n = small(g->n), k = small(g->k);
    const int lda = stride(g->lda, g->transpose_a ? g->m : g->k);
    const int ldb = stride(g->ldb, g->transpose_b ? g->k : g->n);
    const int ldc = stride(g->ldc, g->n);
    const float one = 1.0f, beta = g->accumulate ? 1.0f : 0.0f;
    sgemm_(g->transpose_b ? "T" : "N", g->transpose_a ? "T" : "N", &n, &m, &k, &one, g->b,
           &ldb, g->a, &lda, &beta, g->c, &ldc, 1, 1);
}

int zero_blas_threads(void)
{
    if (openblas_get_num_threads) return openblas_get_num_threads();
    if (bli_thread_get_num_threads) return (int)bli_thread_get_num_threads();
    return MKL_Get_Max_Threads ? MKL_Get_Max_Threads() : 0;
}

int zero_blas_set_threads(int n)
{
    if (openblas_set_num_threads)
        openblas_set_num_threads(n);
    else if (bli_thread_set_num_threads)
        bli_thread_set_num_threads(n);
    else if (MKL_Set_Num_Threads)
        MKL_Set_Num_Threads(n);
    else
        return 0;
    return zero_blas_threads();
}

/* "Intel(R) oneAPI Math Kernel Library Version 2024.0-Product Build 20231011 for ..." */
static bool mkl_version(char version[32])
{
    char text[256] = "";
    if (!MKL_Get_Version_String) return false;
    MKL_Get_Version_String(text, (int)sizeof text);
    const char *from = strstr(text, "Version ");
    return from && sscanf(from, "Version %31[0-9.]", version) == 1;
}

void zero_blas_name(char *name, size_t size)
{
    char version[32];
    if (openblas_get_config && openblas_get_corename &&
        sscanf(openblas_get_config(), "OpenBLAS %31s", version) == 1)
        snprintf(name, size, "OpenBLAS %s %s", version, openblas_get_corename());
    else if (bli_info_get_version_str && bli_arch_string && bli_arch_query_id)
        snprintf(name, size, "BLIS %s %s", bli_info_get_version_str(),
                 bli_arch_string(bli_arch_query_id()));
    else if (mkl_version(version))
        snprintf(name, size, "Intel MKL %s", version);
    else
        snprintf(name, size, "BLAS");
}
