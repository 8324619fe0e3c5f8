/* signatures.c - what gpu/ uses of CUDA: names, types and values. It compiles with the emulator's
 * headers and with CUDA's, so they agree. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#define SAME(name, ...)    static __VA_ARGS__ = name
#define VALUE(name, value) _Static_assert((int)(name) == (value), #name)

/* clang-format off */
SAME(cudaGetLastError, cudaError_t (*get_last_error)(void));
SAME(cudaPeekAtLastError, cudaError_t (*peek_at_last_error)(void));
SAME(cudaGetErrorName, const char *(*get_error_name)(cudaError_t));
SAME(cudaGetErrorString, const char *(*get_error_string)(cudaError_t));
SAME(cudaGetDeviceCount, cudaError_t (*get_device_count)(int *));
SAME(cudaSetDevice, cudaError_t (*set_device)(int));
SAME(cudaGetDevice, cudaError_t (*get_device)(int *));
SAME(cudaGetDeviceProperties, cudaError_t (*get_properties)(struct cudaDeviceProp *, int));
SAME(cudaDeviceGetPCIBusId, cudaError_t (*get_bus_id)(char *, int, int));
SAME(cudaDriverGetVersion, cudaError_t (*driver_version)(int *));
SAME(cudaRuntimeGetVersion, cudaError_t (*runtime_version)(int *));
SAME(cudaDeviceSynchronize, cudaError_t (*device_synchronize)(void));
SAME(cudaMemGetInfo, cudaError_t (*mem_get_info)(size_t *, size_t *));
SAME(cudaMalloc, cudaError_t (*take)(void **, size_t));
SAME(cudaFree, cudaError_t (*give_back)(void *));
SAME(cudaPointerGetAttributes, cudaError_t (*attributes)(struct cudaPointerAttributes *, const void *));
SAME(cudaIpcGetMemHandle, cudaError_t (*ipc_share)(cudaIpcMemHandle_t *, void *));
SAME(cudaIpcOpenMemHandle, cudaError_t (*ipc_open)(void **, cudaIpcMemHandle_t, unsigned));
SAME(cudaIpcCloseMemHandle, cudaError_t (*ipc_close)(void *));
SAME(cudaHostRegister, cudaError_t (*host_register)(void *, size_t, unsigned));
SAME(cudaHostUnregister, cudaError_t (*host_unregister)(void *));
SAME(cudaMemset, cudaError_t (*set)(void *, int, size_t));
SAME(cudaMemsetAsync, cudaError_t (*set_async)(void *, int, size_t, cudaStream_t));
SAME(cudaMemcpy, cudaError_t (*copy)(void *, const void *, size_t, enum cudaMemcpyKind));
SAME(cudaMemcpyAsync, cudaError_t (*copy_async)(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t));
SAME(cudaStreamCreate, cudaError_t (*stream_create)(cudaStream_t *));
SAME(cudaStreamCreateWithFlags, cudaError_t (*stream_create_flags)(cudaStream_t *, unsigned));
SAME(cudaStreamDestroy, cudaError_t (*stream_destroy)(cudaStream_t));
SAME(cudaStreamSynchronize, cudaError_t (*stream_synchronize)(cudaStream_t));
SAME(cudaStreamQuery, cudaError_t (*stream_query)(cudaStream_t));
SAME(cudaStreamWaitEvent, cudaError_t (*stream_wait)(cudaStream_t, cudaEvent_t, unsigned));
SAME(cudaEventCreate, cudaError_t (*event_create)(cudaEvent_t *));
SAME(cudaEventCreateWithFlags, cudaError_t (*event_create_flags)(cudaEvent_t *, unsigned));
SAME(cudaEventDestroy, cudaError_t (*event_destroy)(cudaEvent_t));
SAME(cudaEventRecord, cudaError_t (*event_record)(cudaEvent_t, cudaStream_t));
SAME(cudaEventQuery, cudaError_t (*event_query)(cudaEvent_t));
SAME(cudaEventSynchronize, cudaError_t (*event_synchronize)(cudaEvent_t));
SAME(cudaEventElapsedTime, cudaError_t (*event_elapsed)(float *, cudaEvent_t, cudaEvent_t));
SAME(cudaFuncSetAttribute, cudaError_t (*func_set)(const void *, enum cudaFuncAttribute, int));

