/* products.cc - cuBLAS: handles, and products of matrices. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "gpu/emulated/products.h"

namespace emulated
{

/* ---- a product ---- */

/* op(x) as floats: [cols][rows] of op(x). */
static void widen(const matrix &x, bool turn, std::vector<float> *out)
{
    const int64_t rows = turn ? x.cols : x.rows, cols = turn ? x.rows : x.cols;
    if (out->size() < (std::size_t)(rows * cols)) out->resize((std::size_t)(rows * cols));
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++)
            (*out)[(std::size_t)(i + j * rows)] = turn ? x(j, i) : x(i, j);
}

/* sum[n] += a's columns[n] * b[k], in the order of k. */
static void add_columns(int64_t n, int64_t k, int64_t stride, const float *a,
                        const float *b, float *sum)
{
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < n; i++) sum[i] += a[i + l * stride] * b[l];
}

/* A program that uses the workspace while a product does has no luck. */
static void spoil(void *workspace, std::size_t bytes)
{
    const std::size_t part = std::min<std::size_t>(bytes, 4096);
    std::memset(workspace, 0xff, part);
    std::memset((char *)workspace + bytes - part, 0xff, part);
}

/* GELU and its derivative, u = sqrt(2/pi) (x + 0.044715 x^3): by tanh, as cuBLASLt, and of x before
 * it is rounded. Kernels compute it otherwise, so tolerances are tried. */
static float gelu(float x)
{
    return 0.5f * x * (1.0f + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

static float gelu_slope(float x)
{
    const float t = std::tanh(0.79788456f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) +
           0.5f * x * (1.0f - t * t) * 0.79788456f * (1.0f + 0.134145f * x * x);
}

float multiply::finished(int64_t row, int64_t col, float x) const
{
    if (end == ending::bias || end == ending::bias_and_gelu) x += bias(row, 0);
    if (end == ending::gelu_gradient) return x * gelu_slope(aux(row, col));
    if (end != ending::bias_and_gelu) return x;
    aux.set(row, col, x);
    return gelu(x);
}

void multiply::execute()
{
    static std::vector<float> wide_a, wide_b;
    const int64_t tile = 512;
    float sum[tile];
    widen(a, turn_a, &wide_a);
    widen(b, turn_b, &wide_b);
    spoil(workspace, workspace_bytes);
    for (int64_t from = 0; from < m; from += tile)
        for (int64_t j = 0; j < n; j++) {
            const int64_t rows = std::min(tile, m - from);
            std::fill(sum, sum + rows, 0.0f);
            add_columns(rows, k, m, wide_a.data() + from, wide_b.data() + j * k, sum);
            for (int64_t i = 0; i < rows; i++) {
                const float old = beta == 0 ? 0.0f : beta * add(from + i, j);
                c.set(from + i, j, finished(from + i, j, alpha * sum[i] + old));
            }
        }
}

/* ---- what a product may be asked for ---- */

bool is_operation(cublasOperation_t op)
{
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T;
}

cublasStatus_t check_types(cudaDataType a, cudaDataType b, cudaDataType c,
                           cublasComputeType_t compute)
{
    const bool is_known = a == CUDA_R_32F || a == CUDA_R_16F || a == CUDA_R_16BF;
    const bool is_fp32 =
        compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
    if (!is_known || a != b || (c != CUDA_R_32F && c != a) || !is_fp32)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (a == CUDA_R_16BF && the_machine()->set.capability < 80)
        return CUBLAS_STATUS_ARCH_MISMATCH;
    return CUBLAS_STATUS_SUCCESS;
}

bool lies_in(int device, const matrix &x)
{
    return x.stride >= std::max<int64_t>(1, x.rows) &&
           (x.bytes() == 0 || memory_is_of(device, x.at, x.bytes()));
}

cublasStatus_t queue(int device, cudaStream_t handle, std::unique_ptr<multiply> p)
{
    CUstream_st *stream = stream_of(handle);
    if (!stream || stream->device != device || !lies_in(device, p->a) ||
        !lies_in(device, p->b) || !lies_in(device, p->c) ||
        (p->beta != 0 && !lies_in(device, p->add)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!p->workspace) return CUBLAS_STATUS_ALLOC_FAILED;
    if (p->m == 0 || p->n == 0) return CUBLAS_STATUS_SUCCESS;
    return stream_add(stream, p.release()) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                          : CUBLAS_STATUS_EXECUTION_FAILED;
}

} // namespace emulated

using namespace emulated;

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k,
                            const void *alpha, const void *A, cudaDataType Atype, int lda,
                            const void *B, cudaDataType Btype, int ldb, const void *beta,
                            void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || !alpha || !beta || !is_operation(transa) ||
        !is_operation(transb))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (algo != CUBLAS_GEMM_DEFAULT && algo != CUBLAS_GEMM_DEFAULT_TENSOR_OP)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    const cublasStatus_t st = check_types(Atype, Btype, Ctype, computeType);
    if (st != CUBLAS_STATUS_SUCCESS) return st;
    auto p = std::make_unique<multiply>();
    p->turn_a = transa == CUBLAS_OP_T, p->turn_b = transb == CUBLAS_OP_T;
    p->a = {A, Atype, p->turn_a ? k : m, p->turn_a ? m : k, lda};
    p->b = {B, Btype, p->turn_b ? n : k, p->turn_b ? k : n, ldb};
    p->m = m, p->n = n, p->k = k;
    p->alpha = *(const float *)alpha, p->beta = *(const float *)beta;
    static_cast<matrix &>(p->c) = {C, Ctype, m, n, ldc};
    p->c.memory = C;
    p->add = p->c;
    p->workspace = handle->workspace;
    p->workspace_bytes = handle->workspace_bytes;
    return queue(handle->device, handle->stream, std::move(p));
}

/* ---- handles ---- */

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    if (current_error() != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = new cublasContext{the_machine()->current, nullptr, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    device_drain(handle->device);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int *version)
{
    *version = 130000;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t streamId)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!stream_of(streamId)) return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = streamId;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace,
                                  size_t workspaceSizeInBytes)
{
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((uintptr_t)workspace % 256 != 0 || workspaceSizeInBytes == 0 ||
        !memory_is_of(handle->device, workspace, workspaceSizeInBytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = workspaceSizeInBytes;
    return CUBLAS_STATUS_SUCCESS;
}

/* All of these mean fp32 for fp32 factors, and sums in fp32, which is what is done here. */
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    const int base = mode & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    return base == CUBLAS_DEFAULT_MATH || base == CUBLAS_PEDANTIC_MATH
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* ---- statuses ---- */

/* clang-format off */
static const struct {
    cublasStatus_t status;
    const char *name, *text;
} texts[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH", "the function requires a feature absent from the current GPU architecture"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the functionality requested requires some license"},
};
/* clang-format on */

const char *cublasGetStatusName(cublasStatus_t status)
{
    for (const auto &t : texts)
        if (t.status == status) return t.name;
    return "unknown status";
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    for (const auto &t : texts)
        if (t.status == status) return t.text;
    return "unknown status";
}
