/* cpu_bgemm_amx.c - a tile by tdpbf16ps, as 2 x 2 AMX tiles; compiled for AMX-BF16. */
#include "math/cpu_bgemm.h"

#include <immintrin.h>

extern const zero_packed_kernels zero_bgemm_amx;

/* The operand of ldtilecfg (palette 1). */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

_Static_assert(sizeof(tile_shapes) == 64, "as the instruction reads it");

/* All eight are 16 rows of 64 bytes: 16 floats of c, 16 pairs of a or b. It must be a
 * constant: GCC 12 thinks that the intrinsic reads 8 bytes, and drops stores to the
 * others. */
static const tile_shapes shapes = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void begin(void)
{
    _tile_loadconfig(&shapes);
}

/* AMX tiles in use would be saved at each switch of threads. */
static void end(void)
{
    _tile_release();
}

/* next_a, next_b: offsets of the next 16 lanes */
static void compute_tile(int64_t k, const uint16_t *a, int64_t next_a, const uint16_t *b,
                         int64_t next_b, bool add, float *c, int64_t ldc)
{
    if (add) {
        const int64_t bytes = 4 * ldc;
        _tile_loadd(0, c, bytes);
        _tile_loadd(1, c + 16, bytes);
        _tile_loadd(2, c + 16 * ldc, bytes);
        _tile_loadd(3, c + 16 * ldc + 16, bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (; k > 0; k -= ZERO_AMX_DEPTH, a += ZERO_AMX_NUMBERS, b += ZERO_AMX_NUMBERS) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + next_b, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a + next_a, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    const int64_t bytes = 4 * ldc;
    _tile_stored(0, c, bytes);
    _tile_stored(1, c + 16, bytes);
    _tile_stored(2, c + 16 * ldc, bytes);
    _tile_stored(3, c + 16 * ldc + 16, bytes);
}

static void multiply(int64_t k, const void *a, const void *b, bool add, float *c,
                     int64_t ldc)
{
    compute_tile(k, a, k * ZERO_AMX_LANES, b, k * ZERO_AMX_LANES, add, c, ldc);
}

static void multiply_part(int64_t k, const void *a, const void *b, int64_t b_from,
                          int64_t b_k, bool add, float *c, int64_t ldc)
{
    compute_tile(k, a, k * ZERO_AMX_LANES, (const uint16_t *)b + b_from * ZERO_AMX_LANES,
                 b_k * ZERO_AMX_LANES, add, c, ldc);
}

static float in_registers(int64_t tiles)
{
    float sum[ZERO_AMX_LANES * ZERO_AMX_LANES];
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    for (; tiles > 0; tiles--) {
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_stored(0, sum, 4 * ZERO_AMX_LANES);
    return sum[0];
}

const zero_packed_kernels zero_bgemm_amx = {
    .name = "AMX-BF16",
    .block_m = 512,
    .block_n = 832,
    .block_k = 768,
    .begin = begin,
    .end = end,
    .multiply = multiply,
    .multiply_part = multiply_part,
    .in_registers = in_registers,
    ZERO_BGEMM_FORM,
};