SAME(cublasCreate, cublasStatus_t (*blas_create)(cublasHandle_t *));
SAME(cublasDestroy, cublasStatus_t (*blas_destroy)(cublasHandle_t));
SAME(cublasGetVersion, cublasStatus_t (*blas_version)(cublasHandle_t, int *));
SAME(cublasSetStream, cublasStatus_t (*blas_stream)(cublasHandle_t, cudaStream_t));
SAME(cublasSetWorkspace, cublasStatus_t (*blas_workspace)(cublasHandle_t, void *, size_t));
SAME(cublasSetMathMode, cublasStatus_t (*blas_mode)(cublasHandle_t, cublasMath_t));
SAME(cublasGetStatusName, const char *(*blas_name)(cublasStatus_t));
SAME(cublasGetStatusString, const char *(*blas_string)(cublasStatus_t));
SAME(cublasGemmEx, cublasStatus_t (*blas_gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
    const void *, const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *,
    cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t));

SAME(cublasLtMatrixLayoutInit, cublasStatus_t (*lt_layout)(cublasLtMatrixLayout_t, cudaDataType, uint64_t, uint64_t, int64_t));
SAME(cublasLtMatmulDescInit, cublasStatus_t (*lt_desc)(cublasLtMatmulDesc_t, cublasComputeType_t, cudaDataType));
SAME(cublasLtMatmulDescSetAttribute, cublasStatus_t (*lt_desc_set)(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    const void *, size_t));
SAME(cublasLtMatmulPreferenceInit, cublasStatus_t (*lt_wish)(cublasLtMatmulPreference_t));
SAME(cublasLtMatmulPreferenceSetAttribute, cublasStatus_t (*lt_wish_set)(cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t, const void *, size_t));
SAME(cublasLtMatmulAlgoGetHeuristic, cublasStatus_t (*lt_choose)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
    cublasLtMatmulHeuristicResult_t *, int *));
SAME(cublasLtMatmul, cublasStatus_t (*lt_matmul)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,
    cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *,
    cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t));
/* clang-format on */

