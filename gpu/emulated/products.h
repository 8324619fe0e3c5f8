/* products.h - a product of matrices as work of a stream, for cuBLAS and cuBLASLt. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gpu/emulated/cublasLt.h"
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

/* The last operation of cuBLASLt on an element, before it is stored. */
enum class ending { none, bias, bias_and_gelu, gelu_gradient };

struct multiply final : work {
    matrix a, b;
    bool turn_a, turn_b;
    int64_t m, n, k;
    float alpha, beta;
    matrix add; /* read if beta is not 0; it may be c */
    result c;
    ending end = ending::none;
    matrix bias = {}; /* [m, 1] */
    result aux = {};  /* [m, n]: before GELU */
    void *workspace;
    std::size_t workspace_bytes;

    void execute() override;

  private:
    float finished(int64_t row, int64_t col, float x) const;
};

bool is_operation(cublasOperation_t op);
/* fp32 sums of factors of one type, which c is of, or fp32. */
cublasStatus_t check_types(cudaDataType a, cudaDataType b, cudaDataType c,
                           cublasComputeType_t compute);
/* Whether the matrix lies in one piece of the device's memory. */
bool lies_in(int device, const matrix &x);
/* Queues the product if its matrices and its stream are the device's, and it has a workspace. */
cublasStatus_t queue(int device, cudaStream_t stream, std::unique_ptr<multiply> p);

} // namespace emulated
