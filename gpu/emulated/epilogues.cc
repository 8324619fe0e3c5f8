/* epilogues.cc - cuBLASLt: descriptions of products, the choice of an algorithm, and products that end
 * with a bias, GELU or its gradient. */
#include <algorithm>
#include <cstring>

#include "gpu/emulated/products.h"

namespace emulated
{

/* ---- what the opaque structs hold ---- */

struct layout {
    uint64_t rows, cols;
    int64_t stride;
    cudaDataType type;
};

struct description {
    cublasComputeType_t compute;
    cudaDataType scale;
    cublasOperation_t turn_a, turn_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_stride;
};

struct preference {
    uint64_t workspace;
    uint32_t reductions;
    uint32_t alignment[4]; /* of A, B, C, D */
};

/* An algorithm was chosen for one of these, and is refused for another. */
struct problem {
    layout a, b, c;
    cublasOperation_t turn_a, turn_b;
    cublasLtEpilogue_t epilogue;
    int64_t aux_stride;
};

struct algorithm {
    uint64_t problem; /* a hash of it */
    uint64_t workspace;
    uint32_t alignment[6]; /* of A, B, C, D, the bias and aux */
};

/* A struct of ours in an opaque one, which begins with a mark: one that was not initialized has none. */
static const uint64_t mark = 0x456d756c61746564;

template <class inside, class opaque>
static inside unpack(const opaque *from, bool *is_good)
{
    static_assert(sizeof(inside) + sizeof mark <= sizeof(opaque));
    inside x = {};
    *is_good = *is_good && from && from->data[0] == mark;
    if (*is_good) std::memcpy(&x, &from->data[1], sizeof x);
    return x;
}

template <class inside, class opaque>
static cublasStatus_t pack(opaque *to, const inside &x)
{
    static_assert(sizeof(inside) + sizeof mark <= sizeof(opaque));
    to->data[0] = mark;
    std::memcpy(&to->data[1], &x, sizeof x);
    return CUBLAS_STATUS_SUCCESS;
}

template <class member>
static cublasStatus_t set(member *to, const void *from, std::size_t bytes)
{
    if (!from || bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(to, from, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- a product ---- */

static bool has_bias(const description &d)
{
    return d.epilogue == CUBLASLT_EPILOGUE_BIAS ||
           d.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static bool has_aux(const description &d)
{
    return d.epilogue == CUBLASLT_EPILOGUE_DGELU ||
           d.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static uint64_t hash(const problem &p)
{
    uint64_t h = 0xcbf29ce484222325;
    for (uint64_t x :
         {p.a.rows, p.a.cols, (uint64_t)p.a.stride, (uint64_t)p.a.type, p.b.rows, p.b.cols,
          (uint64_t)p.b.stride, (uint64_t)p.b.type, p.c.rows, p.c.cols,
          (uint64_t)p.c.stride, (uint64_t)p.c.type, (uint64_t)p.turn_a, (uint64_t)p.turn_b,
          (uint64_t)p.epilogue, (uint64_t)p.aux_stride})
        h = (h ^ x) * 0x100000001b3;
    return h;
}

/* The largest power of two that divides an address; 0: there is none. */
static uint32_t alignment_of(const void *x)
{
    const uintptr_t address = (uintptr_t)x;
    return (uint32_t)std::min<uintptr_t>(address & ~(address - 1), 256);
}

struct call {
    description d;
    problem p;
    int64_t k;
};

static bool is_same(const layout &x, const layout &y)
{
    return x.rows == y.rows && x.cols == y.cols && x.stride == y.stride && x.type == y.type;
}

static cublasStatus_t describe(cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                               cublasLtMatrixLayout_t result_layout, call *x)
{
    bool is_good = true;
    x->d = unpack<description>(desc, &is_good);
    x->p = {unpack<layout>(a, &is_good),
            unpack<layout>(b, &is_good),
            unpack<layout>(c, &is_good),
            x->d.turn_a,
            x->d.turn_b,
            x->d.epilogue,
            x->d.aux_stride};
    const layout d = unpack<layout>(result_layout, &is_good);
    if (!is_good || !is_operation(x->d.turn_a) || !is_operation(x->d.turn_b))
        return CUBLAS_STATUS_INVALID_VALUE;
    const bool ta = x->d.turn_a == CUBLAS_OP_T, tb = x->d.turn_b == CUBLAS_OP_T;
    const layout &A = x->p.a, &B = x->p.b, &C = x->p.c;
    const uint64_t k = ta ? A.rows : A.cols;
    x->k = (int64_t)k;
    if ((ta ? A.cols : A.rows) != C.rows || (tb ? B.cols : B.rows) != k ||
        (tb ? B.rows : B.cols) != C.cols || !is_same(C, d))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (x->d.scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    return check_types(A.type, B.type, C.type, x->d.compute);
}

/* The bias and aux are of D's type, and are there if the epilogue needs them. */
static cublasStatus_t check_epilogue(const call &x)
{
    const description &d = x.d;
    const bool is_plain = d.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
    if (!is_plain && !has_bias(d) && !has_aux(d)) return CUBLAS_STATUS_NOT_SUPPORTED;
    if ((has_bias(d) && !d.bias) || (has_aux(d) && !d.aux))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (has_aux(d) && (d.aux_stride % 8 != 0 || d.aux_stride < (int64_t)x.p.c.rows))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

static matrix of(const layout &l, const void *at)
{
    return {at, l.type, (int64_t)l.rows, (int64_t)l.cols, l.stride};
}

static result written(const layout &l, void *at)
{
    result x;
    static_cast<matrix &>(x) = of(l, at);
    x.memory = at;
    return x;
}

static ending ending_of(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_BIAS            ? ending::bias
           : epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ? ending::bias_and_gelu
           : epilogue == CUBLASLT_EPILOGUE_DGELU         ? ending::gelu_gradient
                                                         : ending::none;
}

static std::unique_ptr<multiply> product_of(const call &x, const void *a, const void *b,
                                            const void *c, void *d)
{
    auto p = std::make_unique<multiply>();
    const problem &is = x.p;
    p->a = of(is.a, a), p->b = of(is.b, b);
    p->turn_a = is.turn_a == CUBLAS_OP_T, p->turn_b = is.turn_b == CUBLAS_OP_T;
    p->m = (int64_t)is.c.rows, p->n = (int64_t)is.c.cols, p->k = x.k;
    p->add = of(is.c, c);
    p->c = written(is.c, d);
    p->end = ending_of(is.epilogue);
    p->bias = {x.d.bias, is.c.type, p->m, 1, p->m};
    p->aux = written({is.c.rows, is.c.cols, is.aux_stride, is.c.type}, x.d.aux);
    return p;
}

/* Whether all arrays are as aligned as the algorithm was promised. */
static bool are_aligned(const algorithm &by, const void *a, const void *b, const void *c,
                        const void *d, const description &of)
{
    const void *const arrays[] = {a, b, c, d, of.bias, of.aux};
    for (int i = 0; i < 6; i++)
        if (by.alignment[i] > 0 && alignment_of(arrays[i]) < by.alignment[i]) return false;
    return true;
}

/* Matrices beyond those that queue() checks. */
static bool epilogue_lies_in(int device, const multiply &p, const description &d)
{
    return (!has_bias(d) || lies_in(device, p.bias)) &&
           (!has_aux(d) || lies_in(device, p.aux));
}

} // namespace emulated

using namespace emulated;

/* ---- descriptions ---- */

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t matLayout, cudaDataType type,
                                        uint64_t rows, uint64_t cols, int64_t ld)
{
    return pack(matLayout, layout{rows, cols, ld, type});
}

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t matmulDesc,
                                      cublasComputeType_t computeType,
                                      cudaDataType scaleType)
{
    return pack(matmulDesc, description{computeType, scaleType, CUBLAS_OP_N, CUBLAS_OP_N,
                                        CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0});
}

static cublasStatus_t set_member(description *d, cublasLtMatmulDescAttributes_t attr,
                                 const void *buf, size_t bytes)
{
    switch (attr) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(&d->turn_a, buf, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(&d->turn_b, buf, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(&d->epilogue, buf, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(&d->bias, buf, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(&d->aux, buf, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(&d->aux_stride, buf, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmulDesc,
                                              cublasLtMatmulDescAttributes_t attr,
                                              const void *buf, size_t sizeInBytes)
{
    bool is_good = true;
    description d = unpack<description>(matmulDesc, &is_good);
    const cublasStatus_t st = set_member(&d, attr, buf, sizeInBytes);
    if (!is_good || st != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_INVALID_VALUE;
    return pack(matmulDesc, d);
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t pref)
{
    return pack(pref, preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}});
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                     cublasLtMatmulPreferenceAttributes_t attr,
                                     const void *buf, size_t sizeInBytes)
{
    bool is_good = true;
    preference p = unpack<preference>(pref, &is_good);
    const int first = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, which = attr - first;
    const cublasStatus_t st = attr == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
                                  ? set(&p.workspace, buf, sizeInBytes)
                              : attr == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
                                  ? set(&p.reductions, buf, sizeInBytes)
                              : which >= 0 && which < 4
                                  ? set(&p.alignment[which], buf, sizeInBytes)
                                  : CUBLAS_STATUS_INVALID_VALUE;
    if (!is_good || st != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_INVALID_VALUE;
    return pack(pref, p);
}

/* ---- products ---- */

/* Bytes of workspace that the algorithm asks for, if it may. */
static const uint64_t useful_workspace = 4096;

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc,
    cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
    cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference_desc, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t heuristicResultsArray[], int *returnAlgoCount)
{
    call x;
    bool is_good = true;
    const preference wish = unpack<preference>(preference_desc, &is_good);
    if (!lightHandle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_good || requestedAlgoCount < 1 || !returnAlgoCount)
        return CUBLAS_STATUS_INVALID_VALUE;
    *returnAlgoCount = 0;
    cublasStatus_t st = describe(operationDesc, Adesc, Bdesc, Cdesc, Ddesc, &x);
    if (st == CUBLAS_STATUS_SUCCESS) st = check_epilogue(x);
    if (st != CUBLAS_STATUS_SUCCESS) return st;
    if (wish.reductions != CUBLASLT_REDUCTION_SCHEME_NONE)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm by = {hash(x.p), std::min(wish.workspace, useful_workspace), {}};
    std::copy(wish.alignment, wish.alignment + 4, by.alignment);
    if (has_bias(x.d)) by.alignment[4] = alignment_of(x.d.bias);
    if (has_aux(x.d)) by.alignment[5] = alignment_of(x.d.aux);
    cublasLtMatmulHeuristicResult_t *found = &heuristicResultsArray[0];
    *found = {};
    found->workspaceSize = by.workspace;
    found->state = CUBLAS_STATUS_SUCCESS;
    *returnAlgoCount = 1;
    return pack(&found->algo, by);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle,
                              cublasLtMatmulDesc_t computeDesc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t Adesc, const void *B,
                              cublasLtMatrixLayout_t Bdesc, const void *beta, const void *C,
                              cublasLtMatrixLayout_t Cdesc, void *D,
                              cublasLtMatrixLayout_t Ddesc,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream)
{
    call x;
    bool is_good = true;
    const algorithm by = unpack<algorithm>(algo, &is_good);
    const cublasContext *handle = reinterpret_cast<cublasContext *>(lightHandle);
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    cublasStatus_t st = describe(computeDesc, Adesc, Bdesc, Cdesc, Ddesc, &x);
    if (st == CUBLAS_STATUS_SUCCESS) st = check_epilogue(x);
    if (st != CUBLAS_STATUS_SUCCESS) return st;
    auto p = product_of(x, A, B, C, D);
    if (!is_good || by.problem != hash(x.p) || !alpha || !beta ||
        !are_aligned(by, A, B, C, D, x.d) || !epilogue_lies_in(handle->device, *p, x.d) ||
        (uintptr_t)workspace % 256 != 0 || workspaceSizeInBytes < by.workspace ||
        !memory_is_of(handle->device, workspace, workspaceSizeInBytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    p->alpha = *(const float *)alpha, p->beta = *(const float *)beta;
    p->workspace = workspace;
    p->workspace_bytes = workspaceSizeInBytes;
    return queue(handle->device, stream, std::move(p));
}