VALUE(cudaErrorInvalidValue, 1);
VALUE(cudaErrorMemoryAllocation, 2);
VALUE(cudaErrorMapBufferObjectFailed, 205);
VALUE(cudaErrorPeerAccessUnsupported, 217);
VALUE(cudaMemoryTypeUnregistered, 0);
VALUE(cudaMemoryTypeHost, 1);
VALUE(cudaMemoryTypeDevice, 2);
VALUE(cudaMemoryTypeManaged, 3);
VALUE(cudaIpcMemLazyEnablePeerAccess, 1);
VALUE(sizeof(cudaIpcMemHandle_t), 64);
VALUE(cudaErrorInitializationError, 3);
VALUE(cudaErrorInvalidConfiguration, 9);
VALUE(cudaErrorInvalidHostPointer, 16);
VALUE(cudaErrorInvalidDevicePointer, 17);
VALUE(cudaErrorInvalidMemcpyDirection, 21);
VALUE(cudaErrorInsufficientDriver, 35);
VALUE(cudaErrorDevicesUnavailable, 46);
VALUE(cudaErrorInvalidDeviceFunction, 98);
VALUE(cudaErrorNoDevice, 100);
VALUE(cudaErrorInvalidDevice, 101);
VALUE(cudaErrorNoKernelImageForDevice, 209);
VALUE(cudaErrorECCUncorrectable, 214);
VALUE(cudaErrorNvlinkUncorrectable, 220);
VALUE(cudaErrorInvalidResourceHandle, 400);
VALUE(cudaErrorNotReady, 600);
VALUE(cudaErrorIllegalAddress, 700);
VALUE(cudaErrorLaunchOutOfResources, 701);
VALUE(cudaErrorLaunchTimeout, 702);
VALUE(cudaErrorAssert, 710);
VALUE(cudaErrorHostMemoryAlreadyRegistered, 712);
VALUE(cudaErrorHostMemoryNotRegistered, 713);
VALUE(cudaErrorHardwareStackError, 714);
VALUE(cudaErrorLaunchFailure, 719);
VALUE(cudaErrorNotSupported, 801);
VALUE(cudaErrorSystemNotReady, 802);
VALUE(cudaErrorSystemDriverMismatch, 803);
VALUE(cudaErrorUnknown, 999);
VALUE(cudaMemcpyHostToHost, 0);
VALUE(cudaMemcpyHostToDevice, 1);
VALUE(cudaMemcpyDeviceToHost, 2);
VALUE(cudaMemcpyDeviceToDevice, 3);
VALUE(cudaMemcpyDefault, 4);
VALUE(cudaStreamDefault, 0);
VALUE(cudaStreamNonBlocking, 1);
VALUE(cudaEventDefault, 0);
VALUE(cudaEventBlockingSync, 1);
VALUE(cudaEventDisableTiming, 2);
VALUE(cudaHostRegisterDefault, 0);
VALUE(cudaHostRegisterPortable, 1);
VALUE(cudaFuncAttributeMaxDynamicSharedMemorySize, 8);
VALUE(cudaFuncAttributePreferredSharedMemoryCarveout, 9);
VALUE(CUBLAS_STATUS_NOT_INITIALIZED, 1);
VALUE(CUBLAS_STATUS_ALLOC_FAILED, 3);
VALUE(CUBLAS_STATUS_INVALID_VALUE, 7);
VALUE(CUBLAS_STATUS_ARCH_MISMATCH, 8);
VALUE(CUBLAS_STATUS_MAPPING_ERROR, 11);
VALUE(CUBLAS_STATUS_EXECUTION_FAILED, 13);
VALUE(CUBLAS_STATUS_INTERNAL_ERROR, 14);
VALUE(CUBLAS_STATUS_NOT_SUPPORTED, 15);
VALUE(CUBLAS_STATUS_LICENSE_ERROR, 16);
VALUE(CUBLAS_OP_N, 0);
VALUE(CUBLAS_OP_T, 1);
VALUE(CUBLAS_OP_C, 2);
VALUE(CUBLAS_DEFAULT_MATH, 0);
VALUE(CUBLAS_PEDANTIC_MATH, 2);
VALUE(CUBLAS_TF32_TENSOR_OP_MATH, 3);
VALUE(CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, 16);
VALUE(CUBLAS_COMPUTE_32F, 68);
VALUE(CUBLAS_COMPUTE_32F_PEDANTIC, 69);
VALUE(CUBLAS_COMPUTE_32F_FAST_16F, 74);
VALUE(CUBLAS_COMPUTE_32F_FAST_16BF, 75);
VALUE(CUBLAS_COMPUTE_32F_FAST_TF32, 77);
VALUE(CUBLAS_GEMM_DEFAULT, -1);
VALUE(CUBLAS_GEMM_DEFAULT_TENSOR_OP, 99);
VALUE(CUDA_R_32F, 0);
VALUE(CUDA_R_64F, 1);
VALUE(CUDA_R_16F, 2);
VALUE(CUDA_R_16BF, 14);
VALUE(CUBLASLT_MATMUL_DESC_TRANSA, 3);
VALUE(CUBLASLT_MATMUL_DESC_TRANSB, 4);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE, 7);
VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12);
VALUE(CUBLASLT_EPILOGUE_DEFAULT, 1);
VALUE(CUBLASLT_EPILOGUE_BIAS, 4);
VALUE(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 164);
VALUE(CUBLASLT_EPILOGUE_DGELU, 192);
VALUE(CUBLASLT_REDUCTION_SCHEME_NONE, 0);
VALUE(CUBLASLT_REDUCTION_SCHEME_MASK, 7);
VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1);
VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8);

/* Members that are read. */
static size_t sum_of_members(const struct cudaDeviceProp *p)
{
    return p->totalGlobalMem + p->sharedMemPerBlock +
           (size_t)(p->name[0] + p->major + p->minor + p->multiProcessorCount +
                    p->warpSize + p->maxThreadsPerBlock + p->asyncEngineCount +
                    p->pciBusID + p->pciDeviceID + p->pciDomainID + p->ECCEnabled +
                    p->regsPerBlock);
}

static size_t sum_of_choice(const cublasLtMatmulHeuristicResult_t *found)
{
    return found->workspaceSize + (size_t)found->state + sizeof found->algo;
}
