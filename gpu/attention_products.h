/* attention_products.h - the two products of attention.cu, in fp32.
 *
 * A block has 16 x 16 threads and a tile of 64 x 64 scores. Thread (tx, ty) has the scores of rows
 * 4 ty .. 4 ty + 3 and columns tx, tx + 16, ...; a row's threads are half a warp. dots() gives
 * scores from channels, mix() gives channels from scores.
 *
 * A block computes COLS channels of its result; a larger head has several blocks along z, each of
 * which computes the scores again. */
#pragma once

#include "gpu/attention.h"

#define TILE    64 /* queries and keys of a block's step */
#define DEPTH   32 /* channels of a step of dots() */
#define PITCH   (DEPTH + 4)
#define WEIGHTS (TILE + 4) /* from row to row of weights */
#define THREADS 256
#define WARP    32
#define ALL     0xffffffffu

#define ROOM (2 * TILE * PITCH) /* floats: of two factors of dots(), or one of mix() */

static inline __device__ int tx()
{
    return (int)threadIdx.x % 16;
}

static inline __device__ int ty()
{
    return (int)threadIdx.x / 16;
}

/* A factor's channels from c on. */
template <zero_type type>
static inline __device__ void load_factor(const zero_attention_call &call,
                                          const zero_head_rows<type> &rows, int c,
                                          float *to)
{
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < TILE * DEPTH / 4; i += THREADS) {
        const int row = i / (DEPTH / 4), k = i % (DEPTH / 4) * 4;
        *(float4 *)(to + row * PITCH + k) = zero_load_four(call, rows, row, c + k);
    }
}

/* s[r][c] = the product of row 4 ty + r of x and row tx + 16 c of y. */
template <zero_type type>
static inline __device__ void
dots(const zero_attention_call &call, const zero_head_rows<type> &x,
     const zero_head_rows<type> &y, float *room, float (&s)[4][4])
{
    float *xs = room, *ys = room + TILE * PITCH;
#pragma unroll
    for (int i = 0; i < 16; i++) s[i / 4][i % 4] = 0.0f;
    for (int c = 0; c < call.size; c += DEPTH) {
        __syncthreads(); /* everybody is done with what was there */
        load_factor(call, x, c, xs);
        load_factor(call, y, c, ys);
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < DEPTH; k += 4) {
            float4 a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                a[i] = *(const float4 *)(xs + (4 * ty() + i) * PITCH + k);
                b[i] = *(const float4 *)(ys + (tx() + 16 * i) * PITCH + k);
            }
#pragma unroll
            for (int i = 0; i < 16; i++)
                s[i / 4][i % 4] = zero_dot_four(a[i / 4], b[i % 4], s[i / 4][i % 4]);
        }
    }
}

static inline __device__ void add_scaled(float w, float4 y, float *sum)
{
    sum[0] = fmaf(w, y.x, sum[0]), sum[1] = fmaf(w, y.y, sum[1]);
    sum[2] = fmaf(w, y.z, sum[2]), sum[3] = fmaf(w, y.w, sum[3]);
}

/* A thread's part of a block's result: rows 4 ty .. 4 ty + 3, of 64 channels each the four from
 * 4 tx on. */
template <int COLS> struct result {
    float x[4][COLS / 16];
};

/* to += the columns k .. k + 3 of weights times four rows of y. */
template <int COLS>
static inline __device__ void mix_four(const float *weights, const float *y,
                                       result<COLS> &to)
{
    float4 w[4];
#pragma unroll
    for (int r = 0; r < 4; r++)
        w[r] = *(const float4 *)(weights + (4 * ty() + r) * WEIGHTS);
#pragma unroll
    for (int c = 0; c < COLS / 64; c++) {
        const float *at = y + 64 * c + 4 * tx();
#pragma unroll
        for (int r = 0; r < 4; r++) {
            add_scaled(w[r].x, *(const float4 *)at, &to.x[r][4 * c]);
            add_scaled(w[r].y, *(const float4 *)(at + (COLS + 4)), &to.x[r][4 * c]);
            add_scaled(w[r].z, *(const float4 *)(at + 2 * (COLS + 4)), &to.x[r][4 * c]);
            add_scaled(w[r].w, *(const float4 *)(at + 3 * (COLS + 4)), &to.x[r][4 * c]);
        }
    }
}

/* to += weights[TILE][TILE] times the channels of y that this block computes. */
template <int COLS, zero_type type>
static inline __device__ void mix(const zero_attention_call &call, const float *weights,
                                  const zero_head_rows<type> &y, float *room,
                                  result<COLS> &to)
{
    constexpr int piece = COLS == 64 ? TILE : TILE / 2, pitch = COLS + 4;
    static_assert(piece * pitch <= ROOM, "a piece fits the room");
    for (int first = 0; first < TILE; first += piece) {
        __syncthreads(); /* weights are there, and everybody is done with the room */
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < piece * COLS / 4; i += THREADS) {
            const int row = i / (COLS / 4), c = i % (COLS / 4) * 4;
            *(float4 *)(room + row * pitch + c) =
                zero_load_four(call, y, first + row, (int)blockIdx.z * COLS + c);
        }
        __syncthreads();
#pragma unroll 1
        for (int k = 0; k < piece; k += 4)
            mix_four<COLS>(weights + first + k, room + k * pitch, to);
    }
}

/* to = factor * from */
template <int COLS, zero_type type>
static inline __device__ void store(const zero_attention_call &call,
                                    const result<COLS> &from, float factor,
                                    const zero_head_result<type> &to)
{
#pragma unroll
    for (int i = 0; i < COLS / 16; i++) {
        const int row = i % 4, c = i / 4;
        const float *x = &from.x[row][4 * c];
        const float y[4] = {factor * x[0], factor * x[1], factor * x[2], factor * x[3]};
        zero_store<4>(call, to, 4 * ty() + row, (int)blockIdx.z * COLS + 64 * c + 4 * tx(),
                      y);
    }
}

template <int COLS> static inline __device__ void clear(result<COLS> &x)
{
#pragma unroll
    for (int i = 0; i < COLS / 4; i++) x.x[i % 4][i / 4] = 0.0f;
}
