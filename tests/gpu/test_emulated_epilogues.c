/* What the emulated cuBLASLt refuses. That its products are right, test_fused.c shows. */

#define TEST_HAS_MAIN
#include <cublasLt.h>

#include "support/test.h"

#include "gpu/emulated/emulator.h"

enum { M = 24, N = 10, K = 13, AUX = 32, MOST = 4096 };

/* a, b, the bias, aux and d, each in a piece of its own; then the workspace. */
enum { A, B, BIAS, IN, D, WORKSPACE, PIECES };

static uint16_t result[MOST]; /* as large as each piece */
static char *piece[PIECES];
static cublasHandle_t blas;

/* A product, and whatever is wrong with it. */
typedef struct {
    cublasLtMatmulDescOpaque_t what;
    cublasLtMatrixLayoutOpaque_t a, b, d;
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatmulHeuristicResult_t found;
    char *at[PIECES];
    size_t workspace_bytes;
    const void *add; /* NULL: nothing is added */
} product;

static int take_memory(void **state)
{
    (void)state;
    for (int p = 0; p < PIECES; p++)
        if (cudaMalloc((void **)&piece[p], sizeof result) != cudaSuccess) return 1;
    return cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS;
}

static int give_memory_back(void **state)
{
    (void)state;
    for (int p = 0; p < PIECES; p++) cudaFree(piece[p]);
    return cublasDestroy(blas) != CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(product *p, cublasLtMatmulDescAttributes_t which,
                          const void *value, size_t bytes)
{
    return cublasLtMatmulDescSetAttribute(&p->what, which, value, bytes);
}

static void set_wish(product *p, cublasLtMatmulPreferenceAttributes_t which, uint32_t value)
{
    assert_int_equal(
        cublasLtMatmulPreferenceSetAttribute(&p->wish, which, &value, sizeof value),
        CUBLAS_STATUS_SUCCESS);
}

static void set_epilogue(product *p, cublasLtEpilogue_t epilogue)
{
    const int64_t stride = AUX;
    assert_int_equal(set(p, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(set(p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&p->at[BIAS],
                         sizeof(void *)),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER,
                         (const void *)&p->at[IN], sizeof(void *)),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(set(p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &stride, sizeof stride),
                     CUBLAS_STATUS_SUCCESS);
}

/* d[M, N] = a'[M, K] b[K, N], column by column. */
static product make(cublasLtEpilogue_t epilogue)
{
    product p = {.workspace_bytes = sizeof result};
    const cublasOperation_t turned = CUBLAS_OP_T;
    const uint64_t bytes = sizeof result;
    for (int i = 0; i < PIECES; i++) p.at[i] = piece[i];
    cublasLtMatmulDescInit(&p.what, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutInit(&p.a, CUDA_R_16BF, K, M, K + 3);
    cublasLtMatrixLayoutInit(&p.b, CUDA_R_16BF, K, N, K);
    cublasLtMatrixLayoutInit(&p.d, CUDA_R_16BF, M, N, M);
    set(&p, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned);
    set_epilogue(&p, epilogue);
    cublasLtMatmulPreferenceInit(&p.wish);
    cublasLtMatmulPreferenceSetAttribute(&p.wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &bytes, sizeof bytes);
    set_wish(&p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             CUBLASLT_REDUCTION_SCHEME_NONE);
    return p;
}

static cublasStatus_t choose(product *p)
{
    int n = 0;
    const cublasStatus_t st =
        cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)blas, &p->what, &p->a, &p->b,
                                       &p->d, &p->d, &p->wish, 1, &p->found, &n);
    assert_int_equal(n, st == CUBLAS_STATUS_SUCCESS);
    return st;
}

static cublasStatus_t multiply(product *p)
{
    const float one = 1.0f, more = p->add ? 1.0f : 0.0f;
    return cublasLtMatmul((cublasLtHandle_t)blas, &p->what, &one, p->at[A], &p->a, p->at[B],
                          &p->b, &more, p->add ? p->add : p->at[D], &p->d, p->at[D], &p->d,
                          &p->found.algo, p->at[WORKSPACE], p->workspace_bytes, 0);
}

/* ---- refusals ---- */

static const cublasStatus_t bad = CUBLAS_STATUS_INVALID_VALUE,
                            unknown = CUBLAS_STATUS_NOT_SUPPORTED;

TEST(products_that_do_not_exist_have_no_algorithm)
{
    product p = make(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
    int64_t stride = AUX - 4;
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &stride, sizeof stride);
    assert_int_equal(choose(&p), unknown);
    stride = M - 8;
    set(&p, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &stride, sizeof stride);
    assert_int_equal(choose(&p), unknown);
    p = make((cublasLtEpilogue_t)2);
    assert_int_equal(choose(&p), unknown);
    p = make(CUBLASLT_EPILOGUE_BIAS);
    set_wish(&p, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             CUBLASLT_REDUCTION_SCHEME_MASK);
    assert_int_equal(choose(&p), unknown);
    p = make(CUBLASLT_EPILOGUE_BIAS);
    cublasLtMatrixLayoutInit(&p.b, CUDA_R_16F, K, N, K);
    assert_int_equal(choose(&p), unknown);
    cublasLtMatrixLayoutInit(&p.b, CUDA_R_16BF, K + 1, N, K + 1);
    assert_int_equal(choose(&p), bad);
    p = make(CUBLASLT_EPILOGUE_BIAS);
    void *const none = NULL;
    set(&p, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (const void *)&none, sizeof none);
    assert_int_equal(choose(&p), bad);
    zero_emulated_capability(75);
    p = make(CUBLASLT_EPILOGUE_BIAS);
    assert_int_equal(choose(&p), CUBLAS_STATUS_ARCH_MISMATCH);
    zero_emulated_capability(80);
}

TEST(descriptions_are_checked)
{
    product p = make(CUBLASLT_EPILOGUE_BIAS);
    const int64_t wide = CUBLAS_OP_N;
    assert_int_equal(set(&p, CUBLASLT_MATMUL_DESC_TRANSA, &wide, sizeof wide), bad);
    assert_int_equal(set(&p, CUBLASLT_MATMUL_DESC_TRANSA, NULL, 4), bad);
    assert_int_equal(set(&p, (cublasLtMatmulDescAttributes_t)13, &wide, 4), bad);
    assert_int_equal(cublasLtMatmulPreferenceSetAttribute(
                         &p.wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &wide, 4),
                     bad);
    p.d.data[0] = 0; /* it was not initialized */
    assert_int_equal(choose(&p), bad);
}

/* Each product is right but for one thing. */
TEST(products_are_checked)
{
    const cublasLtEpilogue_t all = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    for (int i = A; i <= D; i++) { /* past the end of a piece, and less aligned */
        product p = make(all);
        assert_int_equal(choose(&p), CUBLAS_STATUS_SUCCESS);
        p.at[i] += sizeof result;
        set_epilogue(&p, all);
        assert_int_equal(multiply(&p), bad);
        p.at[i] = piece[i] + 64;
        set_epilogue(&p, all);
        assert_int_equal(multiply(&p), bad);
        p.at[i] = piece[i];
        set_epilogue(&p, all);
        assert_int_equal(multiply(&p), CUBLAS_STATUS_SUCCESS);
    }
    product p = make(all), other = make(CUBLASLT_EPILOGUE_BIAS);
    assert_int_equal(multiply(&p), bad); /* no algorithm */
    assert_int_equal(choose(&other), CUBLAS_STATUS_SUCCESS);
    p.found = other.found;
    assert_int_equal(multiply(&p), bad);
    assert_int_equal(choose(&p), CUBLAS_STATUS_SUCCESS);
    p.add = result;
    assert_int_equal(multiply(&p), bad);
    p.add = NULL;
    p.workspace_bytes = p.found.workspaceSize - 1;
    assert_int_equal(multiply(&p), bad);
    p.workspace_bytes = p.found.workspaceSize;
    p.at[WORKSPACE] += 16;
    assert_int_equal(multiply(&p), bad);
    p.at[WORKSPACE] = (char *)result;
    assert_int_equal(multiply(&p), bad);
}

TEST(a_product_spoils_the_workspace)
{
    product p = make(CUBLASLT_EPILOGUE_BIAS);
    assert_int_equal(choose(&p), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(multiply(&p), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(
        cudaMemcpy(result, piece[WORKSPACE], sizeof result, cudaMemcpyDeviceToHost),
        cudaSuccess);
    assert_int_equal(result[0], 0xffff);
    assert_int_equal(result[MOST - 1], 0xffff);
}

int main(void)
{
    return run_here(take_memory, give_memory_back);
}
