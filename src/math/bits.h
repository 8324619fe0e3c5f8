/* bits.h - which bits products have. */
#pragma once

/* Of the cpu backend (README.md).
 *
 *     auto      fp32: every CPU's bits are equal; bf16: those of the fastest kernels
 *     portable  bf16, too: factors are widened, and multiplied as in fp32
 *     fastest   also fp32: BLAS where it is faster than our kernels */
typedef enum { ZERO_BITS_AUTO, ZERO_BITS_PORTABLE, ZERO_BITS_FASTEST, ZERO_BITS } zero_bits;
