/* Products of the emulated cuBLAS against plain loops, and what it refuses. */

#define TEST_HAS_MAIN
#include <cublas_v2.h>

#include "support/test.h"

#include "base/half.h"
#include "gpu/child.h"
#include "gpu/emulated/emulator.h"

enum { rows_of_c = 700, cols_of_c = 16, depth = 13, most = 16384 };

static float a[most], b[most], c[most], result[most];
static uint16_t narrow[most];

static cublasHandle_t blas;
static void *on_device[4]; /* a, b, c, the workspace */

/* Whole numbers, so that no order of a sum and no rounding of a factor has another result. */
static int take_memory(void **state)
{
    (void)state;
    for (int i = 0; i < most; i++) {
        a[i] = (float)(i * 7 % 15 - 7);
        b[i] = (float)(i * 11 % 13 - 6);
        c[i] = (float)(i % 5);
    }
    for (int i = 0; i < 4; i++)
        if (cudaMalloc(&on_device[i], (size_t)most * sizeof(float)) != cudaSuccess)
            return 1;
    return cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS ||
           cublasSetWorkspace(blas, on_device[3], (size_t)most * sizeof(float)) !=
               CUBLAS_STATUS_SUCCESS;
}

static int give_memory_back(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) cudaFree(on_device[i]);
    return cublasDestroy(blas) != CUBLAS_STATUS_SUCCESS;
}

static void store(void *memory, const float *x, cudaDataType type)
{
    const bool is_wide = type == CUDA_R_32F;
    for (int i = 0; i < most; i++)
        narrow[i] = type == CUDA_R_16F ? zero_to_fp16(x[i]) : zero_to_bf16(x[i]);
    assert_int_equal(cudaMemcpy(memory, is_wide ? (const void *)x : narrow,
                                (size_t)most * (is_wide ? sizeof *x : sizeof *narrow),
                                cudaMemcpyHostToDevice),
                     cudaSuccess);
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

static float at(const float *x, bool turned, int stride, int row, int col)
{
    return turned ? x[col + row * stride] : x[row + col * stride];
}

static void check_product(bool turn_a, bool turn_b, cudaDataType type, float alpha,
                          float beta)
{
    const int lda = (turn_a ? depth : rows_of_c) + 1,
              ldb = (turn_b ? cols_of_c : depth) + 2;
    store(on_device[0], a, type);
    store(on_device[1], b, type);
    store(on_device[2], c, CUDA_R_32F);
    assert_int_equal(multiply(turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                              turn_b ? CUBLAS_OP_T : CUBLAS_OP_N, lda, ldb, type, alpha,
                              beta),
                     CUBLAS_STATUS_SUCCESS);
    assert_int_equal(
        cudaMemcpy(result, on_device[2], sizeof result, cudaMemcpyDeviceToHost), 0);
    for (int i = 0; i < most; i++) {
        const int row = i % (rows_of_c + 3), col = i / (rows_of_c + 3);
        float expected = c[i];
        if (row < rows_of_c && col < cols_of_c) {
            float sum = 0;
            for (int k = 0; k < depth; k++)
                sum += at(a, turn_a, lda, row, k) * at(b, turn_b, ldb, k, col);
            expected = alpha * sum + beta * c[i];
        }
        assert_true(result[i] == expected);
    }
}

TEST(products_are_those_of_plain_loops)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
    for (int i = 0; i < 12; i++)
        check_product(i & 1, i & 2, types[i / 4], i % 3 ? 1.0f : 0.5f, i % 2 ? 1.0f : 0.0f);
}

/* Sums of up to 13 * 42 are whole numbers that bf16 does not have all. */
TEST(sums_are_rounded_to_the_type_of_the_factors)
{
    static const cudaDataType types[] = {CUDA_R_16F, CUDA_R_16BF};
    for (int t = 0; t < 2; t++) {
        const bool is_half = types[t] == CUDA_R_16F;
        for (int i = 0; i < 3; i++) store(on_device[i], i ? i > 1 ? c : b : a, types[t]);
        assert_int_equal(multiply_to(types[t], CUBLAS_OP_N, CUBLAS_OP_N, rows_of_c, depth,
                                     types[t], 1, 1),
                         CUBLAS_STATUS_SUCCESS);
        assert_int_equal(
            cudaMemcpy(narrow, on_device[2], sizeof narrow, cudaMemcpyDeviceToHost), 0);
        for (int i = 0; i < rows_of_c * cols_of_c; i++) {
            const int row = i % rows_of_c, col = i / rows_of_c,
                      place = row + col * (rows_of_c + 3);
            float sum = c[place];
            for (int k = 0; k < depth; k++)
                sum += at(a, false, rows_of_c, row, k) * at(b, false, depth, k, col);
            assert_int_equal(narrow[place],
                             is_half ? zero_to_fp16(sum) : zero_to_bf16(sum));
        }
        assert_int_equal(narrow[rows_of_c],
                         is_half ? zero_to_fp16(c[rows_of_c]) : zero_to_bf16(c[rows_of_c]));
    }
    assert_int_equal(multiply_to(CUDA_R_16F, CUBLAS_OP_N, CUBLAS_OP_N, rows_of_c, depth,
                                 CUDA_R_16BF, 1, 0),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(multiply_to(CUDA_R_16F, CUBLAS_OP_N, CUBLAS_OP_N, rows_of_c, depth,
                                 CUDA_R_32F, 1, 0),
                     CUBLAS_STATUS_NOT_SUPPORTED);
}

/* What was there is not read, as memory that nobody has written may be NaN. */
TEST(without_beta_the_result_may_hold_anything)
{
    assert_int_equal(cudaMemset(on_device[2], 0xff, sizeof c), cudaSuccess);
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
    assert_int_equal(cudaMemset(on_device[3], 0, sizeof c), cudaSuccess);
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
    assert_int_equal(multiply(N, N, rows_of_c, depth, CUDA_R_64F, 1, 0),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH),
                     CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(
        cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
        CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetWorkspace(blas, (char *)on_device[3] + 16, 256), bad);
    assert_int_equal(cublasSetWorkspace(blas, a, 256), bad);
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
