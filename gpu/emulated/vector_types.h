/* vector_types.h - CUDA's small vectors. */
#pragma once

/* clang-format off */
#define ZERO_VECTORS(type, name, bytes)                                              \
    typedef struct { type x; } name##1;                                              \
    typedef struct __attribute__((aligned(2 * bytes))) { type x, y; } name##2;       \
    typedef struct { type x, y, z; } name##3;                                        \
    typedef struct __attribute__((aligned(bytes > 4 ? 16 : 4 * bytes))) { type x, y, z, w; } name##4;
/* clang-format on */

ZERO_VECTORS(signed char, char, 1)
ZERO_VECTORS(unsigned char, uchar, 1)
ZERO_VECTORS(short, short, 2)
ZERO_VECTORS(unsigned short, ushort, 2)
ZERO_VECTORS(int, int, 4)
ZERO_VECTORS(unsigned int, uint, 4)
ZERO_VECTORS(long long, longlong, 8)
ZERO_VECTORS(unsigned long long, ulonglong, 8)
ZERO_VECTORS(float, float, 4)
ZERO_VECTORS(double, double, 8)
#undef ZERO_VECTORS

#ifdef __cplusplus
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1)
        : x(in_x), y(in_y), z(in_z)
    {
    }
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z)
    {
    }
};
#else
typedef struct {
    unsigned x, y, z;
} dim3;
#endif
