/* gemm.h - a product in cuBLAS' words. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cublas_v2.h>

#include "math/backend.h"

static inline cudaDataType zero_cuda_data_type(zero_type type)
{
    return type == ZERO_FP16 ? CUDA_R_16F : type == ZERO_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static inline cublasOperation_t zero_cuda_operation(bool transposed)
{
    return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

static inline int64_t zero_cuda_or_dense(int64_t stride, int64_t dense)
{
    return stride != 0 ? stride : dense;
}
