/* What the emulated cuBLAS does beside its products, and what it refuses. That its products are
 * right, test_cuda_backend.c and test_fused.c show. */

#define TEST_HAS_MAIN
#include <cublas_v2.h>

#include "support/test.h"

#include "gpu/child.h"
#include "gpu/emulated/emulator.h"

enum { rows_of_c = 700, cols_of_c = 16, depth = 13, most = 16384 };

static float result[most];

static cublasHandle_t blas;
static void *on_device[4]; /* a, b, c, the workspace */

static int take_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        if (cudaMalloc(&on_device[i], sizeof result) != cudaSuccess ||
            cudaMemset(on_device[i], 0, sizeof result) != cudaSuccess)
            return 1;
    return cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS ||
           cublasSetWorkspace(blas, on_device[3], sizeof result) != CUBLAS_STATUS_SUCCESS;
}

static int give_memory_back(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) cudaFree(on_device[i]);
    return cublasDestroy(blas) != CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t multiply_to(cudaDataType c_type, cublasOperation_t op_a,
                                  cublasOperation_t op_b, int lda, int ldb,
                                  cudaDataType type, float alpha, float beta)
{
    return cublasGemmEx(blas, op_a, op_b, rows_of_c, cols_of_c, depth, &alpha, on_device[0],
                        type, lda, on_device[1], type, ldb, &beta, on_device[2], c_type,
                        rows_of_c + 3, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static cublasStatus_t multiply(cublasOperation_t op_a, cublasOperation_t op_b, int lda,
                               int ldb, cudaDataType type, float alpha, float beta)
{
    return multiply_to(CUDA_R_32F, op_a, op_b, lda, ldb, type, alpha, beta);
}

/* What was there is not read, as memory that nobody has written may be NaN. */
TEST(without_beta_the_result_may_hold_anything)
{
    assert_int_equal(cudaMemset(on_device[2], 0xff, sizeof result), cudaSuccess);
    assert_int_equal(multiply(CUBLAS_OP_N, CUBLAS_OP_N, rows_of_c, depth, CUDA_R_32F, 1, 0),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(
        cudaMemcpy(result, on_device[2], sizeof result, cudaMemcpyDeviceToHost), 0);
    for (int i = 0; i < rows_of_c; i++) assert_true(!isnan(result[i]));
    assert_true(isnan(result[rows_of_c]));
}

/* The workspace belongs to the product while it computes. */
TEST(a_product_spoils_the_workspace)
{
    assert_int_equal(cudaMemset(on_device[3], 0, sizeof result), cudaSuccess);
    assert_int_equal(multiply(CUBLAS_OP_N, CUBLAS_OP_N, rows_of_c, depth, CUDA_R_32F, 1, 0),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(
        cudaMemcpy(result, on_device[3], sizeof result, cudaMemcpyDeviceToHost), 0);
    assert_true(isnan(result[0]) && isnan(result[most - 1]));
}

TEST(factors_and_the_result_lie_in_device_memory)
{
    for (int i = 0; i < 3; i++) {
        void *const begin = on_device[i];
        on_device[i] = (float *)begin + most - 100;
        assert_int_equal(
            multiply(CUBLAS_OP_N, CUBLAS_OP_N, rows_of_c, depth, CUDA_R_32F, 1, 0),
            CUBLAS_STATUS_INVALID_VALUE);
        on_device[i] = begin;
    }
}

TEST(what_is_not_supported_is_a_status)
{
    const cublasOperation_t N = CUBLAS_OP_N;
    const cublasStatus_t bad = CUBLAS_STATUS_INVALID_VALUE;
    assert_int_equal(multiply(CUBLAS_OP_C, N, rows_of_c, depth, CUDA_R_32F, 1, 0), bad);
    assert_int_equal(multiply(N, N, rows_of_c - 1, depth, CUDA_R_32F, 1, 0), bad);
    assert_int_equal(multiply(N, N, most / 4, depth, CUDA_R_32F, 1, 0), bad);
    static const cudaDataType types[][2] = {
        {CUDA_R_32F, CUDA_R_64F}, {CUDA_R_16F, CUDA_R_16BF}, {CUDA_R_16F, CUDA_R_32F}};
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            multiply_to(types[i][0], N, N, rows_of_c, depth, types[i][1], 1, 0),
            CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(
        cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
        CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetWorkspace(blas, (char *)on_device[3] + 16, 256), bad);
    assert_int_equal(cublasSetWorkspace(blas, result, 256), bad);
    zero_emulated_capability(75);
    assert_int_equal(multiply(N, N, rows_of_c, depth, CUDA_R_16BF, 1, 0),
                     CUBLAS_STATUS_ARCH_MISMATCH);
    assert_int_equal(multiply(N, N, rows_of_c, depth, CUDA_R_16F, 1, 0),
                     CUBLAS_STATUS_SUCCESS);
    zero_emulated_capability(80);
    assert_int_equal(cublasSetStream(blas, 0), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(multiply(N, N, rows_of_c, depth, CUDA_R_32F, 1, 0),
                     CUBLAS_STATUS_ALLOC_FAILED);
    assert_string_equal(cublasGetStatusString(CUBLAS_STATUS_ALLOC_FAILED),
                        "the resource allocation failed");
}

static void create_without_a_device(void)
{
    child_assert(cublasCreate(&blas) == CUBLAS_STATUS_NOT_INITIALIZED);
}

static void handles_need_a_device(void **state)
{
    (void)state;
    assert_child_passes(create_without_a_device, "ZERO_EMULATED_DEVICES=0");
}

int main(void)
{
    const struct CMUnitTest first[] = {cmocka_unit_test(handles_need_a_device)};
    return cmocka_run_group_tests_name("without a device", first, NULL, NULL) +
           run_here(take_memory, give_memory_back);
}
