/* products.cc - cuBLAS: handles, and products of matrices. */
#include <algorithm>
#include <cstring>
#include <vector>

#include "gpu/emulated/cublas_v2.h"
#include "gpu/emulated/cuda_bf16.h"
#include "gpu/emulated/cuda_fp16.h"
#include "gpu/emulated/device.h"

struct cublasContext {
    int device;
    cudaStream_t stream;
    void *workspace;
    std::size_t workspace_bytes;
};

namespace emulated
{

/* ---- a product ---- */

/* A factor as it is stored: column-major, rows of `stride` elements apart. */
struct matrix {
    const void *at;
    cudaDataType type;
    int64_t rows, cols, stride;

    std::size_t bytes() const
    {
        const int64_t n = rows > 0 && cols > 0 ? (cols - 1) * stride + rows : 0;
        return (std::size_t)n * (type == CUDA_R_32F ? 4 : 2);
    }
    float operator()(int64_t row, int64_t col) const
    {
        const int64_t i = row + col * stride;
        if (type == CUDA_R_32F) return ((const float *)at)[i];
        const unsigned short bits = ((const unsigned short *)at)[i];
        return type == CUDA_R_16F ? __half2float(__ushort_as_half(bits))
                                  : __bfloat162float(__ushort_as_bfloat16(bits));
    }
};

/* The result. */
struct result : matrix {
    /* Rounded to nearest, ties to even. */
    void set(int64_t row, int64_t col, float x) const
    {
        const int64_t i = row + col * stride;
        if (type == CUDA_R_32F)
            ((float *)memory)[i] = x;
        else
            ((unsigned short *)memory)[i] =
                type == CUDA_R_16F ? __half_as_ushort(__float2half_rn(x))
                                   : __bfloat16_as_ushort(__float2bfloat16_rn(x));
    }
    void *memory;
};

struct multiply final : work {
    matrix a, b;
    bool turn_a, turn_b;
    int64_t m, n, k;
    float alpha, beta;
    result c;
    void *workspace;
    std::size_t workspace_bytes;

    void execute() override;
};

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
            for (int64_t i = 0; i < rows; i++)
                c.set(from + i, j,
                      alpha * sum[i] + (beta == 0 ? 0.0f : beta * c(from + i, j)));
        }
}

/* ---- what a product may be asked for ---- */

static bool is_operation(cublasOperation_t op)
{
    return op == CUBLAS_OP_N || op == CUBLAS_OP_T;
}

static cublasStatus_t check_types(cudaDataType a, cudaDataType b, cudaDataType c,
                                  cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    const bool is_known = a == CUDA_R_32F || a == CUDA_R_16F || a == CUDA_R_16BF;
    const bool is_fp32 =
        compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC;
    const bool is_default =
        algo == CUBLAS_GEMM_DEFAULT || algo == CUBLAS_GEMM_DEFAULT_TENSOR_OP;
    /* fp32 sums, or sums that are rounded to the type of 16-bit factors */
    if (!is_known || a != b || (c != CUDA_R_32F && c != a) || !is_fp32 || !is_default)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (a == CUDA_R_16BF && the_machine()->set.capability < 80)
        return CUBLAS_STATUS_ARCH_MISMATCH;
    return CUBLAS_STATUS_SUCCESS;
}

static bool lies_in(int device, const matrix &x)
{
    return x.stride >= std::max<int64_t>(1, x.rows) &&
           (x.bytes() == 0 || memory_is_of(device, x.at, x.bytes()));
}

static cublasStatus_t queue(cublasHandle_t h, std::unique_ptr<multiply> p)
{
    CUstream_st *stream = stream_of(h->stream);
    if (!stream || stream->device != h->device || !lies_in(h->device, p->a) ||
        !lies_in(h->device, p->b) || !lies_in(h->device, p->c))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!h->workspace) return CUBLAS_STATUS_ALLOC_FAILED;
    p->workspace = h->workspace;
    p->workspace_bytes = h->workspace_bytes;
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
    const cublasStatus_t st = check_types(Atype, Btype, Ctype, computeType, algo);
    if (st != CUBLAS_STATUS_SUCCESS) return st;
    auto p = std::make_unique<multiply>();
    p->turn_a = transa == CUBLAS_OP_T, p->turn_b = transb == CUBLAS_OP_T;
    p->a = {A, Atype, p->turn_a ? k : m, p->turn_a ? m : k, lda};
    p->b = {B, Btype, p->turn_b ? n : k, p->turn_b ? k : n, ldb};
    p->m = m, p->n = n, p->k = k;
    p->alpha = *(const float *)alpha, p->beta = *(const float *)beta;
    static_cast<matrix &>(p->c) = {C, Ctype, m, n, ldc};
    p->c.memory = C;
    return queue(handle, std::move(p));
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
