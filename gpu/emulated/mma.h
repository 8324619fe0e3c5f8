/* mma.h - products of 16x16 tiles by a warp: nvcuda::wmma with half or bf16 factors and a float sum.
 *
 * A lane holds 8 elements of each tile. Which ones differs from every GPU, so a kernel that counts on
 * a place is wrong here, too. A tile begins as NaN. Loads and stores do not wait: each lane moves its
 * own elements, and what other lanes wrote is there only after __syncwarp(). */
#pragma once

#include "gpu/emulated/cuda_bf16.h"
#include "gpu/emulated/cuda_fp16.h"
#include "gpu/emulated/kernel.h"

namespace emulated
{

/* Ends the program unless a tile can lie there: 32 bytes of alignment, rows of 16 bytes. */
void check_tile(const char *name, place at, const void *memory, std::size_t row_bytes);

/* Ends the program on a device without bf16's products, which came with sm_80. */
void check_bf16_products(place at);

/* This lane's number in its warp. */
int lane();

/* Row and column of element i of a lane. */
struct element {
    int row, col;
    element(int lane, int i)
        : row(2 * i + (lane + 11 * i) % 32 / 16), col((lane + 11 * i) % 16)
    {
    }
};

/* The same of a factor. A lane's elements of a factor are not those of its sums, so a lane that
 * stores sums and loads them as a factor needs what other lanes have stored. */
struct factor_element : element {
    factor_element(int lane, int i) : element((lane + 13) % 32, i)
    {
    }
};

inline float number(__half x)
{
    return __half2float(x);
}

inline float number(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}

} // namespace emulated

namespace nvcuda
{
namespace wmma
{

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
class fragment
{
  public:
    static_assert(m == 16 && n == 16 && k == 16, "the emulator has tiles of 16 x 16 x 16");
    static constexpr int num_elements = 8;
    typedef T element_type;
    T x[num_elements];

    fragment()
    {
        std::memset((void *)x, 0xff, sizeof x);
    }
};

typedef fragment<accumulator, 16, 16, 16, float> sums; /* CUDA has no such name */

template <typename Use, typename T, typename Layout>
void fill_fragment(fragment<Use, 16, 16, 16, T, Layout> &tile, const T &value)
{
    for (T &x : tile.x) x = value;
}

/* ---- loads and stores ---- */

template <typename Use, typename T, typename Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &tile, const T *memory,
                      unsigned stride, emulated::place at = emulated::place::here())
{
    static_assert(sizeof(T) == 2 && !std::is_void<Layout>::value, "a factor of 16 bits");
    emulated::check_tile("load_matrix_sync", at, memory, stride * sizeof(T));
    const bool by_rows = std::is_same<Layout, row_major>::value;
    for (int i = 0; i < tile.num_elements; i++) {
        const emulated::factor_element e(emulated::lane(), i);
        tile.x[i] = memory[by_rows ? (unsigned)e.row * stride + (unsigned)e.col
                                   : (unsigned)e.col * stride + (unsigned)e.row];
    }
}

inline unsigned offset(emulated::element e, unsigned stride, layout_t layout)
{
    return layout == mem_row_major ? (unsigned)e.row * stride + (unsigned)e.col
                                   : (unsigned)e.col * stride + (unsigned)e.row;
}

inline void load_matrix_sync(sums &tile, const float *memory, unsigned stride,
                             layout_t layout, emulated::place at = emulated::place::here())
{
    emulated::check_tile("load_matrix_sync", at, memory, stride * sizeof(float));
    for (int i = 0; i < tile.num_elements; i++)
        tile.x[i] = memory[offset({emulated::lane(), i}, stride, layout)];
}

inline void store_matrix_sync(float *memory, const sums &tile, unsigned stride,
                              layout_t layout, emulated::place at = emulated::place::here())
{
    emulated::check_tile("store_matrix_sync", at, memory, stride * sizeof(float));
    for (int i = 0; i < tile.num_elements; i++)
        memory[offset({emulated::lane(), i}, stride, layout)] = tile.x[i];
}

/* ---- products ---- */

template <typename A, typename B> struct product {
    sums *d;
    const A *a;
    const B *b;
    const sums *c;
};

/* d = a b + c of all lanes, each sum in the order of k. */
template <typename A, typename B>
void finish_product(emulated::lane_call *const *lanes, unsigned)
{
    float a[16][16], b[16][16], d[16][16];
    for (int lane = 0; lane < warpSize; lane++) {
        const auto *p = (const product<A, B> *)(uintptr_t)lanes[lane]->value;
        for (int i = 0; i < sums::num_elements; i++) {
            const emulated::element e(lane, i);
            const emulated::factor_element f(lane, i);
            a[f.row][f.col] = emulated::number(p->a->x[i]);
            b[f.row][f.col] = emulated::number(p->b->x[i]);
            d[e.row][e.col] = p->c->x[i];
        }
    }
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 16; j++) d[i][j] += a[i][k] * b[k][j];
    for (int lane = 0; lane < warpSize; lane++) {
        const auto *p = (const product<A, B> *)(uintptr_t)lanes[lane]->value;
        for (int i = 0; i < sums::num_elements; i++) {
            const emulated::element e(lane, i);
            p->d->x[i] = d[e.row][e.col];
        }
    }
}

template <typename T, typename LayoutA, typename LayoutB>
void mma_sync(sums &d, const fragment<matrix_a, 16, 16, 16, T, LayoutA> &a,
              const fragment<matrix_b, 16, 16, 16, T, LayoutB> &b, const sums &c,
              emulated::place at = emulated::place::here())
{
    typedef fragment<matrix_a, 16, 16, 16, T, LayoutA> A;
    typedef fragment<matrix_b, 16, 16, 16, T, LayoutB> B;
    if (std::is_same<T, __nv_bfloat16>::value) emulated::check_bf16_products(at);
    const product<A, B> mine = {&d, &a, &b, &c};
    emulated::lane_call call = {"mma_sync",       0xffffffff, at, finish_product<A, B>,
                                (uintptr_t)&mine, 0,          0,  0};
    emulated::meet(&call);
}

} // namespace wmma
} // namespace nvcuda
